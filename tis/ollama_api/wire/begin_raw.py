"""Begins the answer to a prompt that goes to the model as it is, as `raw` of `/api/generate` wants it."""

from collections.abc import Callable

from tis.admission.ticket import Ticket
from tis.chat.run import Run
from tis.chat.run_spec import RunSpec, Services
from tis.engine.prompt import RawPrompt
from tis.http.scanned_route import in_thread_if
from tis.openai_api.wire.begin import EVENTS_BESIDE_TOKENS, AnswerForm, cache_salt_of, start_run
from tis.openai_api.wire.chat_prompt import requested_sampling
from tis.openai_api.wire.chat_request import ChatRequest
from tis.openai_api.wire.structured_output import answer_grammar
from tis.streaming.session import Session
from tis.streaming.session_request import SessionRequest
from tis.streaming.sessions import Sessions
from tis.streaming.turn import Turn


async def begin_raw(
    prompt: str,
    chat: ChatRequest,
    services: Services,
    sessions: Sessions,
    wanted: SessionRequest,
    model_id: str,
    ticket: Ticket,
    new_form: Callable[[], AnswerForm],
    *,
    is_large: bool = False,
) -> tuple[Session, Turn]:
    """`chat`: the same request with the model's template, for its options and its format. No part is parsed."""
    grammar = await in_thread_if(is_large, lambda: answer_grammar(chat))
    [prepared] = await services.engine.prepare_raw(
        model_id,
        [RawPrompt(prompt)],
        requested_sampling(chat),
        grammar,
        cache_salt=cache_salt_of(chat, wanted.owner),
        ticket=ticket,
    )
    form = new_form()
    spec = RunSpec(form.dialect, form.answer_id, form.writer_state, prepared.resumable)

    def begin() -> Run:
        return Run(spec, services, form.new_writer(form.writer_state), prepared=prepared, ticket=ticket)

    return start_run(sessions, wanted.with_window(prepared.params.max_tokens + EVENTS_BESIDE_TOKENS), begin)
