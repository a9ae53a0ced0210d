"""All sessions of this process: starts, finds, cancels and evicts them, and resumes those of the process before."""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from tis.errors import QueueFull, ServiceError
from tis.observability.logs import log_exception
from tis.observability.metrics import count_refusal
from tis.streaming.archive.archiving_store import ArchivingStore
from tis.streaming.errors import ReplayGap, SessionConflict, SessionExpired, SessionNotFound, StoreUnavailable
from tis.streaming.eviction import EvictionQueue
from tis.streaming.followed_sessions import FollowedSessions
from tis.streaming.kept_begins import KeptBegins
from tis.streaming.kept_ends import KeptEnds, RetainedForm
from tis.streaming.recording import MIN_WINDOW_EVENTS, Recording, WindowLimits
from tis.streaming.retention import Retention, SessionLimits
from tis.streaming.session import Session
from tis.streaming.source import ResumeSource, Source
from tis.streaming.stores.memory import MemoryStore
from tis.streaming.stores.shared_store import SharedStore
from tis.streaming.stores.store import Durability, Event, SessionKey, SessionRecord, Store
from tis.streaming.turn import Turn

if TYPE_CHECKING:
    from tis.streaming.archive.sql_archive import SqlArchive

_log = logging.getLogger("tis.store")

# Thousands of sessions live for days. Checking all of them every second would block the event loop.
_MAX_IDLE_PER_SWEEP = 500
_PAUSE_SECONDS = 0.5  # of the process; a sweep that is so late follows one
_RETRY_SECONDS = 0.5  # until a shared store can be read again
_MAX_TOMBSTONES = 4096  # ids of evicted sessions: a client that comes back to one gets 410 instead of 404


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """Which session a request belongs to, and how to retain it."""

    owner: str
    session_id: str | None
    fingerprint: str
    # An answer that is neither streamed nor named cannot be resumed: no client has its id.
    resumable: bool = True
    window_events: int = MIN_WINDOW_EVENTS
    retention: Retention | None = None

    def with_window(self, num_events: int) -> "SessionRequest":
        return replace(self, window_events=max(MIN_WINDOW_EVENTS, num_events))

    @property
    def kind(self) -> str:
        return self.retention.kind if self.retention else ""


