"""All sessions of this process: started, found, cancelled, swept."""

import asyncio
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from server.errors import QueueFull, SessionConflict, SessionNotFound
from server.streaming.recording import FEWEST_EVENTS_KEPT, Recording
from server.streaming.session import Session, Source, Turn

HEARTBEAT_SECONDS = 15.0
_SWEEP_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class SessionRules:
    ttl_seconds: float = 600
    max_sessions: int = 1024
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
        """Ends what still runs; every reader is told."""
        if self._sweeper:
            self._sweeper.cancel()
        for session in self._sessions.values():
            if session.is_running:
                session.latest.cancel()
        if self._recorders:
            await asyncio.wait(self._recorders, timeout=5)

    def find(self, owner: str, session_id: str) -> Session:
        session = self._sessions.get((owner, session_id))
        if session is None:
            raise SessionNotFound(f"There is no session {session_id!r}.", param="session_id")
        session.touched_at = time.monotonic()
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
        known = self._sessions.get((asked.owner, asked.session_id or ""))
        session = known or self._new_session(asked)
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
        now = time.monotonic()
        for key, session in list(self._sessions.items()):
            session.cancel_if_unheard()
            for reader in session.recording.readers:
                reader.wake_if_idle(HEARTBEAT_SECONDS)
            if self._is_forgettable(session) and now - session.touched_at > self._rules.ttl_seconds:
                del self._sessions[key]

    def _new_session(self, asked: Asked) -> Session:
        if len(self._sessions) >= self._rules.max_sessions:
            self._forget_oldest()
        if asked.session_id:
            grace = self._rules.named_grace_seconds
        else:
            grace = self._rules.anonymous_grace_seconds if asked.resumable else 0
        session_id = asked.session_id or f"sess-{secrets.token_hex(16)}"
        return Session(asked.owner, session_id, grace, Recording(asked.most_events))

    def _forget_oldest(self) -> None:
        finished = [
            (session.touched_at, key) for key, session in self._sessions.items() if self._is_forgettable(session)
        ]
        if not finished:
            raise QueueFull(f"{len(self._sessions)} streams are running already.", retry_after=5)
        del self._sessions[min(finished)[1]]

    @staticmethod
    def _is_forgettable(session: Session) -> bool:
        return not session.is_running and not session.recording.readers

    async def _sweep_for_ever(self) -> None:
        with suppress(asyncio.CancelledError):
            while True:
                await asyncio.sleep(_SWEEP_SECONDS)
                self.sweep()
