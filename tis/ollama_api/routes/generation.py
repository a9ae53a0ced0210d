"""POST /api/chat and /api/generate: begin an answer, or find the one of the same request, and let the client follow."""

import time
import uuid
from collections.abc import Sequence
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Header, Request, Response

from tis.admission.ticket import Ticket
from tis.cancellation import race_draining
from tis.chat.run_spec import Services
from tis.errors import BadRequest, ServiceError
from tis.http.admin_guard import AdminGuard
from tis.http.admission import ticket_of
from tis.http.dependencies import OwnerDep, SessionsDep
from tis.http.event_stream import (
    CLIENT_CLOSED_REQUEST,
    ClientGone,
    event_stream,
    failing_once,
    is_long,
    session_headers,
    whole_turn,
)
from tis.http.scanned_route import ScannedBodyRoute, in_thread_if, is_large_body
from tis.ollama_api.routes.model_names import served
from tis.ollama_api.wire.begin_raw import begin_raw
from tis.ollama_api.wire.chat_fields import GenerationFields, OllamaChatRequest, OllamaGenerateRequest
from tis.ollama_api.wire.generate_context import TextMessage, max_answer_chars, question
from tis.ollama_api.wire.ollama_examples import CHAT_RESPONSES, GENERATE_RESPONSES
from tis.ollama_api.wire.ollama_writer import (
    DIALECT,
    LINES,
    Kind,
    OllamaWriter,
    encoded,
    ollama_writer_state,
    rfc3339,
    whole_answer,
)
from tis.ollama_api.wire.to_chat import as_chat_request, earlier_messages, in_ollama_names, is_raw
from tis.openai_api.routes.models import ApiOptions, OptionsDep, ServicesDep
from tis.openai_api.wire.begin import AnswerForm, begin_chat
from tis.openai_api.wire.chat_request import SESSION_ID, ChatRequest
from tis.openai_api.wire.ignored import name_ignored
from tis.streaming.session import Session
from tis.streaming.session_request import SessionRequest
from tis.streaming.sessions import Sessions
from tis.streaming.turn import Turn

router = APIRouter(route_class=ScannedBodyRoute)

NDJSON = "application/x-ndjson"
_NO_EFFECT = ("keep_alive", "truncate", "shift")
_NO_EFFECT_ON_RAW = (*_NO_EFFECT, "think")
_NOW = (0, "0", "0s", "0m", "0h")  # values of `keep_alive` that ask for the memory back

SessionHeader = Annotated[
    str | None,
    Header(
        alias="X-Session-Id",
        pattern=SESSION_ID,
        max_length=128,
        description="a name for the answer: the same request with it gets the same answer, also after a disconnect",
    ),
]


@router.post("/chat", response_model=None, responses=CHAT_RESPONSES)
async def chat(
    body: OllamaChatRequest,
    request: Request,
    services: ServicesDep,
    sessions: SessionsDep,
    owner: OwnerDep,
    options: OptionsDep,
    session_id: SessionHeader = None,
) -> Response:
    """Answer a conversation, as a stream of JSON lines or, with `"stream": false`, as one object. Also at `/api/chat`.

    Without messages the model is loaded, and unloaded with `"keep_alive": 0`.
    """
    answering = _Answering("chat", body, request, services, options, answers=bool(body.messages))
    if not body.messages:
        return await answering.load_or_unload()
    return await answering.answer(sessions, owner, session_id)


@router.post("/generate", response_model=None, responses=GENERATE_RESPONSES)
async def generate(
    body: OllamaGenerateRequest,
    request: Request,
    services: ServicesDep,
    sessions: SessionsDep,
    owner: OwnerDep,
    options: OptionsDep,
    session_id: SessionHeader = None,
) -> Response:
    """Answer one prompt, as a stream of JSON lines or, with `"stream": false`, as one object. Also at `/api/generate`.

    Without a prompt the model is loaded, and unloaded with `"keep_alive": 0`.
    """
    has_prompt = bool(body.prompt or body.images)
    answering = _Answering("generate", body, request, services, options, answers=has_prompt)
    if not has_prompt:
        return await answering.load_or_unload()
    return await answering.answer(sessions, owner, session_id)


