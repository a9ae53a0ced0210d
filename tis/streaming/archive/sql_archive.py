"""The archive in an SQL database: every call is one transaction, in a thread of its own pool, within a time limit.

While the database is away, calls fail at once, and a task looks every second whether it is back. It makes the tables,
too, so a server may start before its database; and it deletes what has expired, a bounded number of rows at a time.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from anyio import CapacityLimiter, to_thread
from sqlalchemy import text
from sqlalchemy.orm import Session as Transaction

from tis.database.database import Database
from tis.database.errors import DatabaseUnavailable
from tis.observability.logs import log_exception
from tis.observability.metrics import STORE_ERRORS
from tis.streaming.archive import begun_rows, rows
from tis.streaming.archive.records import ArchivedSession, SessionRow
from tis.streaming.errors import StoreUnavailable
from tis.streaming.stores.store import Event, SessionKey, SessionRecord, TurnRecord

_log = logging.getLogger("tis.store")
MIGRATIONS = Path(__file__).parent / "migrations"
_MAX_WAITING = 512  # calls that wait for a thread; more are refused
_DELETED_AT_ONCE = 200
_MAX_DELETIONS = 20  # in a row
_CLOSE_POLL_SECONDS = 0.02
_RENEWED_AT_ONCE = 500
_MAX_WRITE_SECONDS = 30.0  # pictures of a response may be 64 MiB

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    ttl_seconds: float = 2_592_000  # from the last use
    num_connections: int = 8
    answer_seconds: float = 5.0  # for one transaction
    store_seconds: float = 30.0  # how long the end of a response waits for a database that is away
    lease_seconds: float = 10.0  # how long a process may be silent before another begins its responses anew
    retry_seconds: float = 1.0
    sweep_seconds: float = 60.0  # between two times that expired sessions are deleted


class SqlArchive:
    """`clock`: seconds of a wall clock; all servers on the database have about the same."""

    def __init__(self, url: str, limits: ArchiveLimits, clock: Callable[[], float] = time.time) -> None:
        self.limits = limits
        self._clock = clock
        self._database = Database(
            url,
            wait_seconds=limits.answer_seconds,
            read_seconds=limits.answer_seconds,
            pool_size=limits.num_connections + 1,
            variable="RESPONSES_URL",
        )
        self._places = CapacityLimiter(limits.num_connections)
        self._keeper: asyncio.Task[None] | None = None
        self._has_tables = False
        self._available_since = 0.0
        self._available = asyncio.Event()
        self._failed = asyncio.Event()
        self._num_waiting = 0

    @property
    def is_available(self) -> bool:
        return self._available.is_set()

    @property
    def is_sure(self) -> bool:
        """Whoever is there has had the time to say so: behind an outage, all leases are over."""
        return self.is_available and time.monotonic() - self._available_since >= self.limits.lease_seconds

    @property
    def pool_use(self) -> tuple[int, int]:
        """Connections in use, and how many there may be at once."""
        return self._database.pool_use

    async def open(self) -> None:
        """Makes the tables. Without its database the server starts, and comes back to it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.limits.answer_seconds):
                await self._look()
        if not self.is_available:
            _log.warning("the database of stored responses (%s) does not answer; retrying", self._database.name)
        self._keeper = asyncio.create_task(self._keep())

    async def close(self) -> None:
        if self._keeper:
            self._keeper.cancel()
            await asyncio.wait([self._keeper])
        # Whoever gave up waiting left a thread with a connection, which nobody would close behind this.
        with suppress(TimeoutError):
            async with asyncio.timeout(self.limits.answer_seconds):
                while self._places.borrowed_tokens:  # noqa: ASYNC110
                    await asyncio.sleep(_CLOSE_POLL_SECONDS)
        await asyncio.to_thread(self._database.close)

    def require_available(self) -> None:
        if not self.is_available:
            raise _unavailable()

    async def wait_until_available(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._available.wait()

    async def put(self, row: SessionRow) -> bool:
        now, ttl = self._clock(), self.limits.ttl_seconds
        return await self._write(lambda transaction: rows.put(transaction, row, now, ttl), _MAX_WRITE_SECONDS)

    async def create(self, row: SessionRow) -> bool:
        now, ttl = self._clock(), self.limits.ttl_seconds
        return await self._write(lambda transaction: rows.create(transaction, row, now, ttl), _MAX_WRITE_SECONDS)

    async def begin(self, row: SessionRow) -> None:
        """Stores a turn that runs, unless it is over already."""
        row.held_until = self._clock() + self.limits.lease_seconds
        await self.create(row)

    async def renew(self, keys: Sequence[SessionKey]) -> None:
        """This process goes on with them."""
        held_until = self._clock() + self.limits.lease_seconds
        for start in range(0, len(keys), _RENEWED_AT_ONCE):
            some = keys[start : start + _RENEWED_AT_ONCE]
            await self._write(lambda transaction: begun_rows.renew(transaction, some, held_until))  # noqa: B023

    async def find_unheld(self, limit: int) -> Sequence[tuple[SessionKey, float]]:
        """Turns that run, and that no process goes on with, with the time when it said so for the last time."""
        now = self._clock()
        return await self._read(lambda transaction: begun_rows.find_unheld(transaction, now, limit))

    async def find_begun(self, key: SessionKey, store_now: float) -> SessionRow | None:
        now = self._clock()
        return await self._read(lambda transaction: begun_rows.find_begun(transaction, key, now, store_now))

    async def claim(self, key: SessionKey, seen: float, epoch: int) -> bool:
        """False if the turn has ended, or another process was faster."""
        held_until = self._clock() + self.limits.lease_seconds
        return await self._write(lambda transaction: begun_rows.claim(transaction, key, seen, held_until, epoch))

    async def discard(self, key: SessionKey, seen: float) -> None:
        """Deletes a turn that has ended and could not be stored."""
        await self._write(lambda transaction: begun_rows.discard(transaction, key, seen))

    async def find(self, key: SessionKey, store_now: float) -> ArchivedSession | None:
        now = self._clock()
        return await self._read(lambda transaction: rows.find(transaction, key, now, store_now))

    async def find_events(self, key: SessionKey, after: int, limit: int) -> Sequence[Event]:
        return await self._read(lambda transaction: rows.find_events(transaction, key, after, limit))

    async def find_document(self, key: SessionKey) -> bytes | None:
        return await self._read(lambda transaction: rows.find_document(transaction, key))

    async def find_attachments(self, key: SessionKey, names: Collection[str]) -> Mapping[str, bytes]:
        if not names:
            return {}
        wanted = list(names)
        return await self._read(lambda transaction: rows.find_attachments(transaction, key, wanted))

    async def replace_document(
        self, key: SessionKey, turn: TurnRecord, replaced_version: int, max_attached_bytes: int
    ) -> bool:
        now, ttl = self._clock(), self.limits.ttl_seconds

        def replace(transaction: Transaction) -> bool:
            return rows.replace_document(
                transaction,
                key,
                turn,
                replaced_version,
                max_attached_bytes=max_attached_bytes,
                now=now,
                ttl_seconds=ttl,
            )

        return await self._write(replace, _MAX_WRITE_SECONDS)

    async def mark_used(self, key: SessionKey) -> None:
        now, ttl = self._clock(), self.limits.ttl_seconds
        await self._write(lambda transaction: rows.mark_used(transaction, key, now, ttl))

    async def delete(self, session: SessionRecord) -> None:
        now = self._clock()
        await self._write(lambda transaction: rows.mark_deleted(transaction, session, now))

    async def delete_expired(self) -> int:
        """Returns how many were deleted; there may be more."""
        now = self._clock()
        return await self._write(lambda transaction: rows.delete_expired(transaction, now, _DELETED_AT_ONCE))

    async def _read(self, work: Callable[[Transaction], _T]) -> _T:
        def in_transaction() -> _T:
            with self._database.reading() as transaction:
                return work(transaction)

        return await self._run(in_transaction, self.limits.answer_seconds)

    async def _write(self, work: Callable[[Transaction], _T], seconds: float = 0.0) -> _T:
        def in_transaction() -> _T:
            with self._database.writing() as transaction:
                return work(transaction)

        return await self._run(in_transaction, max(seconds, self.limits.answer_seconds))

    async def _run(self, work: Callable[[], _T], seconds: float) -> _T:
        self.require_available()
        if self._num_waiting >= _MAX_WAITING:
            STORE_ERRORS.labels("archive", "busy").inc()
            raise _unavailable()
        self._num_waiting += 1
        try:
            async with asyncio.timeout(seconds):
                return await to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._places)
        except TimeoutError as error:
            self._fail("timeout")
            raise _unavailable() from error
        except DatabaseUnavailable as error:
            if self._database.is_available:
                STORE_ERRORS.labels("archive", "busy").inc()  # a lock, or a deadline of one statement
            else:
                self._fail("unreachable")
            raise _unavailable() from error
        finally:
            self._num_waiting -= 1

    def _fail(self, label: str) -> None:
        STORE_ERRORS.labels("archive", label).inc()
        if self.is_available:
            _log.error("the database of stored responses does not answer (%s); retrying", label)
        self._available.clear()
        self._failed.set()

    async def _keep(self) -> None:
        swept_at = time.monotonic()
        while True:
            try:
                if not self.is_available:
                    await self._look()
                elif time.monotonic() - swept_at >= self.limits.sweep_seconds:
                    swept_at = time.monotonic()
                    await self._delete_all_expired()
            except StoreUnavailable:
                pass  # it is counted, and looked at again
            except Exception as fault:  # without this task nobody would come back to the database
                log_exception("the database of stored responses could not be looked after", fault, "-")
            self._failed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(self.limits.retry_seconds):
                    if self.is_available:
                        await self._failed.wait()
                    else:
                        await asyncio.sleep(self.limits.retry_seconds)

    async def _look(self) -> None:
        try:
            await to_thread.run_sync(self._prepare, abandon_on_cancel=True)
        except DatabaseUnavailable:
            return
        if not self.is_available:
            self._available_since = time.monotonic()
            self._available.set()
            _log.info("the database of stored responses answers")

    def _prepare(self) -> None:
        if not self._has_tables:
            self._database.migrate(MIGRATIONS, may_be_later=True)  # migrations of this folder only add
            self._has_tables = True
        with self._database.reading() as transaction:
            transaction.execute(text("SELECT 1"))

    async def _delete_all_expired(self) -> None:
        for _ in range(_MAX_DELETIONS):
            if await self.delete_expired() < _DELETED_AT_ONCE:
                return


def _unavailable() -> StoreUnavailable:
    return StoreUnavailable("The database of stored responses does not answer. Retry later.", retry_after=2)
