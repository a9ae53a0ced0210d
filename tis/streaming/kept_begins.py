"""Stores a response in the background before its client is told that it is queued, so that no loss can undo that.

While it runs, its process says so in the archive again and again (a lease). Where the process dies, another takes the
response over in the store of streams; where that has lost it, too, one begins it anew from the row of the archive.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from tis.observability.logs import log_exception
from tis.streaming.archive.archiving_store import ArchivingStore
from tis.streaming.archive.records import SessionRow
from tis.streaming.errors import LaterVersion, StoreUnavailable
from tis.streaming.followed_sessions import FollowedSessions
from tis.streaming.session import Session
from tis.streaming.stores.store import SessionKey, SessionRecord

_log = logging.getLogger("tis.store")
_TAKEN_AT_ONCE = 20
_CLOSE_SECONDS = 2.0


class KeptBegins:
    def __init__(
        self,
        store: ArchivingStore,
        followed: FollowedSessions,
        known: Callable[[SessionKey], Session | None],
        max_attached_bytes: int,
    ) -> None:
        self._store = store
        self._followed = followed
        self._known = known
        self._max_attached_bytes = max_attached_bytes
        self._running: dict[SessionKey, Session] = {}
        self._keeper: asyncio.Task[None] | None = None
        self._is_closing = asyncio.Event()

    def open(self) -> None:
        self._keeper = asyncio.create_task(self._keep_leases())

    async def close(self) -> None:
        if self._keeper:
            self._is_closing.set()  # a transaction that is cancelled would leave its connection open
            _, late = await asyncio.wait([self._keeper], timeout=_CLOSE_SECONDS)
            for keeper in late:
                keeper.cancel()
                await asyncio.wait(late)

    def note_running(self, session: Session) -> None:
        self._running[session.recording.key] = session

    def note_over(self, session: Session) -> None:
        if self._running.get(session.recording.key) is session:
            del self._running[session.recording.key]

    async def keep(self, session: Session, *, may_begin_again: bool) -> None:
        """Returns when the archive has the turn that has just begun. Raises `StoreUnavailable`.

        `may_begin_again`: else it ends as failed where it is lost, as it may have done what must not be done twice.
        """
        if not session.is_running:
            return  # it is stored with its end
        record, turn = session.to_record(), session.latest
        request = (turn.record.request or turn.request) if may_begin_again else b""
        begun = replace(turn.record, request=request, summary=turn.summary)
        row = SessionRow(replace(record, turns=[begun]), begun, begun.document, begun.attachments)
        await self._store.archive.begin(row)

    async def _keep_leases(self) -> None:
        archive = self._store.archive
        while not self._is_closing.is_set():
            try:
                if self._running:
                    await archive.renew(list(self._running))
                if archive.is_sure:
                    for key, seen in await archive.find_unheld(_TAKEN_AT_ONCE):
                        if not self._is_closing.is_set():
                            await self._look_after(key, seen)
            except StoreUnavailable:
                pass  # it is counted, and asked again
            except Exception as fault:  # without this task nobody would go on with what is lost
                log_exception("the responses that run could not be looked after", fault, "-")
            with suppress(TimeoutError):
                async with asyncio.timeout(archive.limits.lease_seconds / 3):
                    await self._is_closing.wait()

    async def _look_after(self, key: SessionKey, seen: float) -> None:
        if key in self._running:
            return
        try:
            found = await self._find_stream(key)
        except LaterVersion:
            await self._store.archive.renew([key])  # it is left to a server of that version
            return
        if found is None:
            self._followed.leave(key)
            if begun := await self._store.begin_anew(key, seen, self._max_attached_bytes):
                _log.warning("a response that no server has any more is begun anew")
                self._followed.on_taken(begun, is_cancelled=False)
        elif found.turns[-1].last_index is None:  # its server is about to be followed by another, or is an older one
            await self._store.archive.renew([key])
        else:  # its last event says that it is not stored
            await self._store.archive.discard(key, seen)

    async def _find_stream(self, key: SessionKey) -> SessionRecord | None:
        if self._store.is_remote:
            return await self._store.find(key)
        session = self._known(key)
        return session.to_record() if session else None
