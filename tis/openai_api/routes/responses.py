"""/v1/responses: creates, retrieves, streams, cancels and deletes responses, and lists their input."""

import asyncio
import json
import re
from contextlib import suppress
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response

from tis.cancellation import race_draining
from tis.chat.parts import RunUsage
from tis.chat.run import Run
from tis.errors import NotFound, ServiceError, error_with_code
from tis.http.admission import ticket_of
from tis.http.dependencies import OwnerDep, SessionsDep
from tis.http.event_stream import (
    CLIENT_CLOSED_REQUEST,
    ClientGone,
    event_stream,
    failing_once,
    parse_cursor,
    session_headers,
    whole_turn,
)
from tis.http.json_bodies import json_response
from tis.http.scanned_route import ScannedBodyRoute, in_thread_if, is_large_body
from tis.openai_api.routes.conversations import ItemPageDep
from tis.openai_api.routes.embeddings import pooled
from tis.openai_api.routes.models import OptionsDep, ServicesDep, served_model
from tis.openai_api.routes.streams import LastEventId, LastEventIdQuery
from tis.openai_api.store.conversations import join_conversation, move_items_to_conversation
from tis.openai_api.store.responses import MAX_HISTORY_BYTES, RESPONSE, ResponseStore
from tis.openai_api.wire.begin import start_run
from tis.openai_api.wire.begin_response import ResponseBeginning
from tis.openai_api.wire.examples import (
    CANCEL_RESPONSE_RESPONSES,
    COMPACT_RESPONSES,
    CREATE_RESPONSES,
    DELETE_RESPONSES,
    INPUT_ITEMS_RESPONSES,
    INPUT_TOKENS_RESPONSES,
    RETRIEVE_RESPONSES,
)
from tis.openai_api.wire.ignored import name_ignored
from tis.openai_api.wire.request_items import read_history
from tis.openai_api.wire.response_request import CompactRequest, ResponseRequest, require_encodable
from tis.openai_api.wire.sse import ResponseFraming, turn_behind
from tis.streaming.session import Session
from tis.streaming.turn import Turn

router = APIRouter(route_class=ScannedBodyRoute)

ResponseId = Annotated[str, Path(max_length=512, examples=["resp_3f0e9f6ed4d24cbb9f1c1f0a7a9c7f9e"])]
_NO_EFFECT = ("user", "safety_identifier", "prompt_cache_key", "service_tier")  # copied into the response
_LARGE_EVENT_BYTES = 256 * 1024
_HALF_A_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")


@router.post("/responses", response_model=None, responses=CREATE_RESPONSES)
async def create_response(
    body: ResponseRequest,
    request: Request,
    services: ServicesDep,
    sessions: SessionsDep,
    owner: OwnerDep,
    options: OptionsDep,
    last_event_id: LastEventId = None,
    last_event_id_query: LastEventIdQuery = None,
) -> Response:
    """Create a response: whole, as a resumable stream of events, or in the background."""
    store, ticket = ResponseStore(sessions, owner, max_read_bytes=MAX_HISTORY_BYTES), ticket_of(request)
    if cursor := parse_cursor(last_event_id, last_event_id_query, None):
        ticket.answer()
        return await _followed(await store.response(cursor[0]), cursor[1])
    body.check()
    if body.is_stored:
        store.require_room()
    is_large = is_large_body(request)
    await _require_text(request, body, is_large=is_large)
    model_id = served_model(services.engine, body.model, options.strict_model)
    begin_with = partial(
        ResponseBeginning, body, model_id, services, ticket, hosted=options.hosted_tools, is_large=is_large
    )
    beginning = await in_thread_if(is_large, begin_with)
    conversation, earlier = await read_history(store, body)
    if conversation:
        await conversation.require_no_running_response()
    prepared = await race_draining(services.engine.until_draining(), beginning.prepare(store, earlier))
    response = beginning.response(prepared)
    writer = await beginning.writer(response)
    created = writer.summary(RunUsage()) if body.background else b""
    if conversation:
        beginning.require_room_in(conversation)

    is_listed = asyncio.Event()

    def begin() -> Run:
        run = beginning.run(prepared, response, writer)
        if conversation and not body.is_stored:
            run.before_end = partial(join_conversation, store, beginning.response_id, is_listed)
        return run

    session, turn = start_run(sessions, beginning.session(owner, prepared, options.responses_ttl_seconds), begin)
    if conversation:
        try:
            await conversation.add_response(session.id)
        except ServiceError:  # another request was faster, at another server
            is_listed.set()  # it may wait for it, and is to end now
            await sessions.delete(session)
            raise
        finally:
            is_listed.set()
    if body.background:
        try:
            await sessions.keep_begin(session, may_begin_again=not beginning.calls_servers)
        except ServiceError:
            await sessions.delete(session)
            raise
    if body.stream:
        answer: Response = event_stream(session, turn, -1, ResponseFraming())
    elif body.background:
        await sessions.flush()
        answer = Response(created, media_type="application/json")
    else:
        answer = await _whole(request, session, turn)
    return await name_ignored(answer, request, body, services.engine, model_id, _NO_EFFECT)


@router.post("/responses/input_tokens", responses=INPUT_TOKENS_RESPONSES)
async def count_input_tokens(
    body: ResponseRequest,
    request: Request,
    services: ServicesDep,
    sessions: SessionsDep,
    owner: OwnerDep,
    options: OptionsDep,
) -> dict[str, Any]:
    """Count the tokens of the prompt that `POST /v1/responses` would make of the same body. Nothing is generated."""
    store = ResponseStore(sessions, owner, max_read_bytes=MAX_HISTORY_BYTES)
    body.check()
    is_large = is_large_body(request)
    await _require_text(request, body, is_large=is_large)
    model_id = served_model(services.engine, body.model, options.strict_model)
    ticket = ticket_of(request)
    begin_with = partial(
        ResponseBeginning, body, model_id, services, ticket, hosted=options.hosted_tools, is_large=is_large
    )
    beginning = await in_thread_if(is_large, begin_with)
    _, earlier = await read_history(store, body)
    num_tokens = await race_draining(services.engine.until_draining(), beginning.count_tokens(store, earlier))
    return {"object": "response.input_tokens", "input_tokens": num_tokens}


