"""POST /v1/chat/completions: begins an answer, or resumes one, and lets the client follow the recording."""

from fastapi import APIRouter, Request, Response

from tis.http.admission import ticket_of
from tis.http.dependencies import OwnerDep, SessionsDep
from tis.http.scanned_route import ScannedBodyRoute, is_large_body
from tis.openai_api.routes.models import OptionsDep, ServicesDep, served_model
from tis.openai_api.routes.recorded import RecordedAnswer
from tis.openai_api.routes.streams import LastEventId, LastEventIdQuery
from tis.openai_api.wire import chat_writer
from tis.openai_api.wire.begin import begin_chat
from tis.openai_api.wire.chat_request import ChatRequest
from tis.openai_api.wire.chat_writer import fold
from tis.openai_api.wire.examples import CHAT_RESPONSES
from tis.openai_api.wire.ignored import name_ignored
from tis.openai_api.wire.tools import web_search_hints, with_web_search
from tis.streaming.session import Session
from tis.streaming.session_request import SessionRequest
from tis.streaming.turn import Turn

router = APIRouter(route_class=ScannedBodyRoute)


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
    hints, body = web_search_hints(body), with_web_search(body, options.hosted_tools)
    body.check()
    recorded = RecordedAnswer(
        body,
        request,
        sessions,
        owner,
        dialect=chat_writer.DIALECT,
        prompt_field="messages",
        chunk_object="chat.completion.chunk",
        last_event_id=last_event_id,
        last_event_id_query=last_event_id_query,
    )

    async def begin(wanted: SessionRequest) -> tuple[Session, Turn]:
        model_id = served_model(services.engine, body.model, options.strict_model)
        return await begin_chat(body, services, sessions, wanted, model_id, ticket, is_large=is_large_body(request))

    session, turn = await recorded.find_or_begin(services.engine, begin)
    ticket.answer()
    answer = await recorded.response(session, turn, fold)
    model_id = served_model(services.engine, body.model, "0")
    return await name_ignored(answer, request, body, services.engine, model_id, ["metadata"], hints)
