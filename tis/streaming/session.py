"""A session: one or more turns under one id, recorded one after the other."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from operator import attrgetter

from tis.observability.spans import current_span
from tis.streaming.archive.archiving_store import ArchivingStore
from tis.streaming.archive.records import SessionRow
from tis.streaming.errors import ReplayGap, SessionConflict
from tis.streaming.recording import Reader, Recording
from tis.streaming.retention import Retention, SessionLimits
from tis.streaming.source import Source
from tis.streaming.stores.shared_store import SharedStore
from tis.streaming.stores.store import SessionRecord, Store, TurnRecord
from tis.streaming.turn import Turn

# A turn begins before its first reader connects; without this margin it would be cancelled for want of a reader.
_FIRST_READER_SECONDS = 1.0
_LONG_SECONDS = 3600.0
# A store that has not written something for so long is degraded.
_SURELY_STORED_SECONDS = 30.0


LastIndexOf = Callable[[Turn], int | None]


class Session:
    def __init__(self, record: SessionRecord, recording: Recording, store: Store, limits: SessionLimits) -> None:
        self._record = record
        self.recording = recording
        self._store = self._older_store = store
        # How long a turn may run without readers; None: forever.
        self._grace_seconds = limits.grace_seconds(record)
        self._limits = limits
        self.turns = [Turn(recording, store, turn, None) for turn in record.turns]
        if record.is_cut and self.turns and self.latest.was_abandoned:
            self.latest.unrecorded_error = self.cut_error()
        self._document_saved_at = 0.0
        # The server stores sessions, but not this one: the store was full at its begin, or rejects it.
        self.is_volatile = False
        self.is_followed = False  # another process makes its events
        self.on_use: Callable[[], None] = lambda: None

    @property
    def id(self) -> str:
        return self._record.key.id

    @property
    def owner(self) -> str:
        return self._record.key.owner

    @property
    def is_named(self) -> bool:
        return self._record.is_named

    @property
    def kind(self) -> str:
        return self._record.kind

    @property
    def is_in_background(self) -> bool:
        """Its turn runs to its end without any reader."""
        return self._grace_seconds == math.inf

    @property
    def ttl_seconds(self) -> float:
        return self._limits.ttl_seconds if self._record.ttl_seconds is None else self._record.ttl_seconds

    @property
    def document_version(self) -> int:
        return self._record.document_version

    @property
    def num_bytes(self) -> int:
        return self.recording.num_bytes + sum(turn.record.attached_bytes for turn in self.turns)

    @property
    def is_resumable(self) -> bool:
        """False for an answer that is neither streamed nor named: no client has its id."""
        return self._record.is_resumable

    @property
    def is_durable(self) -> bool:
        return self._store.durability != "memory"

    @property
    def may_be_behind(self) -> bool:
        """Another process shows more of it: it makes the events, or did so until it was cut off from the store."""
        return self.is_followed or (self.is_running and isinstance(self._store, SharedStore))

    @property
    def is_cut(self) -> bool:
        """An earlier process showed events behind the last one that were never stored."""
        return self._record.is_cut

    def cut_error(self) -> ReplayGap:
        message = (
            f"Session {self.id!r} was not stored to its end, and the server has restarted. Use another session id."
        )
        return ReplayGap(message, param="session_id")

    def is_another(self, record: SessionRecord) -> bool:
        """It has the same name, and was begun after this one was deleted."""
        return self._record.born != record.born

    def learn(self, record: SessionRecord, *, is_mine_void: bool = False) -> None:
        """Takes over what another process did; `is_mine_void`: also where this one had got further."""
        own = {turn.record.number: turn for turn in self.turns}
        if record.document_version != self.document_version:
            self._forget_document(record.document_version)
        self._record.born, self._record.is_cut = record.born, record.is_cut
        self._record.used_at = max(self._record.used_at, record.used_at)
        turns: list[Turn] = []
        for found in record.turns:
            turn = own.get(found.number)
            if turn is None:
                turn = Turn(self.recording, self._store, found, None)
            elif turn.fingerprint != found.fingerprint:
                self.recording.fail_readers(
                    SessionConflict(f"Session {self.id!r} answers another request.", param="session_id")
                )
                turn = Turn(self.recording, self._store, found, None)
            elif turn.is_running or is_mine_void:
                turn.learn(found)
            turns.append(turn)
        newest = turns[-1].record.number if turns else -1
        self.turns = turns + ([] if is_mine_void else [one for one in self.turns if one.record.number > newest])

    def hear_elsewhere(self, seconds: float) -> None:
        """Another process has readers, and will say so again within this time."""
        if self._record.no_reader_since is not None:
            self._record.no_reader_since = max(self._record.no_reader_since, self._store.now() + seconds)

    @property
    def is_evictable(self) -> bool:
        return not self.is_running and not self.recording.readers

    @property
    def is_idle(self) -> bool:
        """Nothing will happen to it for long: sweeps check it less often."""
        return self.ttl_seconds > _LONG_SECONDS and self.is_evictable and self.is_resumable

    @property
    def last_used_at(self) -> float:
        return max(self._record.used_at, self.latest.record.ended_at)

    @property
    def latest(self) -> Turn:
        return self.turns[-1]

    @property
    def is_running(self) -> bool:
        return bool(self.turns) and self.latest.is_running

    def to_record(self) -> SessionRecord:
        record = self._record
        if self.is_running:  # the source of a resumed turn may have loaded them since
            self.latest.record.attachments = self._bounded(self.latest.attachments)
        record.turns = [turn.record for turn in self.turns]
        record.next_index = self.recording.next_index
        return record

    def move_to(self, store: Store) -> None:
        """Continues in another store, after the first has rejected the session."""
        self.is_volatile = True
        self._store = store
        self.recording.move_to(store)
        for turn in self.turns:
            turn.move_to(store)

    def touch(self) -> None:
        now = self._store.now()
        # Else a restart would shorten the life of a session with a TTL of days.
        if self.turns and now - self._record.used_at > _LONG_SECONDS:
            self._store.save_progress(self._record.key, now, self._record.no_reader_since)
        self._record.used_at = now
        self.on_use()

    def begin_turn(self, fingerprint: str, source: Source, retention: Retention | None = None) -> Turn:
        self._drop_old_turns()
        self.touch()
        number = self.turns[-1].record.number + 1 if self.turns else 0
        record = TurnRecord(number, fingerprint, b"", self.recording.next_index)
        if retention:
            record.document, record.attachment_names = retention.document, retention.attachment_names
            if isinstance(self._store, SharedStore):  # others show it while the answer is made here
                record.summary = source.summary
        if self._store.durability != "memory":
            record.request, record.attachments = source.request, self._bounded(source.attachments)
        elif record.attachment_names:
            own = {name: data for name, data in source.attachments.items() if name in record.attachment_names}
            record.attachments = self._bounded(own)
        turn = Turn(self.recording, self._store, record, source)
        self.turns.append(turn)
        self._record.no_reader_since = None if self.recording.readers else self._store.now() + _FIRST_READER_SECONDS
        self._store.begin_turn(self._record, record, self._limits.max_attached_bytes)
        return turn

    async def begin_document(self, retention: Retention, attachments: Mapping[str, bytes]) -> None:
        """Adds a finished turn that has a document and no answer. Raises `StoreUnavailable` if an archive is away."""
        record = TurnRecord(0, "", b"", 0, -1, "finished", ended_at=self._store.now())
        record.document, record.attachment_names, record.attachments = (
            retention.document,
            retention.attachment_names,
            self._bounded(attachments),
        )
        self.turns.append(Turn(self.recording, self._store, record, None))
        if isinstance(self._store, ArchivingStore):
            await self._store.create(SessionRow(self._record, record, record.document, record.attachments))
        else:
            self._store.begin_turn(self._record, record, self._limits.max_attached_bytes)

    async def save_document(
        self, document: bytes, attachments: Mapping[str, bytes], names: frozenset[str], *, replaced_version: int
    ) -> bool:
        """Replaces the document of the latest turn; False if it has another version meanwhile.

        `attachments` may leave out names that the session has already.
        """
        if self.document_version != replaced_version:
            return False
        self.touch()
        record = self.latest.record
        together = {name: data for name, data in record.attachments.items() if name in names} | dict(attachments)
        changed = replace(record, document=document, attachments=self._bounded(together), attachment_names=names)
        max_bytes = self._limits.max_attached_bytes
        if isinstance(self._store, SharedStore):
            if await self._store.save_document(self._record.key, changed, max_bytes, replaced_version):
                self._forget_document(max(self.document_version, replaced_version + 1))
                return True
            return False
        record.document, record.attachments, record.attachment_names = document, changed.attachments, names
        self._document_saved_at = self._store.now()
        self._record.document_version += 1
        return await self._store.save_document(self._record.key, changed, max_bytes)

    async def document(self) -> bytes | None:
        """Returns the document of the latest turn."""
        record = self.latest.record
        return record.document or await self._older_store.read_document(self._record.key, record.number)

    async def attachments(self, names: Collection[str]) -> Mapping[str, bytes]:
        in_memory = self.latest.record.attachments
        missing = {name for name in names if name not in in_memory}
        found = await self._older_store.read_attachments(self._record.key, missing)
        return {**found, **{name: in_memory[name] for name in names if name in in_memory}}

    def _forget_document(self, version: int) -> None:
        """It is read from the store from now on."""
        self._record.document_version = version
        record = self.latest.record
        record.document, record.attachments = b"", {}

    def drop_stored_payloads(self) -> None:
        """Frees the document and the attachments once a durable store has them."""
        record = self.latest.record
        since = max(record.ended_at, self._document_saved_at)
        is_archived = isinstance(self._store, ArchivingStore) and self._store.keeps(self._record.key)
        is_durable = self._store.durability == "durable" and self._store.now() - since > _SURELY_STORED_SECONDS
        if is_archived or is_durable:
            record.document, record.attachments = b"", {}

    def _bounded(self, attachments: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Returns all or none: no process can resume a request with only some of its attachments."""
        return attachments if sum(map(len, attachments.values())) <= self._limits.max_attached_bytes else {}

    def turn_with(self, fingerprint: str) -> Turn | None:
        return next((turn for turn in reversed(self.turns) if turn.fingerprint == fingerprint), None)

    def turn_after(self, index: int, last_index_of: LastIndexOf = attrgetter("last_index")) -> Turn:
        """Returns the turn of the event after the cursor `index`.

        `last_index_of` is for readers who get fewer or more events than are recorded.
        Raises `ReplayGap` if that turn is gone: starting at a later one would skip events silently.
        """
        if index + 1 < self.turns[0].first_index:
            raise ReplayGap(f"Event {index + 1} is no longer kept.", param="last_event_id")
        for turn in self.turns:
            last_index = last_index_of(turn)
            if last_index is None or index < last_index:
                return turn
        return self.latest

    @contextmanager
    def listening(self, turn: Turn, after: int) -> Iterator[Reader]:
        """Connects a reader to one turn; while it is connected, the session counts as heard."""
        current_span().link(turn.traceparent)
        reader = Reader(self.recording, max(after, turn.first_index - 1))
        if turn.last_index is not None:
            reader.stop_at(turn.last_index, turn.unrecorded_error)
        if not self.recording.readers:
            self._save_no_reader_since(no_reader_since=None)
        self.recording.readers.add(reader)
        try:
            yield reader
        finally:
            self.recording.readers.discard(reader)
            if not self.recording.readers:
                self._save_no_reader_since(no_reader_since=self._store.now())
            self.cancel_without_reader()

    def count_grace_after_restart(self) -> None:
        """The readers of the process before are gone. Time without readers before the restart still counts."""
        if self._record.no_reader_since is None:
            self._save_no_reader_since(no_reader_since=self._store.now())
        self.cancel_without_reader()

    def cancel_without_reader(self) -> None:
        """Cancels the running turn when no client has been connected for the grace period after a disconnect."""
        no_reader_since = None if self.recording.readers else self._record.no_reader_since
        if self._grace_seconds is None or no_reader_since is None or not self.is_running:
            return
        if self._store.now() - no_reader_since >= self._grace_seconds:
            self.latest.cancel()

    def _save_no_reader_since(self, no_reader_since: float | None) -> None:
        self.touch()
        self._record.no_reader_since = no_reader_since
        self._store.save_progress(self._record.key, self._record.used_at, no_reader_since)

    def _drop_old_turns(self) -> None:
        """Deletes the oldest turns (all have ended), so that a session that is never idle does not grow forever."""
        if self._store.durability == "memory":
            oldest = self.recording.window_start
            self.turns = [turn for turn in self.turns if turn.last_index is None or turn.last_index >= oldest]
            return
        due = self._store.now() - self._limits.ttl_seconds
        old = [turn for turn in self.turns[: -self._limits.max_turns] if turn.record.ended_at < due]
        if old:
            del self.turns[: len(old)]
            first = self.turns[0].record
            self.recording.forget_before(first.first_index)
            self._store.forget_before(self._record.key, first)
