"""The events of a session, numbered from 0 without holes, and the readers that follow them."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from typing import overload

from tis.errors import ServiceError
from tis.observability.metrics import SESSION_EVENTS
from tis.streaming.errors import ReplayGap, StoreUnavailable
from tis.streaming.source import Block
from tis.streaming.stores.store import Event, SessionKey, Store

MIN_WINDOW_EVENTS = 2048
MAX_WINDOW_BYTES = 8 * 2**20
# A stalled connection holds up to one read in memory.
_MAX_EVENTS_PER_READ = 256
_MAX_BYTES_PER_READ = 16 * 2**10  # or one event


@dataclass(slots=True)
class WindowLimits:
    """How much a recording keeps in memory, whatever its store has."""

    max_events: int = MIN_WINDOW_EVENTS
    max_bytes: int = MAX_WINDOW_BYTES


class EventWindow(Sequence[Event]):
    """Events with numbers in a row, kept as bytes: the garbage collector would walk each `Event`, of millions."""

    def __init__(self, next_index: int) -> None:
        self._first_index = next_index
        self._data: list[bytes] = []
        self._resume_states: list[bytes] = []

    def __len__(self) -> int:
        return len(self._data)

    @overload
    def __getitem__(self, place: int) -> Event: ...
    @overload
    def __getitem__(self, place: slice) -> list[Event]: ...
    def __getitem__(self, place: int | slice) -> Event | list[Event]:
        places = range(len(self._data))[place]
        if isinstance(places, range):
            return [self._event(one) for one in places]
        return self._event(places)

    def append(self, data: bytes, resume_state: bytes) -> None:
        self._data.append(data)
        self._resume_states.append(resume_state)

    def num_bytes(self, count: int) -> int:
        """Of the oldest events."""
        return sum(map(len, self._data[:count]))

    def num_bytes_at(self, place: int) -> int:
        return len(self._data[place])

    def drop_newest(self, count: int) -> None:
        del self._data[len(self._data) - count :]
        del self._resume_states[len(self._resume_states) - count :]

    def drop(self, count: int) -> None:
        del self._data[:count]
        del self._resume_states[:count]
        self._first_index += count

    def _event(self, place: int) -> Event:
        return Event(self._first_index + place, self._data[place], self._resume_states[place])


class Recording:
    """A window on the newest events; older ones come from the store, or are a `ReplayGap`, never a hole.

    An event becomes visible to readers once the store has committed it. If the store is degraded, it becomes visible
    at once: the answer continues, and a cursor beyond the last durable event gets a `StoreUnavailable`.
    """

    def __init__(self, key: SessionKey, store: Store, limits: WindowLimits, next_index: int = 0) -> None:
        self.key = key
        self.limits = limits
        self._store = store
        self._older_store = store
        self._window = EventWindow(next_index)
        self.num_bytes = 0
        self.next_index = next_index
        self.last_visible = self.last_durable = next_index - 1
        self.readers: set[Reader] = set()
        self.is_closed = False

    @property
    def window(self) -> Sequence[Event]:
        return self._window

    @property
    def window_start(self) -> int:
        return self.next_index - len(self._window)

    def append(self, blocks: Iterable[Block]) -> None:
        keeps_resume_states = self._store.durability != "memory"
        first = self.next_index
        for block in blocks:
            self._window.append(block.data, block.resume_state if keeps_resume_states else b"")
            self.num_bytes += len(block.data)
            self.next_index += 1
        if self.next_index == first:
            return
        SESSION_EVENTS.add(self.next_index - first)
        new = self._window[first - self.next_index :]
        self._store.append(self.key, new, self._on_committed)
        if self._store.durability == "degraded":
            self.make_all_visible()

    def take(self, events: Iterable[Event]) -> None:
        """Adds events that another process has stored; those that are here already are left out."""
        first = self.next_index
        for event in events:
            if event.index == self.next_index:
                self._window.append(event.data, event.resume_state)
                self.num_bytes += len(event.data)
                self.next_index += 1
        if self.next_index > first:  # else the newest may be events of this process that are stored nowhere
            self._on_committed(self.next_index - 1)

    def jump_to(self, next_index: int) -> None:
        """Leaves out what another process has stored: whoever wants it gets it from the store."""
        if next_index > self.next_index:
            self._restart(next_index)

    def rewind(self) -> None:
        """Drops what was never stored: another process makes these events. Who has seen some must come again."""
        if self.next_index <= self.last_durable + 1:
            return
        later = StoreUnavailable("Another server goes on with this answer. Resume it there.", retry_after=1)
        for reader in self.readers:
            if reader.cursor > self.last_durable:
                reader.fail(later)
        if self.window_start > self.last_durable + 1:
            self._restart(self.last_durable + 1)
            return
        surplus = self.next_index - 1 - self.last_durable
        self.num_bytes -= sum(len(event.data) for event in self._window[-surplus:])
        self._window.drop_newest(surplus)
        self.next_index -= surplus
        self.last_visible = self.last_durable

    def _restart(self, next_index: int) -> None:
        self._window, self.num_bytes = EventWindow(next_index), 0
        self.next_index = next_index
        self.last_visible = self.last_durable = next_index - 1

    def move_to(self, store: Store) -> None:
        """Continues in another store, after the first has rejected the session: no commit is pending any more.

        Events that the first has committed stay there, and are read from it.
        """
        self._store = store
        self.make_all_visible()

    def make_all_visible(self) -> None:
        self._make_visible(self.next_index - 1)

    def ready_after(self, index: int) -> Sequence[Event] | None:
        """Returns visible events behind this index; None if the next one lies before the window."""
        start = index + 1 - self.window_start
        end = min(start + _MAX_EVENTS_PER_READ, self.last_visible + 1 - self.window_start)
        return None if start < 0 else self._window[start:end]

    async def older_after(self, index: int, limit: int = 256) -> Sequence[Event]:
        """Reads events before the window from the store. If it has none, that is a gap, or they are not on disk yet."""
        if events := await self._older_store.read(self.key, index, limit):
            return events
        if index >= self.last_durable:
            raise StoreUnavailable(
                f"Event {index + 1} is not on disk yet. Retry later.", param="last_event_id", retry_after=5
            )
        raise ReplayGap(f"Event {index + 1} is no longer kept.", param="last_event_id")

    async def events_from(self, first_index: int) -> AsyncIterator[Sequence[Event]]:
        """All from this index on, also those that readers do not see yet. What is gone is left out."""
        index = first_index - 1
        while index + 1 < self.next_index:
            try:
                place = index + 1 - self.window_start
                some = (
                    self._window[place : place + _MAX_EVENTS_PER_READ] if place >= 0 else await self.older_after(index)
                )
            except ReplayGap:
                index = self.window_start - 1
                continue
            yield some
            index = some[-1].index

    async def event(self, index: int) -> Event:
        """Returns a visible event. Raises what a reader of it would get."""
        events = self.ready_after(index - 1) or await self.older_after(index - 1, limit=1)
        return events[0]

    async def require(self, after: int) -> None:
        """Raises what a reader with this cursor would get, while the HTTP status can still say so."""
        if after + 1 < self.window_start:
            await self.older_after(after, limit=1)

    def require_durable(self, index: int) -> None:
        if self._store.durability == "degraded" and index > self.last_durable:
            raise StoreUnavailable(
                f"Events after {max(self.last_durable, 0)} are not on disk yet; try again soon.",
                param="last_event_id",
                retry_after=5,
            )

    def drop_window(self) -> None:
        """Frees memory: drops the events that a durable store has committed."""
        self._drop(max(0, self.last_durable + 1 - self.window_start))

    def forget_before(self, index: int) -> None:
        self._drop(max(0, index - self.window_start))

    def fail_readers(self, error: ServiceError) -> None:
        """Raises the error in the readers connected now. It is not recorded: a later reader may succeed."""
        for reader in self.readers:
            reader.fail(error)

    def close(self) -> None:
        """Ends the readers where they are; another process resumes the session."""
        self.is_closed = True
        for reader in self.readers:
            reader.wake()

    def _on_committed(self, index: int) -> None:
        self.last_durable = max(self.last_durable, index)
        self._make_visible(index)

    def _make_visible(self, index: int) -> None:
        if index > self.last_visible:
            self.last_visible = index
            self._trim()
            for reader in self.readers:
                reader.wake()

    def _trim(self) -> None:
        # Trims only a quarter over the limit: deleting from the front of a list moves all other elements.
        if len(self._window) <= self.limits.max_events * 5 // 4 and self.num_bytes <= self.limits.max_bytes:
            return
        num_visible = self.last_visible + 1 - self.window_start
        surplus = min(max(0, len(self._window) - self.limits.max_events), num_visible)
        size = self.num_bytes - self._window.num_bytes(surplus)
        while size > self.limits.max_bytes and surplus < min(len(self._window) - 1, num_visible):
            size -= self._window.num_bytes_at(surplus)
            surplus += 1
        if surplus:
            self._drop(surplus)

    def _drop(self, surplus: int) -> None:
        self.num_bytes -= self._window.num_bytes(surplus)
        self._window.drop(surplus)


class Reader:
    """One connection with its own cursor. A slow or dead reader blocks no other."""

    def __init__(self, recording: Recording, after: int) -> None:
        self._recording = recording
        self.cursor = after
        self._stop_at: int | None = None
        self._error: ServiceError | None = None
        self._final_error: ServiceError | None = (
            None  # raised after the last event, if the recording could not store it as one
        )
        self._waiting: asyncio.Future[None] | None = None
        self._last_sent = time.monotonic()
        self._is_idle = False

    @property
    def has_everything(self) -> bool:
        return self._stop_at is not None and self.cursor >= self._stop_at

    async def batches(self) -> AsyncIterator[Sequence[Event]]:
        """Yields all events since the last batch; an empty batch asks for a heartbeat on an idle connection."""
        while not self.has_everything:
            events = await self._new_events()
            if not events and self._recording.is_closed:
                return
            if events or self._is_idle:
                self._last_sent, self._is_idle = time.monotonic(), False
                yield events
            else:
                await self._wait()
        if self._final_error:
            raise self._final_error.with_traceback(None)  # one error for all readers

    def wake(self) -> None:
        if self._waiting and not self._waiting.done():
            self._waiting.set_result(None)

    def fail(self, error: ServiceError) -> None:
        self._error = error
        self.wake()

    def stop_at(self, last_index: int, error: ServiceError | None = None) -> None:
        """Ends the reader behind this event, the last of its turn, and then raises the error, if any."""
        if self._stop_at is None:
            self._stop_at, self._final_error = last_index, error
            self.wake()

    def wake_if_idle(self, seconds: float) -> None:
        if time.monotonic() - self._last_sent >= seconds:
            self._is_idle = True
            self.wake()

    async def _new_events(self) -> Sequence[Event]:
        if self._error:
            raise self._error
        events = self._recording.ready_after(self.cursor)
        if events is None:
            events = await self._recording.older_after(self.cursor)
        if len(events) > 1:
            events = _bounded(events)
        if self._stop_at is not None:
            events = [event for event in events if event.index <= self._stop_at]
        if events:
            self.cursor = events[-1].index
        return events

    async def _wait(self) -> None:
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            await self._waiting
        finally:
            self._waiting = None


def _bounded(events: Sequence[Event]) -> Sequence[Event]:
    """The first of them, up to the bytes of one read."""
    num_bytes = 0
    for number, event in enumerate(events):
        num_bytes += len(event.data)
        if number and num_bytes > _MAX_BYTES_PER_READ:
            return events[:number]
    return events
