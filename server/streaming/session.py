"""A session: one or more turns, recorded one after the other under one id."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, Protocol

from server.errors import Draining
from server.streaming.recording import Reader, Recording

# A turn begins a moment before its first reader listens; it must not be taken for left.
_FIRST_READER_SECONDS = 1.0

Status = Literal["running", "finished", "cancelled", "failed"]


class Source(Protocol):
    """Makes the events of one turn."""

    def events(self) -> AsyncIterator[Sequence[bytes]]: ...

    def cancel(self) -> None:
        """Ends the events soon, with a last one that says so."""
        ...

    def failure(self, error: Exception) -> bytes:
        """The event that tells readers why there are no more."""
        ...

    @property
    def was_cancelled(self) -> bool: ...

    @property
    def summary(self) -> bytes:
        """What belongs to the turn but to none of its events."""
        ...


class Turn:
    def __init__(self, recording: Recording, fingerprint: str, source: Source) -> None:
        self._recording = recording
        self.fingerprint = fingerprint
        self._source: Source | None = source
        self.first_index = recording.next_index
        self.last_index: int | None = None
        self.ended_at = 0.0
        self.status: Status = "running"
        self.summary = b""

    @property
    def is_running(self) -> bool:
        return self._source is not None

    def cancel(self) -> None:
        if self._source:
            self._source.cancel()

    async def record(self) -> None:
        """To the end, listener or not. Cancelled as a task, it ends with a reason that is no success."""
        source = self._source
        assert source
        try:
            async for events in source.events():
                self._recording.append(events)
        except asyncio.CancelledError:
            self._fail(Draining(), source)
        except Exception as error:  # whatever went wrong, the readers must hear that it is over
            self._fail(error, source)
        else:
            self._end("cancelled" if source.was_cancelled else "finished", source)

    def _fail(self, error: Exception, source: Source) -> None:
        source.cancel()
        self._recording.append([source.failure(error)])
        self._end("failed", source)

    def _end(self, status: Status, source: Source) -> None:
        self.status, self.summary = status, source.summary
        self.last_index = self._recording.next_index - 1
        self.ended_at = time.monotonic()
        self._source = None  # with the prompt and all that hangs on it
        for reader in self._recording.readers:
            reader.stop_at(self.last_index)


class Session:
    def __init__(
        self, owner: str, session_id: str, grace_seconds: float | None, recording: Recording, *, is_resumable: bool
    ) -> None:
        self.owner = owner
        self.is_resumable = is_resumable
        self.id = session_id
        # How long a turn may run with nobody listening; None is for ever.
        self._grace_seconds = grace_seconds
        self.recording = recording
        self.turns: list[Turn] = []
        self._unheard_since = time.monotonic()
        self._touched_at = time.monotonic()

    @property
    def is_forgettable(self) -> bool:
        return not self.is_running and not self.recording.readers

    @property
    def last_used_at(self) -> float:
        return max(self._touched_at, self.latest.ended_at)

    def touch(self) -> None:
        self._touched_at = time.monotonic()

    @property
    def latest(self) -> Turn:
        return self.turns[-1]

    @property
    def is_running(self) -> bool:
        return bool(self.turns) and self.latest.is_running

    def begin(self, turn: Turn) -> None:
        """Turns of which nothing is kept any more go."""
        oldest = self.recording.oldest_index
        self.turns = [one for one in self.turns if one.last_index is None or one.last_index >= oldest]
        self.turns.append(turn)
        self._unheard_since = time.monotonic() + _FIRST_READER_SECONDS
        self.touch()

    def turn_with(self, fingerprint: str) -> Turn | None:
        return next((turn for turn in reversed(self.turns) if turn.fingerprint == fingerprint), None)

    def turn_after(self, index: int) -> Turn:
        """The turn that a reader who has everything up to `index` goes on with."""
        for turn in self.turns:
            if turn.last_index is None or index < turn.last_index:
                return turn
        return self.latest

    @contextmanager
    def listening(self, turn: Turn, after: int) -> Iterator[Reader]:
        """A listener to one turn, counted for as long as it stays."""
        reader = Reader(self.recording, max(after, turn.first_index - 1))
        if turn.last_index is not None:
            reader.stop_at(turn.last_index)
        self.recording.readers.add(reader)
        try:
            yield reader
        finally:
            self.recording.readers.discard(reader)
            self._unheard_since = time.monotonic()
            self.touch()
            self.cancel_if_unheard()

    def cancel_if_unheard(self) -> None:
        if self._grace_seconds is None or self.recording.readers or not self.is_running:
            return
        if time.monotonic() - self._unheard_since >= self._grace_seconds:
            self.latest.cancel()
