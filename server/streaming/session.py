"""A session: one or more turns, recorded one after the other under one id."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from server.errors import Draining, Unavailable
from server.streaming.event import Event
from server.streaming.recording import Reader, Recording
from server.streaming.source import Digest, Source
from server.streaming.stores.store import KeptSession, KeptTurn, Status, Store

# A turn begins a moment before its first reader listens; it must not be taken for left.
_FIRST_READER_SECONDS = 1.0


class Turn:
    def __init__(self, recording: Recording, store: Store, kept: KeptTurn, source: Source | None) -> None:
        self._recording = recording
        self._store = store
        self.kept = kept
        self._source = source
        self.digest: Digest | None = source.digest if source else None
        self._is_suspended = False
        self._cancel_asked = asyncio.Event()

    @property
    def fingerprint(self) -> str:
        return self.kept.fingerprint

    @property
    def first_index(self) -> int:
        return self.kept.first_index

    @property
    def last_index(self) -> int | None:
        return self.kept.last_index

    @property
    def status(self) -> Status:
        return self.kept.status

    @property
    def summary(self) -> bytes:
        return self.kept.summary

    @property
    def is_running(self) -> bool:
        return self.kept.last_index is None

    @property
    def is_worth_repeating(self) -> bool:
        return self.kept.is_worth_repeating

    @property
    def is_durable(self) -> bool:
        return self._store.durability == "durable"

    @property
    def attachments(self) -> Mapping[str, bytes]:
        return self._source.attachments if self._source else {}

    def go_on_with(self, source: Source) -> None:
        """After an interruption."""
        self._source = source
        if self._recording.next_index == self.first_index:
            self.digest = source.digest  # one that missed the beginning would tell half the text as all of it

    def cancel(self) -> None:
        if self._source:
            self._source.cancel()
            self._cancel_asked.set()

    def suspend(self) -> None:
        """Said before its recorder is cancelled: it is not over, another process will go on with it."""
        self._is_suspended = True

    async def record(self) -> None:
        """To the end, listener or not. Cancelled as a task, it ends with a reason that is no success."""
        source = self._source
        assert source
        try:
            await self._record_all(source)
        except asyncio.CancelledError:
            if self._is_suspended:
                source.cancel()
            else:
                self._fail(Draining(), source)
        except Exception as error:  # whatever went wrong, the readers must hear that it is over
            self._fail(error, source)
        else:
            self._end(source.outcome, source)

    async def _record_all(self, source: Source) -> None:
        while True:
            try:
                async for blocks in source.events():
                    self._recording.append(blocks)
                return
            except Unavailable as not_yet:
                if not source.waits_to_go_on:
                    raise
                self._recording.tell(not_yet)
                await self._pause(not_yet.retry_after or 1)

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._cancel_asked.wait()
        except TimeoutError:
            pass

    def _fail(self, error: Exception, source: Source) -> None:
        source.cancel()
        self.kept.is_worth_repeating = isinstance(error, Unavailable)
        self._recording.append([source.failure(error)])
        self._end("failed", source)

    def _end(self, status: Status, source: Source) -> None:
        kept = self.kept
        kept.status, kept.summary = status, source.summary
        kept.last_index = self._recording.next_index - 1
        kept.ended_at = self._store.now()
        kept.request, kept.attachments = b"", {}  # with the prompt and all that hangs on it
        self._source = None
        self._store.end(self._recording.key, kept)
        for reader in self._recording.readers:
            reader.stop_at(kept.last_index)


class Session:
    def __init__(
        self,
        kept: KeptSession,
        recording: Recording,
        store: Store,
        grace_seconds: float | None = None,
        most_attached: int = 64 * 2**20,
    ) -> None:
        self._kept = kept
        self.recording = recording
        self._store = store
        # How long a turn may run with nobody listening; None is for ever.
        self._grace_seconds = grace_seconds
        self._most_attached = most_attached
        self.turns = [Turn(recording, store, turn, None) for turn in kept.turns]
        recording.when_forgotten = self._digest

    @property
    def id(self) -> str:
        return self._kept.key.id

    @property
    def owner(self) -> str:
        return self._kept.key.owner

    @property
    def is_named(self) -> bool:
        return self._kept.is_named

    @property
    def is_resumable(self) -> bool:
        """By the one who asked, or by anybody: an answer that is neither streamed nor named can be found by nobody."""
        return self._kept.is_resumable

    @property
    def is_forgettable(self) -> bool:
        return not self.is_running and not self.recording.readers

    @property
    def last_used_at(self) -> float:
        return max(self._kept.used_at, self.latest.kept.ended_at)

    @property
    def latest(self) -> Turn:
        return self.turns[-1]

    @property
    def is_running(self) -> bool:
        return bool(self.turns) and self.latest.is_running

    def as_kept(self) -> KeptSession:
        kept = self._kept
        if self.is_running:  # what another process began may have been read since
            self.latest.kept.attachments = self._bounded(self.latest.attachments)
        kept.turns = [turn.kept for turn in self.turns]
        kept.first_kept, kept.next_index = self.recording.window_start, self.recording.next_index
        return kept

    def touch(self) -> None:
        self._kept.used_at = self._store.now()

    def begin(self, fingerprint: str, source: Source) -> Turn:
        self._drop_lost_turns()
        self.touch()
        number = self.turns[-1].kept.number + 1 if self.turns else 0
        kept = KeptTurn(number, fingerprint, b"", self.recording.next_index)
        if self._store.durability != "memory":
            kept.request, kept.attachments = source.request, self._bounded(source.attachments)
        turn = Turn(self.recording, self._store, kept, source)
        self.turns.append(turn)
        self._kept.unheard_since = None if self.recording.readers else self._store.now() + _FIRST_READER_SECONDS
        self._store.begin(self._kept, kept, self._most_attached)
        return turn

    def _bounded(self, attachments: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """All or none: a part of what a request was made of is of no use to whoever goes on with it."""
        return attachments if sum(map(len, attachments.values())) <= self._most_attached else {}

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
        if not self.recording.readers:
            self._note_readers(unheard_since=None)
        self.recording.readers.add(reader)
        try:
            yield reader
        finally:
            self.recording.readers.discard(reader)
            if not self.recording.readers:
                self._note_readers(unheard_since=self._store.now())
            self.cancel_if_unheard()

    def left_by_all(self) -> None:
        """Whoever listened to the process before is gone with it; how long that was already so still counts."""
        if self._kept.unheard_since is None:
            self._note_readers(unheard_since=self._store.now())
        self.cancel_if_unheard()

    def cancel_if_unheard(self) -> None:
        unheard_since = None if self.recording.readers else self._kept.unheard_since
        if self._grace_seconds is None or unheard_since is None or not self.is_running:
            return
        if self._store.now() - unheard_since >= self._grace_seconds:
            self.latest.cancel()

    def _note_readers(self, unheard_since: float | None) -> None:
        self.touch()
        self._kept.unheard_since = unheard_since
        self._store.note(self._kept.key, self._kept.used_at, unheard_since)

    def _drop_lost_turns(self) -> None:
        """Turns of which nothing can be read any more."""
        if self._store.durability == "memory":
            oldest = self.recording.window_start
            self.turns = [turn for turn in self.turns if turn.last_index is None or turn.last_index >= oldest]

    def _digest(self, events: Sequence[Event]) -> None:
        for turn in self.turns:
            last = self.recording.next_index if turn.last_index is None else turn.last_index
            if turn.digest and (lost := [one for one in events if turn.first_index <= one.index <= last]):
                turn.digest.forgotten(lost)
