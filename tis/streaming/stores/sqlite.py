"""Stores sessions in one SQLite file: a committed event survives the death of the process.

Covered: kill -9, a full disk, a slow or failing disk, a file that is locked, deleted or corrupted. Only `forget`
deletes what the file has: after an error a snapshot of memory is written over it, and only a file that SQLite calls
damaged, or a foreign file in its place, is renamed.
Not covered: with `sync="normal"` a power cut may lose the last moments; the file stays intact.
"""

import asyncio
import itertools
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeVar, TypeVarTuple

from tis.streaming.errors import ReplayGap, StoreUnavailable
from tis.streaming.stores import sqlite_attachments, sqlite_rows
from tis.streaming.stores.clock import UptimeClock
from tis.streaming.stores.file_lock import FileLock
from tis.streaming.stores.integrity_check import IntegrityCheck
from tis.streaming.stores.sqlite_contents import StoreContents
from tis.streaming.stores.sqlite_file import FILE_ERRORS, SqliteFile, Sync, error_label
from tis.streaming.stores.sqlite_rows import Operation
from tis.streaming.stores.sqlite_writer import SqliteWriter, Timeouts
from tis.streaming.stores.store import (
    Committed,
    Durability,
    Event,
    OnAbandoned,
    SessionKey,
    SessionRecord,
    Snapshot,
    StoreRefused,
    TurnRecord,
)
from tis.streaming.stores.store_health import StoreHealth
from tis.streaming.stores.store_room import StoreRoom
from tis.streaming.stores.write_queue import WriteQueue

_CLOCK_SECONDS = 30.0
_READERS = 2
_Found = TypeVar("_Found")
_Args = TypeVarTuple("_Args")


