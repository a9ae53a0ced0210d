"""A recorded answer as server-sent events: how a reader follows it, and how a whole answer is awaited.

Each dialect has a `Framing` of its own.
"""

from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import Any, Protocol, TypeVar

from fastapi import Request
from fastapi.responses import StreamingResponse

from tis.cancellation import Cancelled, race_cancel
from tis.errors import BadRequest, Draining, ServiceError
from tis.streaming.errors import StoreUnavailable
from tis.streaming.session import LastIndexOf, Session
from tis.streaming.stores.store import Event
from tis.streaming.turn import Turn

T = TypeVar("T")

HEARTBEAT = b": ping\n"  # ONE newline: after an `id:` a blank line makes the OpenAI SDK parse an empty event and fail
CLIENT_CLOSED_REQUEST = 499  # as proxies log it: nobody is there to read it
_MANY_EVENTS = 500
_MANY_BYTES = 256 * 1024
_RECONNECT_AFTER = b"retry: 1500\n"


class Framing(Protocol):
    """How events look on the wire: as no block, one or several."""

    def block(self, id_prefix: bytes, event: Event, retry: bytes) -> bytes: ...

    def error_block(self, error: ServiceError) -> bytes: ...


def parse_cursor(header: str | None, query: str | None, session_id: str | None) -> tuple[str, int] | None:
    """The header wins, because an EventSource updates it but not its URL. An empty one counts as absent."""
    given = (header or "").strip() or (query or "").strip()
    if not given:
        return None
    if session_id is not None and ":" not in given:
        given = f"{session_id}:{given}"  # the index is enough if the request names the session
    # From the right, so that a session id may contain colons.
    named, _, index = given.rpartition(":")
    if not (named and index.isascii() and index.isdigit() and len(index) < 19):
        raise BadRequest(
            f"Last-Event-ID must be <session>:<index>, got {given[:160]!r}.",
            param="last_event_id",
            code="invalid_last_event_id",
        )
    if session_id is not None and named != session_id:
        raise BadRequest(
            f"Last-Event-ID names session {named[:128]!r}, the body {session_id!r}.",
            param="last_event_id",
            code="session_mismatch",
        )
    return named, int(index)


async def turn_after_cursor(
    session: Session,
    index: int,
    last_index_of: LastIndexOf = attrgetter("last_index"),
    max_index_of: LastIndexOf = attrgetter("last_index"),
) -> Turn:
    """The turn that continues after a cursor. Raises if the cursor is invalid, or if events after it are evicted."""
    if session.is_cut and index >= session.recording.last_visible:
        raise session.cut_error()
    if session.may_be_behind and index > session.recording.last_visible:
        raise StoreUnavailable(
            f"Event {index} of session {session.id!r} is not stored yet. Retry later.",
            param="last_event_id",
            retry_after=1,
        )
    if index > max(session.recording.last_visible, max_index_of(session.latest) or 0):
        raise BadRequest(
            f"Session {session.id!r} has no event {index} yet. The cursor may come from another server.",
            param="last_event_id",
            code="invalid_last_event_id",
        )
    session.recording.require_durable(index)
    turn = session.turn_after(index, last_index_of)
    await session.recording.require(index)
    return turn


def event_stream(
    session: Session,
    turn: Turn,
    after: int,
    framing: Framing,
    *,
    media_type: str = "text/event-stream",
    heartbeat: bytes = HEARTBEAT,
) -> StreamingResponse:
    return StreamingResponse(
        _blocks(session, turn, after, framing, heartbeat),
        media_type=media_type,
        headers={"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no", **session_headers(session)},
    )


def session_headers(session: Session) -> dict[str, str]:
    return {"X-Session-Id": session.id} | ({"X-Session-Durability": "memory"} if session.is_volatile else {})


async def _blocks(session: Session, turn: Turn, after: int, framing: Framing, heartbeat: bytes) -> AsyncIterator[bytes]:
    id_prefix = b"%s:" % session.id.encode()
    with session.listening(turn, after) as reader:
        if reader.has_everything:
            return
        try:
            async for events in reader.batches():
                if not events:
                    if heartbeat:
                        yield heartbeat
                elif data := b"".join([_block(framing, id_prefix, event) for event in events]):
                    yield data
        except ServiceError as error:
            # About where this reader stands, not about the answer: no part of the recording, so without an id.
            yield framing.error_block(error)


def _block(framing: Framing, id_prefix: bytes, event: Event) -> bytes:
    return framing.block(id_prefix, event, b"" if event.index else _RECONNECT_AFTER)


class ClientGone(Exception):
    """Nobody waits for the answer any more."""


@contextmanager
def failing_once(turn: Turn) -> Iterator[None]:
    """An error says whether the request may be sent again: not if that would call tools twice."""
    try:
        yield
    except ServiceError as error:
        error.may_be_repeated = turn.may_be_repeated
        raise


async def whole_turn(request: Request, session: Session, turn: Turn) -> Sequence[bytes]:
    """All events of a turn, once it is over; leaving early counts as a reader that leaves."""
    return await while_connected(request, _all_events(session, turn))


def is_long(events: Sequence[bytes]) -> bool:
    """Whether to fold them would hold up the event loop for milliseconds."""
    return len(events) > _MANY_EVENTS or sum(map(len, events)) > _MANY_BYTES


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Cancels the work, and raises ClientGone, when the client closes its connection."""
    try:
        return await race_cancel(_disconnect(request), work)
    except Cancelled:
        raise ClientGone from None


async def _all_events(session: Session, turn: Turn) -> Sequence[bytes]:
    with session.listening(turn, turn.first_index - 1) as reader:
        events = [event.data async for events in reader.batches() for event in events]
        if not reader.has_everything:
            raise Draining  # the rest will be made after a restart
        return events


async def _disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
