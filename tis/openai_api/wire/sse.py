"""How events of chats and responses look on the wire, with the usage that a reader wants."""

import json
from dataclasses import dataclass

from fastapi.responses import StreamingResponse

from tis.errors import ServiceError
from tis.http.error_handlers import error_body
from tis.http.event_stream import Framing, event_stream, turn_after_cursor
from tis.openai_api.wire import chat_writer
from tis.openai_api.wire.chat_writer import DONE, error_event
from tis.streaming.errors import SessionConflict
from tis.streaming.session import Session
from tis.streaming.source import Block
from tis.streaming.stores.store import Event
from tis.streaming.turn import Turn

_BEFORE_NAME = len(b'{"type":"')


class ChatFraming:
    def block(self, id_prefix: bytes, event: Event, retry: bytes) -> bytes:
        if event.data.startswith(b'{"type":"'):  # of another dialect, which has named events
            return ResponseFraming().block(id_prefix, event, retry)
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


def require_dialect(turn: Turn, dialect: str) -> None:
    """A session may have answers of several APIs. The fingerprint of one that is no chat begins with its dialect."""
    found = turn.fingerprint.partition(":")[0] if ":" in turn.fingerprint else chat_writer.DIALECT
    if found != dialect:
        raise SessionConflict(
            f"This answer was requested by another API ({found}). Read it with GET /v1/stream and the id of its "
            "session, or resume it where it began.",
            param="session_id",
        )


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
            return 0  # the turn has not ended, or failed
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


async def turn_behind(session: Session, index: int, view: UsageView = AS_RECORDED) -> Turn:
    """The turn that continues after a cursor, for a reader with this view."""
    return await turn_after_cursor(session, index, view.last_index, view.max_index)


async def follow(session: Session, turn: Turn, after: int, view: UsageView = AS_RECORDED) -> StreamingResponse:
    """Streams a chat. Raises before the stream begins, while the server can still send a 410, if events are evicted."""
    framing, after = view.framing(session, turn, after)
    await session.recording.require(after)
    return event_stream(session, turn, after, framing)
