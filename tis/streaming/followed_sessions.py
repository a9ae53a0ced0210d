"""Sessions that other processes hold: this one learns of them when somebody asks, and follows those that run.

A session that is followed has a recording and readers like any other; its events come from the shared store, through
one task, however many readers it has.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import aclosing
from typing import Any, Protocol, TypeVar, TypeVarTuple

from tis.errors import ServiceError
from tis.observability.logs import log_exception
from tis.streaming.archive.archiving_store import ArchivingStore
from tis.streaming.errors import LaterVersion, ReplayGap, SessionExpired, StoreUnavailable
from tis.streaming.session import Session
from tis.streaming.stores.shared_store import SharedStore
from tis.streaming.stores.store import SessionKey, SessionRecord

_log = logging.getLogger("tis.store")
_RETRY_SECONDS = 0.5
_MAX_SILENT_SECONDS = 10.0  # without the store; then readers are told to come back
_UNREAD_SECONDS = 60.0  # how long a session without readers is followed
_ENDING_SECONDS = 2.0
_HEARD_SECONDS = 5.0  # between two times that the holder is told of readers here

_Answer = TypeVar("_Answer")
_Args = TypeVarTuple("_Args")


class HeldHere(Protocol):
    """What `Sessions` does for it."""

    def known(self, key: SessionKey) -> Session | None: ...

    def make_room(self, key: SessionKey, kind: str) -> None: ...

    def adopt(self, record: SessionRecord) -> Session: ...

    def release(self, session: Session) -> None: ...

    async def stop_recording(self, session: Session) -> None: ...

    async def resume_turn(self, session: Session) -> None: ...


class FollowedSessions:
    def __init__(self, sessions: HeldHere, store: SharedStore) -> None:
        self._sessions = sessions
        self._store = store
        self._followers: dict[SessionKey, asyncio.Task[None]] = {}
        self._work: dict[SessionKey, asyncio.Task[None]] = {}  # the latest of each session
        self._heard_at: dict[SessionKey, float] = {}
        store.watch(self)

    def __contains__(self, key: SessionKey) -> bool:
        return key in self._followers

    async def refresh(self, key: SessionKey, kind: str, *, is_required: bool) -> None:
        """Learns what other processes did to a session of this kind.

        Raises `StoreUnavailable` if it is required and the store cannot tell, and `LaterVersion`: to begin anew what
        another process has recorded would be refused. A session that runs here is known anyway.
        """
        known = self._sessions.known(key)
        if known and (known.kind != kind or self._is_up_to_date(known)):
            return
        try:
            if kind and isinstance(self._store, ArchivingStore):
                record = await self._store.find_retained(key)
            else:
                record = await self._store.find(key)
            if work := self._work.get(key):  # it has been lost to another process, or taken from one, and learns that
                if (await asyncio.wait([work], timeout=_ENDING_SECONDS))[1]:
                    raise StoreUnavailable("This answer changes its server. Retry later.", retry_after=1)
                return
            await self._apply(key, record)
        except StoreUnavailable as error:
            if is_required or isinstance(error, LaterVersion):
                raise

    async def cancel(self, session: Session) -> None:
        """Returns when the holder has ended the turn; whoever calls limits the time."""
        await self._store.order_cancel(session.recording.key)
        with session.listening(session.latest, session.recording.last_visible) as reader:
            async for _ in reader.batches():
                pass

    def sweep(self, session: Session) -> None:
        key = session.recording.key
        if key not in self._followers:
            # Those who wait elsewhere may say so in vain: the time in which they say it again begins anew.
            if session.is_running and self._store.holds(key) and not self._store.hears_others:
                session.hear_elsewhere(2 * _HEARD_SECONDS)
            return
        now = self._store.now()
        if session.recording.readers:
            if now - self._heard_at.get(key, 0.0) >= _HEARD_SECONDS:
                self._heard_at[key] = now
                self._store.tell_heard(key)
        elif now - session.last_used_at > _UNREAD_SECONDS:
            self._stop_following(key)
            self._sessions.release(session)

    async def close(self) -> None:
        tasks = [*self._followers.values(), *self._work.values()]
        self._followers.clear()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_ENDING_SECONDS)

    def leave(self, key: SessionKey) -> None:
        """The store has lost it, and it is begun anew: memory has what nobody goes on with."""
        if session := self._sessions.known(key):
            session.recording.fail_readers(StoreUnavailable("This answer is begun anew. Resume it.", retry_after=1))
            self._stop_following(key)
            self._sessions.release(session)

    # What the store tells.

    def on_taken(self, session: SessionRecord, *, is_cancelled: bool) -> None:
        self._do(session.key, self._resume(session, is_cancelled))

    def on_lost(self, key: SessionKey) -> None:
        if session := self._sessions.known(key):
            _log.warning("another server has taken a session that this one was answering; its readers follow that")
            self._do(key, self._give_up(session))

    def on_cancel(self, key: SessionKey) -> None:
        if (session := self._sessions.known(key)) and session.is_running:
            session.latest.cancel()

    def on_heard(self, key: SessionKey) -> None:
        if session := self._sessions.known(key):
            session.hear_elsewhere(2 * _HEARD_SECONDS)

    def _is_up_to_date(self, session: Session) -> bool:
        """No other process can have changed it, or what this one has done is not stored yet."""
        key = session.recording.key
        is_held = self._store.holds(key) and (session.is_running or self._store.is_behind(key))
        return is_held or not session.is_resumable or session.is_volatile

    async def _apply(self, key: SessionKey, record: SessionRecord | None) -> None:
        session = self._sessions.known(key)
        if session and self._is_up_to_date(session):
            return
        if session and (record is None or session.is_another(record)):
            gone = SessionExpired(f"Session {key.id!r} is over and no longer kept.", param="session_id")
            session.recording.fail_readers(gone)
            self._stop_following(key)
            self._sessions.release(session)
            session = None
        if record is None:
            return
        if session is None:
            self._sessions.make_room(key, record.kind)
            session = self._sessions.adopt(record)
        else:
            await self._catch_up(session, record)
            session.learn(record)
        if session.is_running and key not in self._followers:
            session.is_followed = True
            self._followers[key] = asyncio.create_task(self._follow(session))

    async def _catch_up(self, session: Session, record: SessionRecord) -> None:
        """Before the end of a turn is known, its events are."""
        recording = session.recording
        if not recording.readers and recording.key not in self._followers:
            recording.jump_to(record.next_index)
        try:
            while recording.next_index < record.next_index:
                recording.take(await self._store.read(recording.key, recording.next_index - 1))
        except ReplayGap as gap:  # they slept while the holder deleted old turns
            recording.fail_readers(gap)
            recording.jump_to(record.next_index)

    async def _follow(self, session: Session) -> None:
        key = session.recording.key
        silent_since: float | None = None
        try:
            while session.is_running:
                try:
                    async with aclosing(self._store.follow(key, session.recording.next_index - 1)) as news:
                        async for events in news:
                            silent_since = None
                            session.recording.take(events)
                            if events:
                                continue
                            await self._apply(key, await self._store.find(key))
                            if not session.is_running or self._sessions.known(key) is not session:
                                return
                except StoreUnavailable as error:
                    if self._followers.get(key) is not asyncio.current_task():
                        return  # it was cancelled while it connected, which the client takes for a fault
                    now = self._store.now()
                    silent_since = silent_since or now
                    if now - silent_since > _MAX_SILENT_SECONDS:
                        session.recording.fail_readers(error)
                    await asyncio.sleep(_RETRY_SECONDS)
        except ServiceError as error:
            session.recording.fail_readers(error)
        except Exception as fault:  # the readers must not wait for ever
            log_exception("a session of another server could not be followed", fault, session.id)
            session.recording.fail_readers(StoreUnavailable("The stream broke off. Resume it.", retry_after=1))
        finally:
            if self._followers.get(key) is asyncio.current_task():
                del self._followers[key]
                session.is_followed = False
            self._heard_at.pop(key, None)

    def _stop_following(self, key: SessionKey) -> None:
        task = self._followers.pop(key, None)
        if task and task is not asyncio.current_task():
            task.cancel()

    async def _resume(self, record: SessionRecord, is_cancelled: bool) -> None:
        key = record.key
        self._stop_following(key)
        # The holder that died knew of its own readers only; it may be alive, and those who wait there shall be heard.
        record.no_reader_since = self._store.now() + 2 * _HEARD_SECONDS
        session = self._sessions.known(key)
        if session and session.is_another(record):
            self._sessions.release(session)
            session = None
        if session:
            session.recording.rewind()
            await self._until_reached(self._catch_up, session, record)
            session.learn(record)
        else:
            session = self._sessions.adopt(record)
        session.is_followed = False
        await self._sessions.resume_turn(session)
        if is_cancelled:
            session.latest.cancel()

    async def _give_up(self, session: Session) -> None:
        key = session.recording.key
        await self._sessions.stop_recording(session)
        try:
            record = await self._until_reached(self._store.find, key)
        except LaterVersion as error:
            session.recording.fail_readers(error)
            self._sessions.release(session)
            return
        session.recording.rewind()
        if record and (session.recording.next_index == 0 or not session.is_another(record)):
            session.learn(record, is_mine_void=True)
        await self._apply(key, record)

    async def _until_reached(self, ask: Callable[[*_Args], Awaitable[_Answer]], *args: *_Args) -> _Answer:
        while True:
            try:
                return await ask(*args)
            except LaterVersion:
                raise
            except StoreUnavailable:
                await asyncio.sleep(_RETRY_SECONDS)

    def _do(self, key: SessionKey, work: Coroutine[Any, Any, None]) -> None:
        """One after the other: a session may be lost and taken again before this process has given it up."""
        before = self._work.get(key)

        async def logged() -> None:
            if before:
                await asyncio.wait([before])
            try:
                await work
            except Exception as fault:
                log_exception("a session could not change its server", fault, "-")

        def is_over(task: asyncio.Task[None]) -> None:
            if self._work.get(key) is task:
                del self._work[key]

        self._work[key] = asyncio.create_task(logged())
        self._work[key].add_done_callback(is_over)
