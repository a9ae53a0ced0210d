"""POST /v1/messages begins an answer, or resumes one, and lets the client follow the recording."""

import re
from collections.abc import Awaitable
from functools import partial
from typing import Annotated, TypeVar

from fastapi import APIRouter, Header, Request, Response
from fastapi.responses import JSONResponse

from tis.anthropic_api.wire.chat_of_messages import ConvertedMessages, chat_of_messages
from tis.anthropic_api.wire.message_answer import PING, MessageFraming, fold_message
from tis.anthropic_api.wire.message_examples import COUNT_RESPONSES, MESSAGE_RESPONSES
from tis.anthropic_api.wire.message_writer import DIALECT, MessageWriter, message_writer_state
from tis.anthropic_api.wire.messages_request import NO_EFFECT, MessagesRequest
from tis.cancellation import race_draining
from tis.engine.prepared_request import PreparedRequest
from tis.errors import BadRequest
from tis.http.admission import ticket_of
from tis.http.anthropic_errors import REQUEST_ID_HEADER
from tis.http.dependencies import DOCUMENTED_KEY, OwnerDep, SessionsDep
from tis.http.event_stream import (
    CLIENT_CLOSED_REQUEST,
    ClientGone,
    event_stream,
    failing_once,
    is_long,
    parse_cursor,
    session_headers,
    whole_turn,
)
from tis.http.json_bodies import json_response
from tis.http.scanned_route import ScannedBodyRoute, in_thread_if, is_large_body
from tis.observability.request_log import current_request_id
from tis.openai_api.routes.models import OptionsDep, ServicesDep, served_model
from tis.openai_api.routes.streams import LastEventId, LastEventIdQuery
from tis.openai_api.wire.begin import AnswerForm, ConvertedChat, begin_chat
from tis.openai_api.wire.chat_request import SESSION_ID
from tis.openai_api.wire.count_tokens import prepared_to_count
from tis.openai_api.wire.ignored import name_ignored
from tis.openai_api.wire.sse import require_dialect, turn_behind
from tis.streaming.errors import SessionConflict
from tis.streaming.session import Session
from tis.streaming.session_request import SessionRequest
from tis.streaming.sessions import Sessions
from tis.streaming.turn import Turn

T = TypeVar("T")

router = APIRouter(route_class=ScannedBodyRoute)

SessionHeader = Annotated[
    str | None, Header(alias="X-Session-Id", max_length=128, description="names the recording, as `session_id` does")
]
_SESSION_ID = re.compile(SESSION_ID)


@router.post("/messages", response_model=None, responses=MESSAGE_RESPONSES)
async def create_message(
    body: MessagesRequest,
    request: Request,
    services: ServicesDep,
    sessions: SessionsDep,
    owner: OwnerDep,
    options: OptionsDep,
    last_event_id: LastEventId = None,
    last_event_id_query: LastEventIdQuery = None,
    session_header: SessionHeader = None,
) -> Response:
    """Answer a conversation as Anthropic's Messages API does, whole or as a stream of events that can be resumed."""
    ticket, is_large = ticket_of(request), is_large_body(request)
    body.check()
    session_id = _session_id(body, session_header)
    cursor = parse_cursor(last_event_id, last_event_id_query, session_id)
    resumes = cursor is not None or body.messages is None
    await sessions.refresh(owner, cursor[0] if cursor else session_id, is_required=resumes)
    if body.messages is None:
        session, turn = await _resumed(sessions, owner, session_id, cursor)
        ticket.answer()
        return await _answer(request, session, turn, cursor, stream=bool(body.stream))
    if body.max_tokens is None:
        raise BadRequest("max_tokens: Field required", param="max_tokens", code="missing_required_parameter")
    model_id = served_model(services.engine, body.model, options.strict_model)
    max_context = (await services.engine.describe(model_id)).context_length
    converted = await in_thread_if(is_large, partial(chat_of_messages, body, max_context=max_context))
    fingerprint = await in_thread_if(is_large, converted.fingerprint)
    if cursor:
        session = sessions.find(owner, cursor[0])
        turn = await _turn_of_messages(session, fingerprint, cursor[1])
    else:
        wanted = SessionRequest(owner, session_id, fingerprint, resumable=bool(body.stream or session_id))
        found = sessions.find_turn(wanted)
        if found is None:
            form = partial(_form, model_id, converted)
            beginning = begin_chat(
                converted.chat, services, sessions, wanted, model_id, ticket, choose_form=form, is_large=is_large
            )
            found = await _with_our_names(converted, race_draining(services.engine.until_draining(), beginning))
        session, turn = found
    ticket.answer()
    answer = await _answer(request, session, turn, cursor, stream=bool(body.stream))
    return await name_ignored(answer, request, body, services.engine, model_id, NO_EFFECT, also=converted.ignored)


