"""`POST /api/chat/search`: begins a turn of the assistant, or follows one that runs; the stream of a conversation.

A question is stored in its conversation, an `AssistantTurn` answers it, and every response reads the turn's recording.
"""

import hashlib
import json
from dataclasses import replace
from typing import Annotated, Any, cast

from fastapi import APIRouter, Body, Header, Request, Response
from starlette.concurrency import run_in_threadpool

from tis.admission.admission import Admission
from tis.errors import Forbidden, ServiceError, Unprocessable
from tis.http.admission import ticket_of
from tis.http.dependencies import SessionsDep
from tis.http.event_stream import (
    CLIENT_CLOSED_REQUEST,
    ClientGone,
    event_stream,
    parse_cursor,
    session_headers,
    turn_after_cursor,
    whole_turn,
)
from tis.marketplace.assistant.chat_schemas import (
    CHAT_RESPONSES,
    EXAMPLES,
    STREAM_RESPONSES,
    ActingFor,
    ChatSearch,
    ChatSearchAnswer,
    SessionId,
)
from tis.marketplace.assistant.conversations import (
    add_message,
    find_conversation,
    is_question_of,
    last_answer_id,
    newest_messages,
    open_conversation,
    remove_question,
)
from tis.marketplace.assistant.shopping_assistant import NO_AI_ACCESS
from tis.marketplace.assistant.turn import AssistantTurn, TurnDatabase, TurnSpec, event_json
from tis.marketplace.assistant.wording import language_of_talk
from tis.marketplace.context import ContextDep, RequestContext
from tis.marketplace.kit.docs import body_example, responses
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.products.delivery import Language
from tis.marketplace.products.product_detail import LanguageDep
from tis.marketplace.rates import limited
from tis.marketplace.users.chat_streams import stream_owner
from tis.marketplace.users.service import acting_user, find_user
from tis.streaming.session import Session as StreamSession
from tis.streaming.session_request import SessionRequest
from tis.streaming.stores.store import Event
from tis.streaming.turn import Turn

router = APIRouter(prefix="/chat", tags=["assistant"], route_class=CheckedRoute)
_MAX_KEY_CHARS = 200
_MAX_READ = 8  # messages, for the language of a talk

LastEventId = Annotated[str | None, Header(max_length=512, description="resume after this event: <session>:<index>")]
RetryKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        max_length=_MAX_KEY_CHARS,
        description="a request with the key of an earlier one gets its answer again",
    ),
]


class AssistantFraming:
    """Named events, as those of /v1/responses."""

    def block(self, id_prefix: bytes, event: Event, retry: bytes) -> bytes:
        kind = json.loads(event.data)["type"].encode()
        return b"id: %s%d\n%sevent: %s\ndata: %s\n\n" % (id_prefix, event.index, retry, kind, event.data)

    def error_block(self, error: ServiceError) -> bytes:
        body = event_json("failed", detail=error.message, status=error.status)
        return b"event: %s\ndata: %s\n\n" % (body["type"].encode(), json.dumps(body, ensure_ascii=False).encode())


@router.post("/search", response_model=ChatSearchAnswer, responses=CHAT_RESPONSES, dependencies=[limited("chats")])
async def chat_search(
    request: Request,
    context: ContextDep,
    sessions: SessionsDep,
    body: Annotated[ChatSearch, Body(openapi_examples=body_example(EXAMPLES["question"]))],
    language: LanguageDep,
    key: RetryKey = None,
    last_event_id: LastEventId = None,
) -> Response:
    """Ask in your own words: the answer names goods, prices, stock and distances as the database has them.

    The answer is in the language of the question. Follow-ups go on with the `session_id` of the answer before. With
    `stream`, events come while the answer is made; after a disconnect, `GET /api/chat/stream/{session_id}` with
    `Last-Event-ID` goes on where you were. Your user needs AI access.
    """
    spec, last_answer = await run_in_threadpool(_open, context, body, key, language)
    session_id, owner = spec.session_id, stream_owner(spec.user_id)
    cursor = parse_cursor(last_event_id, None, session_id)
    await sessions.refresh(owner, session_id, is_required=cursor is not None)
    session = sessions.peek(owner, session_id)
    number = 0 if session is None else session.latest.record.number + (not session.is_running)
    fingerprint = _fingerprint(body.query, key, number)
    if session and cursor and body.stream:
        earlier = await turn_after_cursor(session, cursor[1])
        if earlier.fingerprint == _fingerprint(body.query, key, earlier.record.number):
            return _follow(session, earlier, cursor[1])
    wanted = SessionRequest(owner, session_id, fingerprint)
    found = sessions.find_turn(wanted)
    if found is None:
        if not spec.turn_id:
            spec = replace(spec, turn_id=_digest(session_id, fingerprint, last_answer))
        await run_in_threadpool(_add_question, context, spec)
        market, admission = cast(TurnDatabase, context.market), cast(Admission, request.app.state.admission)
        source = AssistantTurn(spec.to_json(), lambda: market, admission, ticket_of(request))
        try:
            found = sessions.start(wanted, lambda: source)
        except ServiceError:  # another question was quicker
            await run_in_threadpool(_remove_question, context, spec)
            raise
        if found[1].fingerprint == fingerprint:
            source.hold_ticket()
    stream, turn = found
    ticket_of(request).answer()
    if not body.stream:
        return await _whole(request, stream, turn)
    return await _from_start(stream, turn)


