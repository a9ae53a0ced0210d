"""POST /v1/completions: continues raw prompts, and lets the client follow the recording, as a chat does."""

from fastapi import APIRouter, Request, Response

from tis.http.admission import ticket_of
from tis.http.dependencies import OwnerDep, SessionsDep
from tis.http.scanned_route import ScannedBodyRoute, is_large_body
from tis.openai_api.routes.models import OptionsDep, ServicesDep, served_model
from tis.openai_api.routes.recorded import RecordedAnswer
from tis.openai_api.routes.streams import LastEventId, LastEventIdQuery
from tis.openai_api.wire import completion_writer
from tis.openai_api.wire.begin_completion import begin_completion
from tis.openai_api.wire.completion_examples import COMPLETION_RESPONSES
from tis.openai_api.wire.completion_request import CompletionRequest
from tis.openai_api.wire.completion_writer import fold_completion
from tis.openai_api.wire.ignored import name_ignored
from tis.streaming.session import Session
from tis.streaming.session_request import SessionRequest
from tis.streaming.turn import Turn

router = APIRouter(route_class=ScannedBodyRoute)


@router.post("/completions", response_model=None, responses=COMPLETION_RESPONSES)
async def create_completion(
    body: CompletionRequest,
    request: Request,
    services: ServicesDep,
    sessions: SessionsDep,
    owner: OwnerDep,
    options: OptionsDep,
    last_event_id: LastEventId = None,
    last_event_id_query: LastEventIdQuery = None,
) -> Response:
    """Continue one or several texts, without a chat template: whole or as a stream that clients can resume.

    Log probabilities have the legacy shape; with `echo`, those of the prompt come first.
    """
    ticket = ticket_of(request)
    body.check()
    recorded = RecordedAnswer(
        body,
        request,
        sessions,
        owner,
        prompt_field="prompt",
        dialect=completion_writer.DIALECT,
        chunk_object="text_completion",
        last_event_id=last_event_id,
        last_event_id_query=last_event_id_query,
    )

    async def begin(wanted: SessionRequest) -> tuple[Session, Turn]:
        model_id = served_model(services.engine, body.model, options.strict_model)
        is_large = is_large_body(request)
        return await begin_completion(body, services, sessions, wanted, model_id, ticket, is_large=is_large)

    session, turn = await recorded.find_or_begin(services.engine, begin)
    ticket.answer()
    answer = await recorded.response(session, turn, fold_completion)
    model_id = served_model(services.engine, body.model, "0")
    return await name_ignored(answer, request, body, services.engine, model_id, ["user"])