class Sessions:
    """Keyed by owner and id: another owner's session does not exist."""

    def __init__(
        self,
        limits: SessionLimits,
        store: Store | None = None,
        resume_source: ResumeSource | None = None,
        is_revoked: Callable[[str], bool] = lambda owner: False,
        retained_form: RetainedForm | None = None,
    ) -> None:
        """`is_revoked`: of an owner whose running answers are to end. `retained_form`: for a store with an archive."""
        self._limits = limits
        self._store = store or MemoryStore()
        # For sessions that cannot be resumed, and those that the store rejects.
        self._memory_store = MemoryStore(self._store.now)
        self._shared = self._store if isinstance(self._store, SharedStore) else None
        self._followed = FollowedSessions(self, self._shared) if self._shared else None
        self._archiving = self._store if isinstance(self._store, ArchivingStore) else None
        self._kept_ends = KeptEnds(self._archiving, retained_form) if self._archiving and retained_form else None
        self._kept_begins = (
            KeptBegins(self._archiving, self._followed, self.known, limits.max_attached_bytes)
            if self._archiving and self._followed
            else None
        )
        self._resume_source = resume_source
        self.is_revoked = is_revoked
        self._sessions: dict[SessionKey, Session] = {}
        self._stream_queue, self._retained_queue = EvictionQueue(), EvictionQueue()
        self._active: dict[SessionKey, Session] = {}  # every sweep checks all of them
        self._idle: list[Session] = []  # the next sweeps check these, a part each
        self._tombstones: dict[SessionKey, None] = {}  # oldest first
        self._recorders: dict[asyncio.Task[None], Turn] = {}
        self._sweeper: asyncio.Task[None] | None = None
        self._is_full = False

    def __iter__(self) -> Iterator[Session]:
        return iter(list(self._sessions.values()))

    @property
    def durability(self) -> Durability:
        """`full`: the store takes no new session, because all that it has are running."""
        durability = self._store.durability
        return "full" if durability == "durable" and self._is_full else durability

    @property
    def lag_seconds(self) -> float:
        """How long the oldest event that the store does not have yet has waited."""
        return self._store.lag_seconds

    @property
    def num_kept(self) -> int:
        return len(self._sessions)

    @property
    def num_running(self) -> int:
        return len(self._recorders)

    @property
    def num_readers(self) -> int:
        return sum(len(session.recording.readers) for session in self._active.values())

    def now(self) -> float:
        """On the clock of the store."""
        return self._store.now()

    @property
    def max_attached_bytes(self) -> int:
        """The limit for one session."""
        return self._limits.max_attached_bytes

    async def open(self) -> None:
        records = await self._store.open(self._snapshot, self._on_degraded, self._on_abandoned)
        adopted = [self.adopt(record) for record in sorted(records, key=lambda record: record.last_used_at)]
        for session in adopted:
            if session.is_running:
                await self.resume_turn(session)
        self._sweeper = asyncio.create_task(self._sweep_forever())
        if self._kept_begins:
            self._kept_begins.open()

    async def close(self) -> None:
        if self._sweeper is None:
            return  # `open` never ran
        if self._kept_begins:
            await self._kept_begins.close()
        await self.end_all()
        self._sweeper.cancel()
        if self._followed:
            await self._followed.close()
        await self._store.close()

    async def wait_until_idle(self, timeout: float) -> None:
        """Returns once no turn runs, or when the time is up."""
        if self._recorders:
            await asyncio.wait(self._recorders, timeout=timeout)

    async def end_all(self) -> None:
        """Stops all recordings. Durable turns resume after a restart; the others end with the error `Draining`."""
        if self._kept_ends:
            self._kept_ends.is_hurried = True
        await asyncio.sleep(0)  # a task cancelled before its first step would end no turn
        for recorder, turn in list(self._recorders.items()):
            if turn.is_durable:
                turn.suspend()
            recorder.cancel()
        await self.wait_until_idle(timeout=5)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.flush_timeout_seconds):
                await self._store.flush()
        for session in self:
            session.recording.close()

    async def refresh(self, owner: str, session_id: str | None, kind: str = "", *, is_required: bool = False) -> None:
        """Learns what other processes did to a session: call it before `find`, `find_turn`, `peek` and `start`.

        Does nothing where no store is shared. Raises `StoreUnavailable` if it is required and the store cannot tell.
        """
        if self._followed and session_id:
            await self._followed.refresh(SessionKey(owner, session_id), kind, is_required=is_required)

    @property
    def archive(self) -> "SqlArchive | None":
        """Of what is to last; None if it is where streams are."""
        return self._archiving.archive if self._archiving else None

    def require_archive(self) -> None:
        """Raises `StoreUnavailable` while what is to last could not be stored."""
        if self.archive:
            self.archive.require_available()

    async def keep_begin(self, session: Session, *, may_begin_again: bool) -> None:
        """Stores a turn that has just begun where what lasts is: then no loss of this process can undo it.

        Raises `StoreUnavailable`. `may_begin_again`: it may be made a second time from its begin on.
        """
        if self._kept_begins:
            await self._kept_begins.keep(session, may_begin_again=may_begin_again)

    def known(self, key: SessionKey) -> Session | None:
        return self._sessions.get(key)

    def find(self, owner: str, session_id: str, kind: str = "") -> Session:
        key = SessionKey(owner, session_id)
        session = self._sessions.get(key)
        if session and session.kind == kind:
            session.touch()
            self._active[key] = session
            return session
        if key in self._tombstones:
            raise SessionExpired(f"Session {session_id!r} is over and no longer kept.", param="session_id")
        raise SessionNotFound(f"There is no session {session_id!r}.", param="session_id")

    def peek(self, owner: str, session_id: str, *, of_any_kind: bool = False) -> Session | None:
        """A recorded stream, which does not count as used by this."""
        session = self._sessions.get(SessionKey(owner, session_id))
        return session if session and (of_any_kind or not session.kind) else None

    def find_turn(self, request: SessionRequest) -> tuple[Session, Turn] | None:
        """Returns the turn that already answers this request, if there is one."""
        session = self._sessions.get(SessionKey(request.owner, request.session_id or ""))
        if session is None:
            return None
        if session.kind != request.kind:
            raise SessionConflict(
                f"The id {session.id!r} belongs to another kind of object. Use another session id.", param="session_id"
            )
        self._active[session.recording.key] = session
        turn = session.turn_with(request.fingerprint)
        if turn and turn.is_worth_repeating:
            turn = None
        if turn is None and session.is_cut:
            raise session.cut_error()  # a new turn would use indexes that clients have seen already
        if turn is None and session.is_running:
            raise SessionConflict(
                f"Session {session.id!r} is answering another request. Wait for its end, cancel it, or use another id.",
                param="session_id",
            )
        return (session, turn) if turn else None

    def start(self, request: SessionRequest, begin: Callable[[], Source]) -> tuple[Session, Turn]:
        """Returns the turn that already answers the request, or begins one; atomic on the event loop."""
        if existing := self.find_turn(request):
            return existing
        known = self._sessions.get(SessionKey(request.owner, request.session_id or ""))
        victim = None if known else self._pick_victim(request.owner, request.kind)
        source = begin()  # may raise: evict only after it
        if victim:
            self._forget(victim)
        if not known:
            self._make_room_in_store()
        session = known or self._new_session(request)
        session.recording.limits.max_events = max(session.recording.limits.max_events, request.window_events)
        turn = session.begin_turn(request.fingerprint, source, request.retention)
        self._start_recording(session, turn)
        return session, turn

    async def save_document(
        self, owner: str, session_id: str, retention: Retention, attachments: Mapping[str, bytes] | None = None
    ) -> Session:
        """Makes a session that has a document and no answer. Raises `StoreUnavailable` if an archive is away."""
        victim = self._pick_victim(owner, retention.kind)
        if victim:
            self._forget(victim)
        self._make_room_in_store()
        session = self._new_session(SessionRequest(owner, session_id, "", retention=retention))
        try:
            await session.begin_document(retention, attachments or {})
        except BaseException:
            self._forget(session)
            raise
        return session

    async def delete(self, session: Session) -> None:
        """Cancels the session and deletes it; returns when the store has done so, or after the flush timeout.

        Raises `StoreUnavailable` if an archive cannot delete it now.
        """
        if session.is_running:
            session.latest.cancel()
            await self._wait_for_end(session)
        if self._archiving and session.kind and session.is_resumable:
            await self._archiving.delete(session.to_record())
        if self._sessions.get(session.recording.key) is session:
            self._forget(session, for_good=True)
        session.recording.close()  # ends the readers of a turn that did not stop in time
        await self.flush()

    async def flush(self) -> None:
        """Returns when everything so far is stored, or after the flush timeout."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.flush_timeout_seconds):
                await self._store.flush()

    async def commit(self) -> bool:
        """Flushes; False if the store is degraded. Always True in memory: no other process could resume."""
        await self._store.flush()
        return self._store.durability != "degraded"

    async def cancel(self, owner: str, session_id: str, kind: str = "") -> str:
        """Returns the status afterwards. Idempotent; "unknown" for an unknown session or another owner's."""
        await self.refresh(owner, session_id, kind, is_required=True)
        session = self._sessions.get(SessionKey(owner, session_id))
        if session is None or session.kind != kind:
            return "unknown"
        if session.is_running:
            session.latest.cancel()
            await self._wait_for_end(session)
        return "cancelled" if session.is_running else session.latest.status

    async def _wait_for_end(self, session: Session) -> None:
        """Waits until the end of the turn is stored, so that a kill cannot undo it; at most the flush timeout."""
        turn = session.latest
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.flush_timeout_seconds):
                if self._followed and session.recording.key in self._followed:
                    await self._followed.cancel(session)
                if recorders := [task for task, recorded in self._recorders.items() if recorded is turn]:
                    await asyncio.wait(recorders)
                await self._store.flush()

    def sweep(self, *, is_late: bool = False) -> None:
        """Checks the store, then sessions. An error in one must not stop the sweep of the others.

        Late is one that follows a pause of the whole process. Clients could not connect meanwhile, so nothing is
        cancelled for want of a reader; the next sweep may do it.
        """
        _log_failure(self._store.tick, "the store could not be checked")
        for session in [*self._active.values(), *self._next_idle()]:
            _log_failure(partial(self._sweep_session, session, is_late), "a session could not be swept", session.id)
        if not self._idle:  # once per round over all sessions: counting bytes takes as long as a round
            _log_failure(self._bound_memory, "memory could not be freed")
        _log_failure(self._make_room_in_store, "the store could not be bounded")

    def _next_idle(self) -> list[Session]:
        """The next part of the idle sessions; a round of sweeps covers all."""
        if not self._idle:
            self._idle = [session for key, session in self._sessions.items() if key not in self._active]
        some = self._idle[-_MAX_IDLE_PER_SWEEP:]
        del self._idle[-_MAX_IDLE_PER_SWEEP:]
        return [session for session in some if self._sessions.get(session.recording.key) is session]

    def _sweep_session(self, session: Session, is_late: bool) -> None:
        if session.is_running and self.is_revoked(session.owner):
            session.latest.cancel()
        if not is_late:
            session.cancel_without_reader()
        if self._followed:
            self._followed.sweep(session)
        for reader in session.recording.readers:
            reader.wake_if_idle(self._limits.heartbeat_seconds)
        if not session.is_evictable:
            return
        unused = self._store.now() - session.last_used_at
        if unused > session.ttl_seconds or not session.is_resumable:
            self._forget(session)
            return
        session.drop_stored_payloads()
        if session.is_idle:
            self._active.pop(session.recording.key, None)

    def _bound_memory(self) -> None:
        surplus = sum(one.num_bytes for one in self._sessions.values()) - self._limits.max_bytes
        for session in self._evictable() if surplus > 0 else ():
            if surplus <= 0:
                return
            if session.is_durable and self._store.durability == "degraded":
                continue  # the file may be lost: memory may have the only copy
            surplus -= session.num_bytes
            if session.is_durable:
                session.recording.drop_window()
                surplus += session.num_bytes
            else:
                self._forget(session)

    def _make_room_in_store(self) -> None:
        """Evicts the oldest finished session of the owner who holds most, until the store has room.

        If all that is left runs, new sessions stay in memory. Running ones may add to the store.
        """
        self._is_full = False
        while self._store.durability == "durable" and self._store.is_full:
            victim = next((oldest for owner in self._store.owners() if (oldest := self._oldest_of(owner))), None)
            if victim is None:
                self._is_full = True
                return
            self._forget(victim)

    def _oldest_of(self, owner: str) -> Session | None:
        """Of the finished sessions that the store has."""
        both = [queue.oldest_of(owner) for queue in (self._stream_queue, self._retained_queue)]
        return min((session for session in both if session), key=lambda one: one.last_used_at, default=None)

    def _new_session(self, request: SessionRequest) -> Session:
        key = SessionKey(request.owner, request.session_id or f"sess-{secrets.token_hex(16)}")
        record = SessionRecord(
            key, is_named=bool(request.session_id), used_at=self._store.now(), is_resumable=request.resumable
        )
        if retention := request.retention:
            record.kind, record.ttl_seconds = retention.kind, retention.ttl_seconds
            record.grace_seconds = retention.grace_seconds
        return self.adopt(record)

    def adopt(self, record: SessionRecord) -> Session:
        store = self._store if record.is_resumable and not self._is_full else self._memory_store
        recording = Recording(record.key, store, WindowLimits(), record.next_index)
        session = Session(record, recording, store, self._limits)
        session.is_volatile = record.is_resumable and self._is_full
        self._sessions[record.key] = self._active[record.key] = session
        queue = self._queue_of(record.kind)
        queue.add(session)
        session.on_use = partial(queue.use, session)
        self._tombstones.pop(record.key, None)
        return session

    async def resume_turn(self, session: Session) -> None:
        """Resumes a turn that another process began and did not end."""
        assert self._resume_source
        turn = session.latest
        request: bytes = turn.record.request
        try:
            states = await self._resume_states(session, turn.first_index)
        except ServiceError as error:
            log_exception("the events of an interrupted answer could not be read", error, session.id)
            request, states = b"", []
        read_attachments = partial(self._store.read_attachments, session.recording.key)
        turn.resume_with(self._resume_source(request, states, read_attachments))
        session.count_grace_after_restart()
        self._start_recording(session, turn)

    async def stop_recording(self, session: Session) -> None:
        """Ends what makes the events of the latest turn, not the turn."""
        await asyncio.sleep(0)  # a task cancelled before its first step would not end its source
        for recorder, turn in list(self._recorders.items()):
            if turn is session.latest:
                turn.suspend()
                recorder.cancel()
                await asyncio.wait([recorder])

    def make_room(self, key: SessionKey, kind: str) -> None:
        """For a session that somebody reads: it may be one too many, but must not push memory up for ever."""
        with suppress(QueueFull):
            if victim := self._pick_victim(key.owner, kind):
                self._forget(victim)

    def release(self, session: Session) -> None:
        """Drops a session from memory that others may still find in the shared store."""
        if self._sessions.get(session.recording.key) is session:
            self._forget(session)

    async def _resume_states(self, session: Session, first_index: int) -> list[bytes]:
        states: list[bytes] = []
        while first_index + len(states) < session.recording.next_index:
            try:
                events = await self._store.read(session.recording.key, first_index + len(states) - 1)
            except StoreUnavailable:
                if self._shared is None or not self._shared.is_remote:
                    raise
                await asyncio.sleep(_RETRY_SECONDS)  # it will be there again; a file may never be
                continue
            if not events:
                raise ReplayGap("Some events of the interrupted answer are missing in the store.")
            states += [event.resume_state for event in events]
        return states

    def _start_recording(self, session: Session, turn: Turn) -> None:
        ends = self._kept_ends if session.kind and session.is_resumable else None
        recorder = asyncio.create_task(turn.run(partial(ends.keep, session) if ends else None))
        self._recorders[recorder] = turn
        begins = self._kept_begins if session.kind and session.is_in_background else None
        if begins:
            begins.note_running(session)

        def is_over(task: asyncio.Task[None]) -> None:
            self._recorders.pop(task, None)
            if begins:
                begins.note_over(session)
            session.on_use()

        recorder.add_done_callback(is_over)

    def _pick_victim(self, owner: str, kind: str) -> Session | None:
        queue = self._queue_of(kind)
        if len(queue) < self._limits.max_sessions_of(kind):
            return None
        # Evict non-resumable sessions first; they are always in `_active`.
        non_resumable = (one for one in self._active.values() if not one.is_resumable and one.is_evictable)
        victim = next((one for one in non_resumable if bool(one.kind) == bool(kind)), None) or queue.pick_victim(owner)
        if victim is None:
            count_refusal("sessions")
            raise QueueFull(f"The server runs {len(queue)} streams already. Retry later.", retry_after=5)
        return victim

    def _queue_of(self, kind: str) -> EvictionQueue:
        return self._retained_queue if kind else self._stream_queue

    def _evictable(self) -> list[Session]:
        """In the order of eviction: non-resumable first, then anonymous, then least recently used."""
        return sorted(
            (session for session in self._sessions.values() if session.is_evictable),
            key=lambda one: (one.is_resumable, one.is_named, one.last_used_at),
        )

    def _forget(self, session: Session, *, for_good: bool = False) -> None:
        """In a shared store others may need it: there it goes when its time to live is over, or `for_good`."""
        key = session.recording.key
        del self._sessions[key]
        self._active.pop(key, None)
        self._queue_of(session.kind).remove(session)
        if session.is_resumable:
            if self._shared and not for_good:
                self._shared.drop(key)
            else:
                self._store.forget(key)
            self._tombstones[key] = None
            if len(self._tombstones) > _MAX_TOMBSTONES:
                del self._tombstones[next(iter(self._tombstones))]

    def _snapshot(self) -> Iterable[tuple[SessionRecord, Sequence[Event]]]:
        return [(one.to_record(), one.recording.window) for one in self._sessions.values() if one.is_resumable]

    def _on_degraded(self) -> None:
        for session in self._sessions.values():
            session.recording.make_all_visible()

    def _on_abandoned(self, key: SessionKey) -> None:
        _log.error("the store rejects a session; it stays in memory only and will not survive a restart")
        if session := self._sessions.get(key):
            session.move_to(self._memory_store)

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