@router.get("/stream/{session_id}", response_class=Response, responses=STREAM_RESPONSES)
async def follow_conversation(
    context: ContextDep,
    sessions: SessionsDep,
    session_id: SessionId,
    user_id: ActingFor = None,
    last_event_id: LastEventId = None,
) -> Response:
    """Stream the latest answer of a conversation from its start, or go on after `Last-Event-ID`."""
    owner = stream_owner(await run_in_threadpool(_caller, context, user_id))
    await sessions.refresh(owner, session_id, is_required=True)
    session = sessions.find(owner, session_id)
    cursor = parse_cursor(last_event_id, None, session_id)
    if cursor is None:
        return await _from_start(session, session.latest)
    return _follow(session, await turn_after_cursor(session, cursor[1]), cursor[1])


@router.post("/cancel/{session_id}", responses=responses(EXAMPLES["cancelled"]))
async def cancel_answer(
    context: ContextDep, sessions: SessionsDep, session_id: SessionId, user_id: ActingFor = None
) -> dict[str, str]:
    """Cancel the running answer of a conversation. Idempotent."""
    owner = stream_owner(await run_in_threadpool(_caller, context, user_id))
    return {"session_id": session_id, "status": await sessions.cancel(owner, session_id)}


def _open(context: RequestContext, body: ChatSearch, key: str | None, language: Language) -> tuple[TurnSpec, int]:
    """The turn, whose id is empty if the question has no key, and the last answer of its conversation."""
    with context.writing() as (session, principal):
        user = find_user(session, acting_user(session, principal, body.user_id))
        if not user.ai_access_enabled:
            raise Forbidden(NO_AI_ACCESS)
        # Else a retry of a first question would begin another conversation.
        new_id = f"chat_{_digest(user.id, key)}" if key is not None else None
        conversation = open_conversation(session, user.id, body.session_id, body.conversation_id, new_id=new_id)
        session_id, turn_id = conversation.session_id, ""
        if key is not None:
            turn_id = _digest(session_id, "key", key)
            if not is_question_of(session, conversation, turn_id, body.query):
                raise Unprocessable("This Idempotency-Key was used for another question.")
        messages = newest_messages(session, conversation, _MAX_READ)
        said_before = (one.content for one in messages if one.role == "user")
        said_in = language_of_talk((body.query, *said_before), language)
        spec = TurnSpec(turn_id, user.id, session_id, conversation.id, body.query, said_in)
        return spec, last_answer_id(session, conversation)


async def _from_start(session: StreamSession, turn: Turn) -> Response:
    await session.recording.require(turn.first_index - 1)
    return event_stream(session, turn, turn.first_index - 1, AssistantFraming())


def _follow(session: StreamSession, turn: Turn, after: int) -> Response:
    if turn.last_index is not None and after >= turn.last_index:
        return Response(status_code=204, headers=session_headers(session))
    return event_stream(session, turn, after, AssistantFraming())


def _caller(context: RequestContext, user_id: int | None) -> int:
    with context.reading() as (session, principal):
        return acting_user(session, principal, user_id)


def _fingerprint(query: str, key: str | None, number: int) -> str:
    """Without a key, a question that is being answered is the same one; asked again later it is a new one: `number` is
    that of its turn.
    """
    return f"turn {number} {_digest(query)}" if key is None else f"key {_digest(key, query)}"


def _digest(*values: object) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:32]


def _add_question(context: RequestContext, spec: TurnSpec) -> None:
    with context.writing() as (session, _):
        conversation = find_conversation(session, spec.user_id, spec.session_id)
        add_message(session, conversation, spec.turn_id, "user", spec.text, {})


def _remove_question(context: RequestContext, spec: TurnSpec) -> None:
    with context.writing() as (session, _):
        conversation = find_conversation(session, spec.user_id, spec.session_id)
        remove_question(session, conversation, spec.turn_id)


async def _whole(request: Request, session: StreamSession, turn: Turn) -> Response:
    await session.recording.require(turn.first_index - 1)
    try:
        events = await whole_turn(request, session, turn)
    except ClientGone:
        return Response(status_code=CLIENT_CLOSED_REQUEST)
    last: dict[str, Any] = json.loads(events[-1])
    if "response" not in last:
        raise TurnNotAnswered(last.get("detail", "The answer was cancelled."), last.get("status", 409))
    content = json.dumps(last["response"], ensure_ascii=False)
    return Response(content, media_type="application/json", headers=session_headers(session))


class TurnNotAnswered(ServiceError):
    """The recorded turn failed, or was cancelled."""

    code = "turn_failed"

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status
