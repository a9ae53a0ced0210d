"""The one thread that writes: takes a batch from the queue, commits it in one transaction, and acknowledges it.

After any error with the file it retries until it works. An operation that fails alone is rejected, and its session is
restored from memory. Only a file that SQLite calls damaged, or a foreign file in its place, is renamed.
"""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TypeVarTuple

from tis.streaming.stores.file_lock import FileLock
from tis.streaming.stores.sqlite_contents import FileCorrupt
from tis.streaming.stores.sqlite_file import (
    FileGone,
    FileIdentity,
    SqliteFile,
    check_integrity,
    error_label,
)
from tis.streaming.stores.sqlite_rows import clear_log, commit, delete_some, try_to_write, used_bytes
from tis.streaming.stores.store import StoreRefused
from tis.streaming.stores.store_health import StoreHealth
from tis.streaming.stores.write_queue import WriteBatch, WriteQueue

_SNAPSHOT_SECONDS = 10.0  # how long to wait for the event loop before asking again
_TRANSIENT = (sqlite3.OperationalError, OSError, MemoryError, StoreRefused)
_Args = TypeVarTuple("_Args")


@dataclass(frozen=True, slots=True)
class Timeouts:
    busy_seconds: float = 5.0  # how long a lock of another program may last
    slow_seconds: float = 5.0  # how long a write may wait before the store is degraded
    min_retry_seconds: float = 0.5
    max_retry_seconds: float = 5.0
    check_seconds: float = 1.0  # between two checks that the file is still there
    max_log_copy_seconds: float = 30.0  # how long a busy writer leaves copies of dropped requests in the log
    close_seconds: float = 5.0
    max_queue_bytes: int = 256 * 2**20


