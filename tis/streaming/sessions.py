"""All sessions of this process: starts, finds, cancels and evicts them, and resumes those of the process before."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from tis.errors import QueueFull
from tis.streaming.archive.archiving_store import ArchivingStore
from tis.streaming.errors import SessionConflict, SessionExpired, SessionNotFound
from tis.streaming.followed_sessions import FollowedSessions
from tis.streaming.held_sessions import HeldSessions
from tis.streaming.kept_begins import KeptBegins
from tis.streaming.kept_ends import KeptEnds, RetainedForm
from tis.streaming.recorders import Recorders
from tis.streaming.retention import Retention, SessionLimits
from tis.streaming.session import Session
from tis.streaming.session_request import SessionRequest
from tis.streaming.session_sweeper import SessionSweeper
from tis.streaming.source import ResumeSource, Source
from tis.streaming.stores.memory import MemoryStore
from tis.streaming.stores.shared_store import SharedStore
from tis.streaming.stores.store import Durability, Event, SessionKey, SessionRecord, Store
from tis.streaming.turn import Turn

if TYPE_CHECKING:
    from tis.streaming.archive.sql_archive import SqlArchive

_log = logging.getLogger("tis.store")


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
        self._held = HeldSessions(limits, self._store)
        self._followed = FollowedSessions(self, self._store) if isinstance(self._store, SharedStore) else None
        self._archiving = self._store if isinstance(self._store, ArchivingStore) else None
        kept_ends = KeptEnds(self._archiving, retained_form) if self._archiving and retained_form else None
        self._kept_begins = (
            KeptBegins(self._archiving, self._followed, self.known, limits.max_attached_bytes)
            if self._archiving and self._followed
            else None
        )
        self.is_revoked = is_revoked
        self._recorders = Recorders(self._store, resume_source, self._kept_begins, kept_ends)
        self._sweeper = SessionSweeper(limits, self._store, self._held, self._followed, is_revoked)

    def __iter__(self) -> Iterator[Session]:
        return iter(self._held)

    @property
    def durability(self) -> Durability:
        """`full`: the store takes no new session, because all that it has are running."""
        durability = self._store.durability
        return "full" if durability == "durable" and self._held.is_store_full else durability

    @property
    def lag_seconds(self) -> float:
        """How long the oldest event that the store does not have yet has waited."""
        return self._store.lag_seconds

    @property
    def num_kept(self) -> int:
        return len(self._held)

    @property
    def num_running(self) -> int:
        return len(self._recorders)

    @property
    def num_readers(self) -> int:
        return sum(len(session.recording.readers) for session in self._held.active)

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
        self._sweeper.start()
        if self._kept_begins:
            self._kept_begins.open()

    async def close(self) -> None:
        if not self._sweeper.is_started:
            return  # `open` never ran
        if self._kept_begins:
            await self._kept_begins.close()
        await self.end_all()
        self._sweeper.stop()
        if self._followed:
            await self._followed.close()
        await self._store.close()

    async def wait_until_idle(self, timeout: float) -> None:
        """Returns once no turn runs, or when the time is up."""
        await self._recorders.wait_until_idle(timeout)

    async def end_all(self) -> None:
        """Stops all recordings. Durable turns resume after a restart; the others end with the error `Draining`."""
        await self._recorders.end_all()
        await self.flush()
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
        return self._held.get(key)

    def find(self, owner: str, session_id: str, kind: str = "") -> Session:
        key = SessionKey(owner, session_id)
        session = self._held.get(key)
        if session and session.kind == kind:
            session.touch()
            self._held.note_use(session)
            return session
        if self._held.has_had(key):
            raise SessionExpired(f"Session {session_id!r} is over and no longer kept.", param="session_id")
        raise SessionNotFound(f"There is no session {session_id!r}.", param="session_id")

    def peek(self, owner: str, session_id: str, *, of_any_kind: bool = False) -> Session | None:
        """A recorded stream, which does not count as used by this."""
        session = self._held.get(SessionKey(owner, session_id))
        return session if session and (of_any_kind or not session.kind) else None

    def find_turn(self, request: SessionRequest) -> tuple[Session, Turn] | None:
        """Returns the turn that already answers this request, if there is one."""
        session = self._held.get(SessionKey(request.owner, request.session_id or ""))
        if session is None:
            return None
        if session.kind != request.kind:
            raise SessionConflict(
                f"The id {session.id!r} belongs to another kind of object. Use another session id.", param="session_id"
            )
        self._held.note_use(session)
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
        known = self._held.get(SessionKey(request.owner, request.session_id or ""))
        victim = None if known else self._held.pick_victim(request.owner, request.kind)
        source = begin()  # may raise: evict only after it
        if victim:
            self._held.forget(victim)
        if not known:
            self._held.make_room_in_store()
        session = known or self._held.add_new(request)
        session.recording.limits.max_events = max(session.recording.limits.max_events, request.window_events)
        turn = session.begin_turn(request.fingerprint, source, request.retention)
        self._recorders.start(session, turn)
        return session, turn

    async def save_document(
        self, owner: str, session_id: str, retention: Retention, attachments: Mapping[str, bytes] | None = None
    ) -> Session:
        """Makes a session that has a document and no answer. Raises `StoreUnavailable` if an archive is away."""
        victim = self._held.pick_victim(owner, retention.kind)
        if victim:
            self._held.forget(victim)
        self._held.make_room_in_store()
        session = self._held.add_new(SessionRequest(owner, session_id, "", retention=retention))
        try:
            await session.begin_document(retention, attachments or {})
        except BaseException:
            self._held.forget(session)
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
        if self._held.get(session.recording.key) is session:
            self._held.forget(session, for_good=True)
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
        session = self._held.get(SessionKey(owner, session_id))
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
                await self._recorders.wait_for(turn)
                await self._store.flush()

    def sweep(self, *, is_late: bool = False) -> None:
        """At once, what `SessionSweeper` does every second."""
        self._sweeper.sweep(is_late=is_late)

    def adopt(self, record: SessionRecord) -> Session:
        return self._held.add(record)

    async def resume_turn(self, session: Session) -> None:
        """Resumes a turn that another process began and did not end."""
        await self._recorders.resume(session)

    async def stop_recording(self, session: Session) -> None:
        """Ends what makes the events of the latest turn, not the turn."""
        await self._recorders.stop(session.latest)

    def make_room(self, key: SessionKey, kind: str) -> None:
        """For a session that somebody reads: it may be one too many, but must not push memory up for ever."""
        with suppress(QueueFull):
            if victim := self._held.pick_victim(key.owner, kind):
                self._held.forget(victim)

    def release(self, session: Session) -> None:
        """Drops a session from memory that others may still find in the shared store."""
        if self._held.get(session.recording.key) is session:
            self._held.forget(session)

    def _snapshot(self) -> Iterable[tuple[SessionRecord, Sequence[Event]]]:
        return [(one.to_record(), one.recording.window) for one in self._held if one.is_resumable]

    def _on_degraded(self) -> None:
        for session in self._held:
            session.recording.make_all_visible()

    def _on_abandoned(self, key: SessionKey) -> None:
        _log.error("the store rejects a session; it stays in memory only and will not survive a restart")
        self._held.move_to_memory(key)
