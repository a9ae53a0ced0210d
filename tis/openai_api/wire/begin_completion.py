"""Begins a text completion: one run, whose prompts are prepared requests of their own."""

from collections.abc import Mapping, Sequence
from typing import Any

from tis.admission.ticket import Ticket
from tis.chat.run import Run
from tis.chat.run_spec import RunSpec, Services
from tis.engine.prepared_request import PreparedRequest
from tis.engine.prompt import RawPrompt
from tis.engine.text.tokenizer import RawTokenizer, offsets_of
from tis.http.scanned_route import in_thread_if
from tis.openai_api.wire.begin import EVENTS_BESIDE_TOKENS, cache_salt_of, start_run
from tis.openai_api.wire.completion_request import CompletionRequest
from tis.openai_api.wire.completion_writer import DIALECT, CompletionWriter, completion_writer_state
from tis.openai_api.wire.structured_output import answer_grammar
from tis.streaming.session import Session
from tis.streaming.session_request import SessionRequest
from tis.streaming.sessions import Sessions
from tis.streaming.turn import Turn


async def begin_completion(
    body: CompletionRequest,
    services: Services,
    sessions: Sessions,
    wanted: SessionRequest,
    model_id: str,
    ticket: Ticket,
    *,
    is_large: bool = False,
) -> tuple[Session, Turn]:
    engine, prompts = services.engine, body.raw_prompts()
    grammar = await in_thread_if(is_large, lambda: answer_grammar(body))
    prepared = await engine.prepare_raw(
        model_id,
        prompts,
        body.requested_sampling(),
        grammar,
        prompt_logprobs=body.prompt_logprobs,
        prompt_only=body.wants_prompt_only,
        cache_salt=cache_salt_of(body, wanted.owner),
        ticket=ticket,
    )
    echoes: Sequence[Mapping[str, Any]] = ()
    if body.echo:
        with_offsets = body.prompt_logprobs is not None

        def echo(tokenizer: RawTokenizer) -> Sequence[Mapping[str, Any]]:
            return [
                _echo(prompt, one.prompt_ids, tokenizer, with_offsets=with_offsets)
                for prompt, one in zip(prompts, prepared, strict=True)
            ]

        texts = [one.text for one in prompts if isinstance(one.text, str)]
        if len(texts) == len(prompts) and not with_offsets:
            echoes = [{"text": text, "offsets": None} for text in texts]
        else:
            echoes = await engine.with_tokenizer(model_id, echo)
    n = prepared[0].params.n
    state = completion_writer_state(
        model_id,
        n=n,
        with_usage=bool(body.stream and body.wants_usage),
        echoes=echoes,
        prompt_only=body.wants_prompt_only,
    )
    requests = [one.resumable for one in prepared]
    spec = RunSpec(DIALECT, state["id"], state, requests[0], more_prompts=requests[1:])

    def begin() -> Run:
        writer = CompletionWriter(state)
        return Run(spec, services, writer, prepared=prepared[0], more_prompts=prepared[1:], ticket=ticket)

    return start_run(sessions, wanted.with_window(_max_events(prepared)), begin)


def _max_events(prepared: Sequence[PreparedRequest]) -> int:
    of_prompts = sum(len(one.prompt_ids) for one in prepared if one.prompt_logprobs is not None)
    of_answers = sum(one.params.max_tokens + 2 for one in prepared)
    return prepared[0].params.n * (of_prompts + of_answers) + EVENTS_BESIDE_TOKENS


def _echo(
    prompt: RawPrompt, prompt_ids: Sequence[int], tokenizer: RawTokenizer, *, with_offsets: bool
) -> Mapping[str, Any]:
    """A text as the client wrote it, token ids as the model reads them."""
    offsets: list[int] | None = None
    if isinstance(prompt.text, str):
        text = prompt.text
        if with_offsets:
            offsets = tokenizer.text_offsets(text, prompt_ids, adds_special_tokens=prompt.adds_special_tokens)
    else:
        texts = tokenizer.visible_texts(prompt_ids)
        text = "".join(texts)
        offsets = offsets_of(texts, len(text)) if with_offsets else None
    return {"text": text, "offsets": offsets}