class _Answering:
    """One request, of either path."""

    def __init__(
        self,
        kind: Kind,
        body: OllamaChatRequest | OllamaGenerateRequest,
        request: Request,
        services: Services,
        options: ApiOptions,
        *,
        answers: bool,
    ) -> None:
        """`answers`: else the model is only loaded or unloaded, whatever it does."""
        self._received_at = time.time_ns()
        self._kind = kind
        self._is_raw = is_raw(body)
        self._body = body
        self._request = request
        self._services = services
        self._model_id = served(services.engine, body.model, options, "chat" if answers else None)
        self._is_large = is_large_body(request)
        self._conversation: Sequence[TextMessage] = ()  # with the prompt, of `/api/generate`

    async def answer(self, sessions: Sessions, owner: str, session_id: str | None) -> Response:
        body, request = self._body, self._request
        chat, self._conversation = await in_thread_if(self._is_large, lambda: _converted(body))
        fingerprint = await in_thread_if(self._is_large, chat.fingerprint)
        resumable = bool(body.is_streamed or session_id)
        kind = "raw" if self._is_raw else self._kind
        wanted = SessionRequest(owner, session_id, f"{DIALECT}:{kind} {self._model_id} {fingerprint}", resumable)
        await sessions.refresh(owner, session_id)
        found = sessions.find_turn(wanted)
        if found is None:
            engine = self._services.engine
            try:
                found = await race_draining(engine.until_draining(), self._begin(chat, sessions, wanted))
            except ServiceError as error:
                raise in_ollama_names(error, body) from None
        session, turn = found
        ticket_of(request).answer()
        if body.is_streamed:
            await session.recording.require(turn.first_index - 1)
            streamed: Response = event_stream(
                session, turn, turn.first_index - 1, LINES, media_type=NDJSON, heartbeat=b""
            )
        else:
            streamed = await self._folded(session, turn)
        return await self._with_ignored(streamed, _NO_EFFECT_ON_RAW if self._is_raw else _NO_EFFECT)

    async def load_or_unload(self) -> Response:
        engine, body = self._services.engine, self._body
        unloads = body.keep_alive in _NOW
        if unloads:
            guard: AdminGuard = self._request.app.state.admin_guard
            guard.require_admin(self._request.scope)
            await engine.unload(self._model_id)
        else:
            await race_draining(engine.until_draining(), engine.media_kinds(self._model_id))
        ticket_of(self._request).answer()
        told = {"message": {"role": "assistant", "content": ""}} if self._kind == "chat" else {"response": ""}
        head = {"model": body.model, "created_at": rfc3339(self._received_at / 1e9)}
        line = encoded({**head, **told, "done": True, "done_reason": "unload" if unloads else "load"})
        answer = Response(line, media_type="application/json")
        return await self._with_ignored(answer, () if unloads else _NO_EFFECT)

    async def _begin(self, chat: ChatRequest, sessions: Sessions, wanted: SessionRequest) -> tuple[Session, Turn]:
        engine = self._services.engine
        await engine.media_kinds(self._model_id)  # waits until it is loaded: what follows describes it
        loaded_at = time.time_ns()
        chat = await self._fitting(chat)
        body, is_large = self._body, self._is_large
        begin: tuple[Services, Sessions, SessionRequest, str, Ticket]
        begin = self._services, sessions, wanted, self._model_id, ticket_of(self._request)
        if isinstance(body, OllamaGenerateRequest) and body.raw:
            return await begin_raw(body.prompt or "", chat, *begin, lambda: self._form(loaded_at), is_large=is_large)
        return await begin_chat(chat, *begin, choose_form=lambda *_: self._form(loaded_at), is_large=is_large)

    async def _fitting(self, chat: ChatRequest) -> ChatRequest:
        """Refuses what the model cannot do, as Ollama does, and shortens `num_predict` to its context."""
        known = await self._services.engine.describe(self._model_id)
        body = self._body
        if body.think and not known.reasons and not self._is_raw:
            raise BadRequest(f'"{body.model}" does not support thinking', param="think", code="unsupported_value")
        if isinstance(body, OllamaChatRequest) and body.tools and not known.calls_tools:
            raise BadRequest(f'"{body.model}" does not support tools', param="tools", code="unsupported_value")
        if chat.max_tokens and known.context_length and chat.max_tokens > known.context_length:
            return chat.model_copy(update={"max_tokens": known.context_length})
        return chat

    def _form(self, loaded_at: int) -> AnswerForm:
        """Made when the prompt is ready: it has the time of that."""
        state = ollama_writer_state(
            self._kind,
            self._body.model or self._model_id,
            received_at=self._received_at,
            loaded_at=loaded_at,
            hides_thinking=self._body.think is False,
            conversation=self._conversation,
        )
        return AnswerForm(DIALECT, f"ollama-{uuid.uuid4().hex}", state, OllamaWriter)

    async def _folded(self, session: Session, turn: Turn) -> Response:
        await session.recording.require(turn.first_index - 1)
        try:
            with failing_once(turn):
                lines = await whole_turn(self._request, session, turn)
                answer = await in_thread_if(is_long(lines), partial(whole_answer, lines, turn.summary))
        except ClientGone:
            return Response(status_code=CLIENT_CLOSED_REQUEST)
        return Response(answer, media_type="application/json", headers=session_headers(session))

    async def _with_ignored(self, answer: Response, no_effect: tuple[str, ...]) -> Response:
        body: GenerationFields = self._body
        return await name_ignored(answer, self._request, body, self._services.engine, self._model_id, no_effect)


def _converted(body: OllamaChatRequest | OllamaGenerateRequest) -> tuple[ChatRequest, Sequence[TextMessage]]:
    chat = as_chat_request(body)
    if not isinstance(body, OllamaGenerateRequest) or body.raw:
        return chat, ()
    told = [*earlier_messages(body), question(body.prompt or "", has_images=bool(body.images))]
    return chat, told if max_answer_chars(told) >= 0 else ()
