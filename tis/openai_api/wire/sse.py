"""Server-sent events of a recorded answer: where a reader begins, how events look, how a whole answer is awaited."""

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from fastapi import Request
from fastapi.responses import StreamingResponse

from tis.cancellation import Cancelled, race_cancel
from tis.errors import BadRequest, Draining, ServiceError
from tis.http.error_handlers import error_body
from tis.openai_api.wire.chat_writer import DONE, error_event
from tis.streaming.session import Session
from tis.streaming.source import Block
from tis.streaming.stores.store import Event
from tis.streaming.turn import Turn

HEARTBEAT = b": ping\n"  # ONE newline: after an `id:` a blank line makes the OpenAI SDK parse an empty event and fail
CLIENT_CLOSED_REQUEST = 499  # as proxies log it: nobody is there to read it
_RECONNECT_AFTER = b"retry: 1500\n"
_BEFORE_NAME = len(b'{"type":"')


class Framing(Protocol):
    """How events look on the wire: as no block, one or several."""

    def block(self, id_prefix: bytes, event: Event, retry: bytes) -> bytes: ...

    def error_block(self, error: ServiceError) -> bytes: ...


class ChatFraming:
    def block(self, id_prefix: bytes, event: Event, retry: bytes) -> bytes:
        return b"id: %s%d\n%sdata: %s\n\n" % (id_prefix, event.index, retry, event.data)

    def error_block(self, error: ServiceError) -> bytes:
        return b"data: " + error_event(error) + b"\n\n"


class ResponseFraming:
    def block(self, id_prefix: bytes, event: Event, retry: bytes) -> bytes:
        return b"id: %s%d\n%sevent: %s\ndata: %s\n\n" % (id_prefix, event.index, retry, _name(event.data), event.data)

    def error_block(self, error: ServiceError) -> bytes:
        """An error of one reader, not of the response. Also nested: OpenAI's client raises only nested errors."""
        flat = error_body(error)["error"]
        body = {**flat, "type": "error", "sequence_number": 0, "error": flat}
        return b"event: error\ndata: %s\n\n" % json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def _name(data: bytes) -> bytes:
    return data[_BEFORE_NAME : data.index(b'"', _BEFORE_NAME)] if data.startswith(b'{"type":"') else b"error"


@dataclass(frozen=True, slots=True)
class UsageView:
    """Which readers of a chat get its usage: as their `stream_options` say, or else those of the first request.

    An answer is recorded as its first request wanted it: with the usage as event n and `[DONE]` as n + 1, or with
    `[DONE]` as n and the usage in the summary of the turn. Others get the other form of the same events.
    """

    with_usage: bool | None = None  # None: as recorded

    def last_index(self, turn: Turn) -> int | None:
        """The index of the last event that this reader gets; None while the turn runs."""
        if turn.last_index is None or turn.status == "failed":
            return turn.last_index
        return turn.last_index + self._num_more_events(turn)

    def max_index(self, turn: Turn) -> int | None:
        """The largest index that any reader gets."""
        return (
            turn.last_index if turn.last_index is None else max(turn.last_index, UsageView(True).last_index(turn) or 0)
        )

    def framing(self, session: Session, turn: Turn, after: int) -> tuple[Framing, int]:
        """How the events look that come after this cursor, and the cursor in the recording."""
        num_more = self._num_more_events(turn)
        if num_more < 0:
            return _WithoutUsage(), after
        if num_more == 0:
            return ChatFraming(), after
        last_recorded = session.recording.last_visible if turn.last_index is None else turn.last_index
        # Two blocks come of the last event: a client that has the first of them needs that event once more.
        return _WithUsage(session, turn, after), after - (turn.first_index <= after == last_recorded)

    def _num_more_events(self, turn: Turn) -> int:
        """More than are recorded."""
        if self.with_usage is None:
            return 0
        summary = json.loads(turn.summary or b"{}")
        if "usage_chunk" not in summary:
            return 0  # version 0.1 recorded it
        return int(self.with_usage) - int(summary["usage_chunk"] is None)


class _WithUsage(ChatFraming):
    def __init__(self, session: Session, turn: Turn, after: int) -> None:
        self._recording = session.recording
        self._turn = turn
        self._after = after

    def block(self, id_prefix: bytes, event: Event, retry: bytes) -> bytes:
        if event.data == DONE:
            self._reserve(event.index + 1)
            events = [Event(event.index, self._usage()), Event(event.index + 1, DONE)]
        elif event.data.startswith(b'{"id":'):
            events = [Event(event.index, event.data[:-1] + b',"usage":null}')]
        else:
            events = [event]  # an error
        return b"".join(
            super(_WithUsage, self).block(id_prefix, one, retry) for one in events if one.index > self._after
        )

    def _usage(self) -> bytes:
        return bytes(json.loads(self._turn.summary)["usage_chunk"], "utf-8")

    def _reserve(self, index: int) -> None:
        """Else the next turn would begin with the index that this reader's `[DONE]` has."""
        if self._turn.last_index == index - 1 == self._recording.next_index - 1:
            self._recording.append([Block(DONE)])


class _WithoutUsage(ChatFraming):
    def block(self, id_prefix: bytes, event: Event, retry: bytes) -> bytes:
        if event.data == DONE:
            return b""
        if b',"choices":[],' in event.data:  # in a JSON string the quotes would be escaped
            data = DONE
        else:
            before, _, after = event.data.rpartition(b'],"usage":null')
            data = before + b"]" + after if before else event.data
        return super().block(id_prefix, Event(event.index, data), retry)


AS_RECORDED = UsageView()


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


async def turn_behind(session: Session, index: int, view: UsageView = AS_RECORDED) -> Turn:
    """The turn that continues after a cursor. Raises if the cursor is invalid, or if events after it are evicted."""
    if session.is_cut and index >= session.recording.last_visible:
        raise session.cut_error()
    if index > max(session.recording.last_visible, view.max_index(session.latest) or 0):
        raise BadRequest(
            f"Session {session.id!r} has no event {index} yet. The cursor may come from another server.",
            param="last_event_id",
            code="invalid_last_event_id",
        )
    session.recording.require_durable(index)
    turn = session.turn_after(index, view.last_index)
    await session.recording.require(index)
    return turn


async def follow(session: Session, turn: Turn, after: int, view: UsageView = AS_RECORDED) -> StreamingResponse:
    """Streams a chat. Raises before the stream begins, while the server can still send a 410, if events are evicted."""
    framing, after = view.framing(session, turn, after)
    await session.recording.require(after)
    return event_stream(session, turn, after, framing)


def event_stream(session: Session, turn: Turn, after: int, framing: Framing) -> StreamingResponse:
    return StreamingResponse(
        _blocks(session, turn, after, framing),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no", **session_headers(session)},
    )


def session_headers(session: Session) -> dict[str, str]:
    return {"X-Session-Id": session.id} | ({"X-Session-Durability": "memory"} if session.is_volatile else {})


async def _blocks(session: Session, turn: Turn, after: int, framing: Framing) -> AsyncIterator[bytes]:
    id_prefix = b"%s:" % session.id.encode()
    with session.listening(turn, after) as reader:
        if reader.has_everything:
            return
        try:
            async for events in reader.batches():
                if not events:
                    yield HEARTBEAT
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
    try:
        return await race_cancel(_disconnect(request), _all_events(session, turn))
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
