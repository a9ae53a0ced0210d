"""The events of a session, numbered from 0 without holes, and the readers that follow them."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass

from server.errors import ReplayGap

FEWEST_EVENTS_KEPT = 2048
MOST_BYTES_KEPT = 8 * 2**20


@dataclass(slots=True)  # not frozen: made for every token, and a frozen one takes three times as long
class Event:
    index: int
    data: bytes


class Recording:
    """Keeps the newest events up to a bound; a reader that asks for older ones gets a `ReplayGap`, never a hole."""

    def __init__(self, events_kept: int = FEWEST_EVENTS_KEPT, bytes_kept: int = MOST_BYTES_KEPT) -> None:
        self.events_kept = events_kept
        self._bytes_kept = bytes_kept
        self._events: list[Event] = []
        self.num_bytes = 0
        self.next_index = 0
        self.readers: set[Reader] = set()

    @property
    def oldest_index(self) -> int:
        return self.next_index - len(self._events)

    def append(self, data: Iterable[bytes]) -> None:
        for one in data:
            self._events.append(Event(self.next_index, one))
            self.num_bytes += len(one)
            self.next_index += 1
        self._forget_oldest()
        self.wake_readers()

    def after(self, index: int) -> Sequence[Event]:
        if index + 1 < self.oldest_index:
            raise ReplayGap(
                f"Event {index + 1} is no longer kept; the oldest is {self.oldest_index}.", param="last_event_id"
            )
        return self._events[index + 1 - self.oldest_index :]

    def wake_readers(self) -> None:
        for reader in self.readers:
            reader.wake()

    def _forget_oldest(self) -> None:
        # A quarter over the bound before anything goes: dropping from the front of a list moves all the rest.
        if len(self._events) <= self.events_kept * 5 // 4 and self.num_bytes <= self._bytes_kept:
            return
        surplus = max(0, len(self._events) - self.events_kept)
        size = self.num_bytes - sum(len(event.data) for event in self._events[:surplus])
        while size > self._bytes_kept and surplus < len(self._events) - 1:
            size -= len(self._events[surplus].data)
            surplus += 1
        del self._events[:surplus]
        self.num_bytes = size


class Reader:
    """One listener with a cursor of its own. Slow or dead, it holds up nobody."""

    def __init__(self, recording: Recording, after: int) -> None:
        self._recording = recording
        self._cursor = after
        self._stop_at: int | None = None
        self._waiting: asyncio.Future[None] | None = None
        self._last_sign = time.monotonic()

    async def batches(self) -> AsyncIterator[Sequence[Event]]:
        """All events that have come since the last look; an empty batch is a sign of life for an idle connection."""
        while self._stop_at is None or self._cursor < self._stop_at:
            events = self._new_events()
            if not events:
                await self._wait()
                events = self._new_events()
                if not events and self._stop_at is not None and self._cursor >= self._stop_at:
                    return
            self._last_sign = time.monotonic()
            yield events

    def wake(self) -> None:
        if self._waiting and not self._waiting.done():
            self._waiting.set_result(None)

    def stop_at(self, last_index: int) -> None:
        """The turn it reads ends with this event. Said once: later turns are not for this reader."""
        if self._stop_at is None:
            self._stop_at = last_index
            self.wake()

    def wake_if_idle(self, seconds: float) -> None:
        if time.monotonic() - self._last_sign >= seconds:
            self.wake()

    def _new_events(self) -> Sequence[Event]:
        events = self._recording.after(self._cursor)
        if self._stop_at is not None:
            events = [event for event in events if event.index <= self._stop_at]
        if events:
            self._cursor = events[-1].index
        return events

    async def _wait(self) -> None:
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            await self._waiting
        finally:
            self._waiting = None
