"""Looks after all sessions, every second: ends what nobody reads, forgets what nobody needs, wakes idle readers."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from tis.observability.logs import log_exception
from tis.streaming.followed_sessions import FollowedSessions
from tis.streaming.held_sessions import HeldSessions
from tis.streaming.retention import SessionLimits
from tis.streaming.session import Session
from tis.streaming.stores.store import Store

_PAUSE_SECONDS = 0.5  # of the process; a sweep that is so late follows one


class SessionSweeper:
    def __init__(
        self,
        limits: SessionLimits,
        store: Store,
        held: HeldSessions,
        followed: FollowedSessions | None,
        is_revoked: Callable[[str], bool],
    ) -> None:
        """`is_revoked`: of an owner whose running answers are to end."""
        self._limits = limits
        self._store = store
        self._held = held
        self._followed = followed
        self.is_revoked = is_revoked
        self._task: asyncio.Task[None] | None = None

    @property
    def is_started(self) -> bool:
        return self._task is not None

    def start(self) -> None:
        self._task = asyncio.create_task(self._sweep_forever())

    def stop(self) -> None:
        if self._task:
            self._task.cancel()

    def sweep(self, *, is_late: bool = False) -> None:
        """Checks the store, then sessions. An error in one must not stop the sweep of the others.

        Late is one that follows a pause of the whole process. Clients could not connect meanwhile, so nothing is
        cancelled for want of a reader; the next sweep may do it.
        """
        _log_failure(self._store.tick, "the store could not be checked")
        for session in [*self._held.active, *self._held.next_idle()]:
            _log_failure(partial(self._sweep_session, session, is_late), "a session could not be swept", session.id)
        if self._held.is_end_of_round:  # counting bytes takes as long as a round
            _log_failure(self._held.bound_memory, "memory could not be freed")
        _log_failure(self._held.make_room_in_store, "the store could not be bounded")

    def _sweep_session(self, session: Session, is_late: bool) -> None:
        if session.is_running and self.is_revoked(session.owner):
            session.latest.cancel()
        if self._followed:
            self._followed.sweep(session)
        if not is_late:
            session.cancel_without_reader()
        for reader in session.recording.readers:
            reader.wake_if_idle(self._limits.heartbeat_seconds)
        if not session.is_evictable:
            return
        unused = self._store.now() - session.last_used_at
        if unused > session.ttl_seconds or not session.is_resumable:
            self._held.forget(session)
            return
        session.drop_stored_payloads()
        if session.is_idle:
            self._held.note_idle(session)

    async def _sweep_forever(self) -> None:
        with suppress(asyncio.CancelledError):
            while True:
                due = time.monotonic() + self._limits.sweep_seconds
                await asyncio.sleep(self._limits.sweep_seconds)
                self.sweep(is_late=time.monotonic() > due + _PAUSE_SECONDS)


def _log_failure(check: Callable[[], None], message: str, session_id: str = "-") -> None:
    try:
        check()
    except Exception as fault:
        log_exception(message, fault, session_id)