class SqliteWriter(threading.Thread):
    def __init__(
        self, file: SqliteFile, lock: FileLock, queue: WriteQueue, timeouts: Timeouts, health: StoreHealth
    ) -> None:
        """Construct it on the event loop that `health` runs on."""
        super().__init__(name="sessions-writer", daemon=True)
        self._file = file
        self._lock = lock
        self._queue = queue
        self._timeouts = timeouts
        self._health = health
        self._loop = asyncio.get_running_loop()
        self._connection: sqlite3.Connection | None = None
        self._identity: FileIdentity | None = None
        self._checked_at = 0.0
        self._lost_reason = ""  # "deleted" or "corrupt", until there is a good file again
        self._is_deleting = True  # at first: an earlier process may have left rows to delete
        self._deleted: list[int] = []  # sessions, until the event loop knows
        self._has_log_remains = False  # the write-ahead log has copies of deleted rows
        self._cleared_at = 0.0
        self._dropped_at: float | None = None  # a turn ended: the log has copies of its request
        self._failed_at: float | None = None
        self._retry_seconds = timeouts.min_retry_seconds
        self._gave_up = False

    def run(self) -> None:
        while not self._is_over:
            try:
                self._step()
            except Exception as error:  # the thread must survive any error and report it to the loop
                self._failed(error)
        self._disconnect()
        self._lock.release()  # only here: while this thread hangs on the disk, it may still write
        self._call_on_loop(self._health.writer_ended)

    @property
    def _is_over(self) -> bool:
        return self._gave_up or (self._queue.is_stopping and self._queue.is_empty)

    def _step(self) -> None:
        if self._queue.needs_snapshot:
            self._ask_for_snapshot()
        batch = self._queue.take(0 if self._is_deleting else self._timeouts.check_seconds)
        connection = self._connected()
        if self._is_deleting:
            self._is_deleting = delete_some(connection, self._deleted)
            self._has_log_remains = True
            if self._is_deleting and self._failed_at is not None:
                return  # the rest may need the space that this frees
        if batch:
            self._commit(connection, batch, len(batch.operations))
        if self._dropped_at is not None and (not batch or self._is_overdue(self._dropped_at)):
            self._dropped_at, self._has_log_remains = None, True
        if (
            self._has_log_remains
            and not self._is_deleting
            and time.monotonic() - self._cleared_at >= self._timeouts.check_seconds
        ):
            self._cleared_at = time.monotonic()
            self._has_log_remains = not clear_log(connection)
        if batch or self._deleted:
            self._measure(connection)
        if batch or self._failed_at is not None:
            self._call_on_loop(self._health.committed, self._queue.finish_batch(), self._has_caught_up())

    def _measure(self, connection: sqlite3.Connection) -> None:
        deleted, self._deleted = self._deleted, []
        is_all_deleted = not self._is_deleting and self._queue.is_all_taken
        measured = partial(self._health.room.measured, is_all_deleted=is_all_deleted)
        self._call_on_loop(measured, used_bytes(connection), deleted)

    def _commit(self, connection: sqlite3.Connection, batch: WriteBatch, num: int) -> None:
        """Commits the first `num` operations of the batch: together, or by halves if one of them fails alone."""
        operations = list(islice(batch.operations, num))
        try:
            commit(connection, operations)
        except Exception as error:
            if isinstance(error, _TRANSIENT) or error_label(error) != "other":
                raise
            self._roll_back()
            try_to_write(connection)  # raises if the file is at fault, not the operation
            if num > 1:
                self._commit(connection, batch, num // 2)
                self._commit(connection, batch, num - num // 2)
                return
            self._failed_at = time.monotonic()
            self._call_on_loop(self._health.rejected, self._queue.reject_first(), error_label(error), str(error))
        else:
            self._queue.mark_committed(num)
            self._is_deleting |= any(operation.leaves_rows for operation in operations)
            if self._dropped_at is None and any(operation.drops_request for operation in operations):
                self._dropped_at = time.monotonic()

    def _is_overdue(self, dropped_at: float) -> bool:
        return time.monotonic() - dropped_at >= self._timeouts.max_log_copy_seconds

    def _ask_for_snapshot(self) -> None:
        connection = self._connected()
        try_to_write(connection)  # a snapshot is large: ask for one only when writing works
        if (
            deletes := self._queue.pending_deletes()
        ):  # first, in a transaction of their own: on a full disk they free space
            commit(connection, deletes)
            self._queue.mark_deleted(deletes)
            self._is_deleting = True
        self._queue.in_flight = None
        self._call_on_loop(self._health.put_snapshot)
        self._queue.wait_for_snapshot(_SNAPSHOT_SECONDS)

    def _has_caught_up(self) -> bool:
        if self._queue.is_behind(self._failed_at or 0.0):
            return False
        self._failed_at, self._retry_seconds = None, self._timeouts.min_retry_seconds
        return True

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None or time.monotonic() - self._checked_at >= self._timeouts.check_seconds:
            self._check_file()
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        if self._lost_reason == "corrupt":
            self._file.set_aside("damaged")
            self._lost_reason = ""
        elif self._lost_reason and not self._has_own_file(self._file.identity()):
            self._file.set_aside("a foreign file in its place")
            self._lost_reason = ""
        connection = self._file.connect()
        try:
            if self._lost_reason:  # the file is ours and only its log is gone; check whether it is intact
                check_integrity(connection)
                self._lost_reason = ""
        except BaseException:
            connection.close()
            raise
        self._identity = self._file.identity()
        return connection

    def _has_own_file(self, now: FileIdentity) -> bool:
        return self._identity is not None and now[0] is not None and now[0] == self._identity[0]

    def _check_file(self) -> None:
        self._checked_at = time.monotonic()
        self._lock.renew()
        if self._identity is None or self._lost_reason:
            return
        now = self._file.identity()
        damage, self._file.damage = self._file.damage, None
        if damage and damage[0] == now[0]:
            raise FileCorrupt(damage[1])
        # Without an open connection, SQLite removes the log files: compare only the database file.
        if now != self._identity if self._connection else not self._has_own_file(now):
            raise FileGone("it was deleted or replaced")

    def _failed(self, error: Exception) -> None:
        """Decides how to retry the batch. On a full disk, attachments are dropped and deletes come first."""
        name = error_label(error)
        self._failed_at = time.monotonic()
        self._gave_up = self._queue.is_stopping
        self._roll_back()
        batch = self._queue.in_flight
        if name in ("deleted", "corrupt"):
            self._lost_reason = name
            self._queue.need_snapshot()
        elif name == "SQLITE_FULL" and self._queue.drop_attachments():
            pass  # the rest may fit now
        elif batch and batch.is_snapshot:
            self._queue.need_snapshot()  # it is outdated: ask for a new one
        elif name == "SQLITE_FULL":
            self._queue.put_deletes_first()
        if name not in ("SQLITE_FULL", "SQLITE_BUSY"):  # after these, readers can use the open file
            self._disconnect()
        self._call_on_loop(self._health.failed, name, str(error))
        self._queue.pause(self._retry_seconds)
        self._retry_seconds = min(2 * self._retry_seconds, self._timeouts.max_retry_seconds)

    def _call_on_loop(self, what: Callable[[*_Args], None], *args: *_Args) -> None:
        try:
            self._loop.call_soon_threadsafe(what, *args)
        except RuntimeError:  # the loop is closed: nothing is left to write for
            self._gave_up = True

    def _roll_back(self) -> None:
        if self._connection and self._connection.in_transaction:
            with suppress(sqlite3.Error):  # SQLite rolls back by itself after some errors
                self._connection.execute("ROLLBACK")

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection:
            with suppress(sqlite3.Error):  # the error was reported already
                connection.close()