@router.post("/responses/compact", response_model=None, responses=COMPACT_RESPONSES)
async def compact_conversation(
    body: CompactRequest,
    request: Request,
    services: ServicesDep,
    sessions: SessionsDep,
    owner: OwnerDep,
    options: OptionsDep,
) -> Response:
    """Compact a conversation: the model writes a summary of it, which becomes one item. Nothing is stored.

    The output is the input of the next `POST /v1/responses`, as it is.
    """
    store, ticket = ResponseStore(sessions, owner, max_read_bytes=MAX_HISTORY_BYTES), ticket_of(request)
    asked, is_large = body.as_response(), is_large_body(request)
    await _require_text(request, asked, is_large=is_large)
    model_id = served_model(services.engine, body.model, options.strict_model)
    begin_with = partial(
        ResponseBeginning, asked, model_id, services, ticket, hosted=options.hosted_tools, is_large=is_large
    )
    beginning = await in_thread_if(is_large, begin_with)
    _, earlier = await read_history(store, asked)
    compacted = beginning.compact(store, earlier)
    answer = await pooled(request, services.engine, compacted, _encoded, lambda made: beginning.is_large)
    return await name_ignored(answer, request, body, services.engine, model_id, ["prompt_cache_key"])


@router.get("/responses/{response_id}", response_model=None, responses=RETRIEVE_RESPONSES)
async def retrieve_response(
    sessions: SessionsDep,
    owner: OwnerDep,
    response_id: ResponseId,
    stream: bool = False,
    starting_after: Annotated[int | None, Query(ge=-1, description="only events after this `sequence_number`")] = None,
    last_event_id: LastEventId = None,
    last_event_id_query: LastEventIdQuery = None,
) -> Response:
    """Retrieve a stored response, or stream its events after any point, past and future ones."""
    store = ResponseStore(sessions, owner)
    session = await store.response(response_id)
    cursor = parse_cursor(last_event_id, last_event_id_query, response_id)
    if cursor:
        if cursor[1] == session.latest.last_index:
            return Response(status_code=204)  # else an EventSource would reconnect forever
        return await _followed(session, cursor[1])
    if stream:
        return await _followed(session, -1 if starting_after is None else starting_after)
    response = await store.current(session)
    return await json_response(lambda: response, is_large=store.num_bytes_read > _LARGE_EVENT_BYTES)


@router.delete("/responses/{response_id}", responses=DELETE_RESPONSES)
async def delete_response(sessions: SessionsDep, owner: OwnerDep, response_id: ResponseId) -> dict[str, Any]:
    """Delete a stored response. A running one is cancelled. Its conversation, if it has one, keeps its items."""
    store = ResponseStore(sessions, owner)
    session = await store.response(response_id)
    await sessions.cancel(owner, response_id, RESPONSE)
    with suppress(NotFound):  # its items are not stored: nothing is left to keep
        output = (await store.current(session))["output"]
        await move_items_to_conversation(store, session, output, is_bounded=True)
    await sessions.delete(session)
    return {"id": response_id, "object": "response", "deleted": True}


@router.post("/responses/{response_id}/cancel", responses=CANCEL_RESPONSE_RESPONSES)
async def cancel_response(sessions: SessionsDep, owner: OwnerDep, response_id: ResponseId) -> dict[str, Any]:
    """Cancel a response, in the background or not. Idempotent: a finished response does not change."""
    store = ResponseStore(sessions, owner)
    session = await store.response(response_id)
    await sessions.cancel(owner, response_id, RESPONSE)
    return await store.current(session)


@router.get("/responses/{response_id}/input_items", responses=INPUT_ITEMS_RESPONSES)
async def list_input_items(
    sessions: SessionsDep, owner: OwnerDep, response_id: ResponseId, page: ItemPageDep
) -> dict[str, Any]:
    """List the input of a response: input and output of all earlier responses, then its own input."""
    store = ResponseStore(sessions, owner)
    return await page.of(store, await store.all_input_items(await store.response(response_id)))


def _encoded(compacted: dict[str, Any]) -> bytes:
    return json.dumps(compacted, ensure_ascii=False, separators=(",", ":")).encode()


async def _require_text(request: Request, body: ResponseRequest, *, is_large: bool) -> None:
    if _HALF_A_PAIR.search(await request.body()):
        await in_thread_if(is_large, lambda: require_encodable(body.model_dump()))


async def _whole(request: Request, session: Session, turn: Turn) -> Response:
    try:
        with failing_once(turn):
            events = await whole_turn(request, session, turn)
            return await json_response(
                partial(_response_of, events[-1]),
                session_headers(session),
                is_large=len(events[-1]) > _LARGE_EVENT_BYTES,
            )
    except ClientGone:
        return Response(status_code=CLIENT_CLOSED_REQUEST)


def _response_of(last_event: bytes) -> dict[str, Any]:
    response: dict[str, Any] = json.loads(last_event)["response"]
    if error := response["error"]:
        raise error_with_code(error["message"], "server_error", error["type"], error["param"])
    return response


async def _followed(session: Session, after: int) -> Response:
    """Streams the events after this one."""
    if after >= 0:
        await turn_behind(session, after)
    else:
        await session.recording.require(after)
    return event_stream(session, session.latest, after, ResponseFraming())
