"""POST /v1/chat/completions: begins an answer, or resumes one, and lets the client follow the recording."""

from functools import partial

from fastapi import APIRouter, Request, Response

from tis.cancellation import race_draining
from tis.errors import BadRequest
from tis.http.admission import ticket_of
from tis.http.dependencies import OwnerDep, SessionsDep
from tis.http.event_stream import (
    CLIENT_CLOSED_REQUEST,
    ClientGone,
    failing_once,
    parse_cursor,
    session_headers,
    whole_turn,
)
from tis.http.scanned_route import ScannedBodyRoute, in_thread_if, is_large_body
from tis.openai_api.routes.models import OptionsDep, ServicesDep, served_model
from tis.openai_api.routes.streams import LastEventId, LastEventIdQuery
from tis.openai_api.wire import chat_writer
from tis.openai_api.wire.begin import begin_chat
from tis.openai_api.wire.chat_request import ChatRequest
from tis.openai_api.wire.chat_writer import fold
from tis.openai_api.wire.examples import CHAT_RESPONSES
from tis.openai_api.wire.ignored import name_ignored
from tis.openai_api.wire.sse import UsageView, follow, require_dialect, turn_behind
from tis.streaming.errors import SessionConflict
from tis.streaming.session import Session
from tis.streaming.sessions import SessionRequest, Sessions
from tis.streaming.turn import Turn

router = APIRouter(route_class=ScannedBodyRoute)

_MANY_EVENTS = 500  # to fold more than these would hold up the event loop for milliseconds


@router.post("/chat/completions", response_model=None, responses=CHAT_RESPONSES)
async def chat_completions(
    body: ChatRequest,
    request: Request,
    services: ServicesDep,
    sessions: SessionsDep,
    owner: OwnerDep,
    options: OptionsDep,
    last_event_id: LastEventId = None,
    last_event_id_query: LastEventIdQuery = None,
) -> Response:
    """Answer a conversation, whole or as a stream of chunks that clients can resume after a disconnect."""
    ticket = ticket_of(request)
    body.check()
    is_large = is_large_body(request)
    cursor = parse_cursor(last_event_id, last_event_id_query, body.session_id)
    session_id = cursor[0] if cursor else body.session_id
    view = UsageView(body.wants_usage if body.stream_options else None)
    if cursor:
        session = sessions.find(owner, cursor[0])
        if body.messages is None:
            turn = await turn_behind(session, cursor[1], view)
        else:
            turn = await _turn_of_messages(session, body, cursor[1], view, is_large=is_large)
    elif body.messages is None:
        session = _named_session(sessions, owner, body)
        turn = session.latest
    else:
        fingerprint = await in_thread_if(is_large, body.fingerprint)
        wanted = SessionRequest(owner, session_id, fingerprint, resumable=bool(body.stream or session_id))
        found = sessions.find_turn(wanted)
        if found is None:
            model_id = served_model(services.engine, body.model, options.strict_model)
            beginning = begin_chat(body, services, sessions, wanted, model_id, ticket, is_large=is_large)
            found = await race_draining(services.engine.until_draining(), beginning)
        session, turn = found
    require_dialect(turn, chat_writer.DIALECT)
    ticket.answer()
    if body.stream:
        answer: Response = await follow(session, turn, cursor[1] if cursor else turn.first_index - 1, view)
    else:
        answer = await _folded(request, session, turn)
    model_id = served_model(services.engine, body.model, "0")
    return await name_ignored(answer, request, body, services.engine, model_id, ["metadata"])


async def _turn_of_messages(
    session: Session, body: ChatRequest, index: int, view: UsageView, *, is_large: bool
) -> Turn:
    """The turn that continues after a cursor. Raises if neither it nor a later one answers the request."""
    turn = session.turn_with(await in_thread_if(is_large, body.fingerprint))
    last_index = view.last_index(turn) if turn else None
    if (
        turn
        and not turn.was_abandoned
        and last_index is not None
        and last_index <= index <= (view.max_index(turn) or 0)
    ):
        return turn  # the client has all of it, and does not want the one that began after it
    continuing = await turn_behind(session, index, view)
    if turn is None or turn.record.number < continuing.record.number:
        raise SessionConflict(
            f"These messages are answered neither at event {index} of session {session.id!r} nor after it. "
            "Send the messages of that answer, or none.",
            param="messages",
        )
    return continuing


def _named_session(sessions: Sessions, owner: str, body: ChatRequest) -> Session:
    if body.session_id is None:
        raise BadRequest("messages: Field required", param="messages", code="missing_required_parameter")
    return sessions.find(owner, body.session_id)


async def _folded(request: Request, session: Session, turn: Turn) -> Response:
    await session.recording.require(turn.first_index - 1)
    try:
        with failing_once(turn):
            events = await whole_turn(request, session, turn)
            answer = await in_thread_if(len(events) > _MANY_EVENTS, partial(fold, events, turn.summary))
    except ClientGone:
        return Response(status_code=CLIENT_CLOSED_REQUEST)
    return Response(answer, media_type="application/json", headers=session_headers(session))
