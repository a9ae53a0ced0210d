"""/v1/stream/{session_id} resumes a recorded answer, /v1/cancel/{session_id} ends it. OpenAI has no such routes."""

from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Request, Response
from fastapi.responses import JSONResponse

from tis.errors import NotFound
from tis.http.dependencies import OwnerDep, ReadTokensDep, SessionsDep
from tis.http.event_stream import parse_cursor, session_headers
from tis.observability.logs import READ_TOKEN
from tis.openai_api.store.items import is_response_id
from tis.openai_api.store.responses import ResponseStore
from tis.openai_api.wire.chat_request import SESSION_ID
from tis.openai_api.wire.examples import CANCEL_RESPONSES, READ_TOKEN_RESPONSES, STREAM_RESPONSES
from tis.openai_api.wire.sse import follow, turn_behind
from tis.streaming.session import Session
from tis.streaming.sessions import Sessions

router = APIRouter()

LastEventId = Annotated[str | None, Header(max_length=512, description="resume after this event: <session>:<index>")]
LastEventIdQuery = Annotated[
    str | None, Query(alias="last_event_id", max_length=512, description="the same; the header wins")
]
# ApiKeyMiddleware has checked it; here for /openapi.yaml.
ReadToken = Annotated[
    str | None, Query(max_length=512, description="instead of a key: from POST /v1/stream/{session_id}/read_token")
]


@router.get("/stream/{session_id}", response_class=Response, responses=STREAM_RESPONSES)
async def follow_session(
    sessions: SessionsDep,
    owner: OwnerDep,
    session_id: Annotated[str, Path(pattern=SESSION_ID, max_length=128, examples=["mysession123"])],
    last_event_id: LastEventId = None,
    last_event_id_query: LastEventIdQuery = None,
    read_token: ReadToken = None,
) -> Response:
    """Stream a session after a cursor, or its latest turn from the start. Fits EventSource: 204 ends it.

    The id of a stored response streams its events.
    """
    cursor = parse_cursor(last_event_id, last_event_id_query, session_id)
    session = await _find(sessions, owner, session_id)
    if cursor is None:
        return await follow(session, session.latest, session.latest.first_index - 1)
    turn = await turn_behind(session, cursor[1])
    if turn.last_index is not None and cursor[1] >= turn.last_index:
        return Response(status_code=204, headers=session_headers(session))
    return await follow(session, turn, cursor[1])


@router.post("/stream/{session_id}/read_token", responses=READ_TOKEN_RESPONSES)
async def create_read_token(
    request: Request,
    sessions: SessionsDep,
    owner: OwnerDep,
    read_tokens: ReadTokensDep,
    session_id: Annotated[str, Path(pattern=SESSION_ID, max_length=128, examples=["mysession123"])],
) -> JSONResponse:
    """Create a token for the query of `GET /v1/stream/{session_id}`, for an EventSource, which sends no headers.

    It reads this session, or this stored response, and nothing else. It is valid while the latest answer runs, and
    `expires_in` seconds longer.
    """
    session = await _find(sessions, owner, session_id)
    token = await read_tokens.issue(session)
    path = f"{request.scope.get('root_path', '')}/v1/stream/{session.id}"
    body = {
        "session_id": session.id,
        "read_token": token,
        "url": f"{path}?{READ_TOKEN}={token}",
        "expires_in": int(session.ttl_seconds),
    }
    return JSONResponse(body, headers={"Cache-Control": "no-store", "X-Session-Id": session.id})


async def _find(sessions: Sessions, owner: str, session_id: str) -> Session:
    if is_response_id(session_id):  # of no other id is the database of stored responses asked
        with suppress(NotFound):
            return await ResponseStore(sessions, owner).response(session_id)
    await sessions.refresh(owner, session_id, is_required=True)
    return sessions.find(owner, session_id)


@router.post("/cancel/{session_id}", responses=CANCEL_RESPONSES)
async def cancel_session(
    sessions: SessionsDep,
    owner: OwnerDep,
    session_id: Annotated[str, Path(pattern=SESSION_ID, max_length=128, examples=["mysession123"])],
) -> dict[str, Any]:
    """Cancel the running answer of a session. Idempotent. Readers get the end; the text so far stays replayable."""
    return {"ok": True, "session_id": session_id, "status": await sessions.cancel(owner, session_id)}