@router.post("/messages/count_tokens", responses=COUNT_RESPONSES, dependencies=[DOCUMENTED_KEY])
async def count_message_tokens(
    body: MessagesRequest,
    request: Request,
    services: ServicesDep,
    options: OptionsDep,
) -> Response:
    """Count the tokens of the prompt that `POST /v1/messages` would make of the same body. Nothing is generated."""
    body.check()
    if body.messages is None:
        raise BadRequest("messages: Field required", param="messages", code="missing_required_parameter")
    is_large = is_large_body(request)
    model_id = served_model(services.engine, body.model, options.strict_model)
    counted = body.model_copy(update={"max_tokens": 1})
    converted = await in_thread_if(is_large, partial(chat_of_messages, counted))
    await in_thread_if(is_large, converted.fingerprint)  # refuses what is no text
    reading = prepared_to_count(converted.chat, services, model_id, ticket_of(request), is_large=is_large)
    prepared = await _with_our_names(converted, race_draining(services.engine.until_draining(), reading))
    return JSONResponse({"input_tokens": prepared.num_prompt_tokens}, headers={REQUEST_ID_HEADER: current_request_id()})


async def _with_our_names(converted: ConvertedMessages, work: Awaitable[T]) -> T:
    try:
        return await work
    except BadRequest as error:
        raise converted.places.named(error) from None


def _session_id(body: MessagesRequest, header: str | None) -> str | None:
    if not header:
        return body.session_id
    if not _SESSION_ID.fullmatch(header):
        raise BadRequest("X-Session-Id must be 1 to 128 letters, digits, '.', '_' or '-'.", param="session_id")
    if body.session_id not in (None, header):
        raise BadRequest(
            f"The header X-Session-Id names session {header!r}, the body {body.session_id!r}.",
            param="session_id",
            code="session_mismatch",
        )
    return header


async def _resumed(
    sessions: Sessions, owner: str, session_id: str | None, cursor: tuple[str, int] | None
) -> tuple[Session, Turn]:
    """The answer that a request without messages means."""
    if cursor:
        session = sessions.find(owner, cursor[0])
        return session, await turn_behind(session, cursor[1])
    if session_id is None:
        raise BadRequest("messages: Field required", param="messages", code="missing_required_parameter")
    session = sessions.find(owner, session_id)
    return session, session.latest


async def _turn_of_messages(session: Session, fingerprint: str, index: int) -> Turn:
    """The turn that continues after a cursor. Raises if neither it nor a later one answers the request."""
    turn = session.turn_with(fingerprint)
    if turn and not turn.was_abandoned and turn.last_index == index:
        return turn  # the client has all of it, and does not want the one that began after it
    continuing = await turn_behind(session, index)
    if turn is None or turn.record.number < continuing.record.number:
        raise SessionConflict(
            f"These messages are answered neither at event {index} of session {session.id!r} nor after it. "
            "Send the messages of that answer, or none.",
            param="messages",
        )
    return continuing


def _form(model_id: str, converted: ConvertedMessages, chat: ConvertedChat, prepared: PreparedRequest) -> AnswerForm:
    state = message_writer_state(
        model_id,
        num_input=prepared.num_prompt_tokens,
        stop_sequences=converted.stop_sequences,
        shows_thinking=converted.shows_thinking,
    )
    return AnswerForm(DIALECT, state["id"], state, MessageWriter)


async def _answer(
    request: Request, session: Session, turn: Turn, cursor: tuple[str, int] | None, *, stream: bool
) -> Response:
    require_dialect(turn, DIALECT)
    if stream:
        after = cursor[1] if cursor else turn.first_index - 1
        await session.recording.require(after)
        answer: Response = event_stream(session, turn, after, MessageFraming(), heartbeat=PING)
    else:
        answer = await _folded(request, session, turn)
    answer.headers[REQUEST_ID_HEADER] = current_request_id()
    return answer


async def _folded(request: Request, session: Session, turn: Turn) -> Response:
    await session.recording.require(turn.first_index - 1)
    try:
        with failing_once(turn):
            events = await whole_turn(request, session, turn)
            return await json_response(
                partial(fold_message, events), session_headers(session), is_large=is_long(events)
            )
    except ClientGone:
        return Response(status_code=CLIENT_CLOSED_REQUEST)
