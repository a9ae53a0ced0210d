"""All sessions of this process: started, found, cancelled, swept."""

import asyncio
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from server.errors import QueueFull, SessionConflict, SessionNotFound
from server.observability.logs import log_fault
from server.streaming.recording import FEWEST_EVENTS_KEPT, Recording
from server.streaming.session import Session, Source, Turn

HEARTBEAT_SECONDS = 15.0
_SWEEP_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class SessionRules:
    ttl_seconds: float = 600
    max_sessions: int = 1024
    max_bytes: int = 512 * 2**20  # of all recordings together
    named_grace_seconds: float | None = 3600  # None: an answer that nobody hears runs to its end
    anonymous_grace_seconds: float = 30


@dataclass(frozen=True, slots=True)
class Asked:
    """What a caller says about the session of a request."""

    owner: str
    session_id: str | None
    fingerprint: str
    # Nobody can come back to an answer that is not streamed and has no name.
    resumable: bool = True
    most_events: int = FEWEST_EVENTS_KEPT

    def keeping(self, num_events: int) -> "Asked":
        return replace(self, most_events=max(FEWEST_EVENTS_KEPT, num_events))


class Sessions:
    """Keyed by owner and id: another owner's session does not exist."""

    def __init__(self, rules: SessionRules) -> None:
        self._rules = rules
        self._sessions: dict[tuple[str, str], Session] = {}
        self._recorders: set[asyncio.Task[None]] = set()
        self._sweeper: asyncio.Task[None] | None = None

    async def open(self) -> None:
        self._sweeper = asyncio.create_task(self._sweep_for_ever())

    async def close(self) -> None:
        if self._sweeper:
            self._sweeper.cancel()
        await self.end_all()

    async def quiet(self, timeout: float) -> None:
        """Returns once no turn runs, or when the time is up."""
        if self._recorders:
            await asyncio.wait(self._recorders, timeout=timeout)

    async def end_all(self) -> None:
        """Ends what still runs, with a reason that every reader gets and that is no success."""
        await asyncio.sleep(0)  # a task that is cancelled before it has begun would tell nobody
        for recorder in list(self._recorders):
            recorder.cancel()
        await self.quiet(timeout=5)

    def find(self, owner: str, session_id: str) -> Session:
        session = self._sessions.get((owner, session_id))
        if session is None:
            raise SessionNotFound(f"There is no session {session_id!r}.", param="session_id")
        session.touch()
        return session

    def attached(self, asked: Asked) -> tuple[Session, Turn] | None:
        """The turn that already answers this very request, if there is one."""
        session = self._sessions.get((asked.owner, asked.session_id or ""))
        if session is None:
            return None
        turn = session.turn_with(asked.fingerprint)
        if turn is None and session.is_running:
            raise SessionConflict(
                f"Session {session.id!r} is answering another request. Wait for its end, cancel it, or use another id.",
                param="session_id",
            )
        return (session, turn) if turn else None

    def start(self, asked: Asked, begin: Callable[[], Source]) -> tuple[Session, Turn]:
        """Attaches if the request is being answered already, begins a turn otherwise; atomic on the event loop."""
        if there := self.attached(asked):
            return there
        session = self._session_for(asked)
        turn = Turn(session.recording, asked.fingerprint, begin())
        self._sessions[session.owner, session.id] = session
        session.begin(turn)
        session.recording.events_kept = max(session.recording.events_kept, asked.most_events)
        recorder = asyncio.create_task(turn.record())
        self._recorders.add(recorder)
        recorder.add_done_callback(self._recorders.discard)
        return session, turn

    def cancel(self, owner: str, session_id: str) -> str:
        """Idempotent; a session that is unknown, or another's, is `unknown`."""
        session = self._sessions.get((owner, session_id))
        if session is None:
            return "unknown"
        if session.is_running:
            session.latest.cancel()
            return "cancelled"
        return session.latest.status

    def sweep(self) -> None:
        for session in list(self._sessions.values()):
            try:
                self._look_after(session)
            except Exception as fault:  # one session must not end the care for all others
                log_fault("a session could not be swept", fault, session.id)
        self._bound_memory()

    def _look_after(self, session: Session) -> None:
        session.cancel_if_unheard()
        for reader in session.recording.readers:
            reader.wake_if_idle(HEARTBEAT_SECONDS)
        unused = time.monotonic() - session.last_used_at
        if session.is_forgettable and (unused > self._rules.ttl_seconds or not session.is_resumable):
            self._forget(session)

    def _bound_memory(self) -> None:
        while sum(one.recording.num_bytes for one in self._sessions.values()) > self._rules.max_bytes:
            if not self._forget_one(owner=None):
                return

    def _session_for(self, asked: Asked) -> Session:
        if known := self._sessions.get((asked.owner, asked.session_id or "")):
            return known
        if len(self._sessions) >= self._rules.max_sessions and not self._forget_one(asked.owner):
            raise QueueFull(f"{len(self._sessions)} streams are running already.", retry_after=5)
        if asked.session_id:
            grace = self._rules.named_grace_seconds
        else:
            grace = self._rules.anonymous_grace_seconds if asked.resumable else 0
        session_id = asked.session_id or f"sess-{secrets.token_hex(16)}"
        recording = Recording(asked.most_events)
        return Session(asked.owner, session_id, grace, recording, is_resumable=asked.resumable)

    def _forget_one(self, owner: str | None) -> bool:
        """What nobody can come back to goes first, then the owner's own, then what was not used for longest."""
        candidates = [session for session in self._sessions.values() if session.is_forgettable]
        if not candidates:
            return False
        self._forget(min(candidates, key=lambda one: (one.is_resumable, one.owner != owner, one.last_used_at)))
        return True

    def _forget(self, session: Session) -> None:
        del self._sessions[session.owner, session.id]

    async def _sweep_for_ever(self) -> None:
        with suppress(asyncio.CancelledError):
            while True:
                await asyncio.sleep(_SWEEP_SECONDS)
                self.sweep()