class SqliteStore:
    def __init__(
        self,
        path: Path,
        *,
        sync: Sync = "normal",
        max_bytes: int | None = None,  # above it the store is full; running turns may add to it
        max_file_bytes: int | None = None,  # above it nothing can be written
        timeouts: Timeouts | None = None,
        clock: UptimeClock | None = None,
    ) -> None:
        self._timeouts = timeouts or Timeouts()
        self._file = SqliteFile(path, sync, self._timeouts.busy_seconds, max_file_bytes)
        self._lock = FileLock(path)
        self._clock = clock or UptimeClock()
        self._clock_saved_at = 0.0
        self._queue = WriteQueue(self._timeouts.max_queue_bytes)
        self._room = StoreRoom(max_bytes)
        self._health = StoreHealth(str(path), self._put_snapshot, self._on_rejected, self._room)
        self._check = IntegrityCheck(self._file)
        self._readers = ThreadPoolExecutor(_READERS, "sessions-reader")
        # The sessions that are resumed read their events one after the other: with one connection for all.
        self._startup_connection: sqlite3.Connection | None = None
        self._startup_lock = threading.Lock()
        self._is_open = False
        self._numbers: dict[SessionKey, int] = {}
        self._running: set[int] = set()  # sessions with a turn that has not ended
        self._abandoned: set[int] = set()  # sessions that the file rejects

    @property
    def durability(self) -> Durability:
        return self._health.durability

    @property
    def is_full(self) -> bool:
        return self._room.is_full(self._queue.num_bytes)

    @property
    def lag_seconds(self) -> float:
        since = self._queue.oldest_queued_at()
        return 0.0 if since is None else max(0.0, time.monotonic() - since)

    def owners(self) -> Sequence[str]:
        return self._room.owners()

    def now(self) -> float:
        return self._clock.now()

    async def open(
        self, snapshot: Snapshot, on_degraded: Callable[[], None], on_abandoned: OnAbandoned
    ) -> Sequence[SessionRecord]:
        found = await asyncio.to_thread(self._open_file)
        if found.clock:
            self._clock.resume_from(found.clock)
        self._numbers = {session.key: number for number, session in found.sessions.items()}
        self._next_number = itertools.count(found.next_number)
        self._room.load(found.sessions, found.num_bytes)
        self._running = {
            number for number, one in found.sessions.items() if one.turns and one.turns[-1].last_index is None
        }
        self._snapshot, self._health.on_degraded = snapshot, on_degraded
        self._on_abandoned = on_abandoned
        SqliteWriter(self._file, self._lock, self._queue, self._timeouts, self._health).start()
        self._is_open = True
        self._check.start()
        self._save_clock()
        with suppress(TimeoutError):  # if the disk hangs, the store is degraded soon; the server starts anyway
            async with asyncio.timeout(self._timeouts.slow_seconds):
                await self.flush()
        return list(found.sessions.values())

    async def close(self) -> None:
        if not self._is_open:
            return
        self._save_clock()
        self._check.stop()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._timeouts.close_seconds):
                if self._startup_connection:
                    await self._end_startup()
                await self.flush()
                self._queue.stop()
                await self._health.wait_for_writer()
        self._queue.stop()
        self._readers.shutdown(wait=False)

    def begin_turn(self, session: SessionRecord, turn: TurnRecord, max_attached_bytes: int) -> None:
        number = self._numbers.get(session.key)
        is_new = number is None
        if number is None:
            number = self._numbers[session.key] = next(self._next_number)
            first = sqlite_rows.insert_session(number, session)
        else:
            first = sqlite_rows.update_progress(number, session.used_at, session.no_reader_since)
        self._room.begin_turn(number, session.key.owner, turn, max_attached_bytes)
        statements = [first, sqlite_rows.update_size(number, self._room.num_bytes(number))]
        statements += [sqlite_rows.insert_turn(number, turn), *sqlite_rows.replace_document(number, turn)]
        if turn.last_index is None:
            self._running.add(number)
        attached = sqlite_attachments.insert(number, turn, max_attached_bytes)
        size = turn.attached_bytes
        self._put(Operation(statements, number, attached=attached, attached_bytes=size, begins=is_new))

    def append(self, key: SessionKey, events: Sequence[Event], committed: Committed) -> None:
        number = self._numbers.get(key)
        if number is not None and events:
            num_bytes, next_index = sqlite_rows.bytes_of(events), events[-1].index + 1
            self._room.append(number, num_bytes, next_index)
            late = [] if number in self._running else [sqlite_rows.update_next_index(number, next_index)]
            self._put(Operation(late, number, tuple(events), committed, num_bytes=num_bytes))

    def end_turn(self, key: SessionKey, turn: TurnRecord) -> None:
        if (number := self._numbers.get(key)) is not None:
            self._running.discard(number)
            self._room.end_turn(number, turn)
            others = sqlite_attachments.delete_unnamed(number, turn)
            size = sqlite_rows.update_size(number, self._room.num_bytes(number))
            statements = [sqlite_rows.update_turn(number, turn), size, *others]
            self._put(Operation(statements, number, leaves_rows=bool(others), drops_request=True))

    def save_progress(self, key: SessionKey, used_at: float, no_reader_since: float | None) -> None:
        if (number := self._numbers.get(key)) is not None:
            self._put(Operation([sqlite_rows.update_progress(number, used_at, no_reader_since)], number))

    def forget(self, key: SessionKey) -> None:
        if (number := self._numbers.pop(key, None)) is not None:
            self._abandoned.discard(number)
            self._running.discard(number)
            self._room.forget(number)
            self._put(sqlite_rows.delete_session(number))

    def forget_before(self, key: SessionKey, first: TurnRecord) -> None:
        if (number := self._numbers.get(key)) is not None:
            self._room.forget_before(number, first.first_index)
            self._put(sqlite_rows.delete_before(number, first))

    async def read(self, key: SessionKey, after: int, limit: int = 256) -> Sequence[Event]:
        number = self._numbers.get(key)
        gap = ReplayGap(f"Event {after + 1} is no longer kept.", param="last_event_id")
        if number is None:
            raise gap
        events = await self._read(sqlite_rows.find_events, number, after, limit)
        if not events and self.durability == "degraded":
            raise StoreUnavailable(f"Event {after + 1} is not on disk yet. Retry later.", retry_after=5)
        if events and events[0].index != after + 1:
            raise gap
        return [event for index, event in enumerate(events, after + 1) if event.index == index]

    async def save_document(
        self, key: SessionKey, turn: TurnRecord, max_attached_bytes: int, replaced_version: int = 0
    ) -> bool:
        if (number := self._numbers.get(key)) is not None:
            self._room.save_document(number, turn)
            statements = [sqlite_rows.update_size(number, self._room.num_bytes(number))]
            statements += sqlite_rows.replace_document(number, turn) + sqlite_attachments.delete_unnamed(number, turn)
            attached = sqlite_attachments.insert(number, turn, max_attached_bytes)
            self._put(
                Operation(
                    statements,
                    number,
                    attached=attached,
                    attached_bytes=turn.attached_bytes,
                    leaves_rows=True,  # of the document before
                )
            )
        return True

    async def read_document(self, key: SessionKey, number: int) -> bytes | None:
        session = self._numbers.get(key)
        found = None if session is None else await self._read(sqlite_rows.find_document, session, number)
        if found is None and self.durability == "degraded":
            raise StoreUnavailable("The document of the session is not on disk yet. Retry later.", retry_after=5)
        return found

    async def read_attachments(self, key: SessionKey, names: Collection[str]) -> Mapping[str, bytes]:
        number = self._numbers.get(key)
        if number is None or not names:
            return {}
        found = await self._read(sqlite_attachments.find, number, frozenset(names))
        if len(found) < len(frozenset(names)) and self.durability == "degraded":
            raise StoreUnavailable("The attachments of the session are not on disk yet. Retry later.", retry_after=5)
        return found

    async def flush(self) -> None:
        await self._health.flush(lambda resolve: self._put(Operation(committed=resolve)))

    def tick(self) -> None:
        since = self._queue.oldest_queued_at()
        limit = self._timeouts.slow_seconds
        if since is not None and self.durability == "durable" and time.monotonic() - since > limit:
            self._health.failed("slow", f"the oldest operation has waited for more than {limit:g} s")
        if self._startup_connection:
            self._end_startup()
        if self.now() - self._clock_saved_at >= _CLOCK_SECONDS:
            self._save_clock()

    def _open_file(self) -> StoreContents:
        self._lock.acquire()
        try:
            contents = self._file.load()
            if any(one.turns and one.turns[-1].last_index is None for one in contents.sessions.values()):
                self._startup_connection = self._file.connect_to_read(any_thread=True)
            return contents
        except BaseException as error:
            self._lock.release()
            if isinstance(error, OSError):
                raise StoreRefused(f"{self._file.path} cannot be used: {error}.") from error
            raise

    def _end_startup(self) -> asyncio.Future[None]:
        return asyncio.get_running_loop().run_in_executor(self._readers, self._close_startup_connection)

    def _close_startup_connection(self) -> None:
        with self._startup_lock:
            connection, self._startup_connection = self._startup_connection, None
        if connection:
            connection.close()

    def _put(self, operation: Operation) -> None:
        if operation.session in self._abandoned and not operation.deletes:
            return
        if not self._queue.put(operation):
            self._health.failed("slow", f"more than {self._timeouts.max_queue_bytes} bytes wait to be written")

    def _save_clock(self) -> None:
        self._clock_saved_at = self.now()
        self._put(Operation([sqlite_rows.set_clock(self._clock.read())]))

    def _put_snapshot(self) -> None:
        """Queues all sessions in memory, for a file that is new or has missed writes."""
        whole = [Operation([sqlite_rows.set_clock(self._clock.read())])]
        for session, events in self._snapshot():
            number = self._numbers.get(session.key)
            if number is not None and number not in self._abandoned:
                whole.append(sqlite_rows.restore(number, session, events, self._room.num_bytes(number)))
        self._queue.put_snapshot(whole)

    def _on_rejected(self, operation: Operation) -> None:
        """Restores the session from memory; if the file rejects that too, abandons it."""
        number = operation.session
        key = next((key for key, one in self._numbers.items() if one == number), None)
        if key is None or number in self._abandoned:
            return
        if operation.restores:
            self._put(sqlite_rows.abandon(number))
            self._abandoned.add(number)
            self._on_abandoned(key)
            return
        for session, events in self._snapshot():
            if session.key == key:
                self._put(sqlite_rows.restore(number, session, events, self._room.num_bytes(number)))

    async def _read(self, find: Callable[[sqlite3.Connection, *_Args], _Found], *args: *_Args) -> _Found:
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._read_now, find, *args)

    def _read_now(self, find: Callable[[sqlite3.Connection, *_Args], _Found], *args: *_Args) -> _Found:
        try:
            with self._startup_lock:
                if self._startup_connection:
                    return find(self._startup_connection, *args)
            # A connection per read: a permanent one would continue to read a file after it was deleted.
            with closing(self._file.connect_to_read()) as connection:
                return find(connection, *args)
        except FILE_ERRORS as error:
            if error_label(error) == "corrupt":
                self._check.request()
            raise StoreUnavailable("The store cannot be read now. Retry later.", retry_after=5) from error
