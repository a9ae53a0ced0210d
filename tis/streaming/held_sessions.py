"""The sessions that this process has in memory, and which of them go when there is no room for another."""

import secrets
from collections.abc import Iterator
from functools import partial

from tis.errors import QueueFull
from tis.observability.metrics import count_refusal
from tis.streaming.eviction import EvictionQueue
from tis.streaming.recording import Recording, WindowLimits
from tis.streaming.retention import SessionLimits
from tis.streaming.session import Session
from tis.streaming.session_request import SessionRequest
from tis.streaming.stores.memory import MemoryStore
from tis.streaming.stores.shared_store import SharedStore
from tis.streaming.stores.store import SessionKey, SessionRecord, Store

# Thousands of sessions live for days. Checking all of them every second would block the event loop.
_MAX_IDLE_PER_SWEEP = 500
_MAX_TOMBSTONES = 4096  # ids of evicted sessions: a client that comes back to one gets 410 instead of 404


class HeldSessions:
    def __init__(self, limits: SessionLimits, store: Store) -> None:
        self._limits = limits
        self._store = store
        # For sessions that cannot be resumed, and those that the store rejects.
        self._memory_store = MemoryStore(store.now)
        self._sessions: dict[SessionKey, Session] = {}
        self._stream_queue, self._retained_queue = EvictionQueue(), EvictionQueue()
        self._active: dict[SessionKey, Session] = {}  # every sweep checks all of them
        self._idle: list[Session] = []  # the next sweeps check these, a part each
        self._tombstones: dict[SessionKey, None] = {}  # oldest first
        self.is_store_full = False  # all that it has are running

    def __iter__(self) -> Iterator[Session]:
        return iter(list(self._sessions.values()))

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def active(self) -> list[Session]:
        return list(self._active.values())

    def get(self, key: SessionKey) -> Session | None:
        return self._sessions.get(key)

    def has_had(self, key: SessionKey) -> bool:
        """Whether it was evicted not long ago."""
        return key in self._tombstones

    def note_use(self, session: Session) -> None:
        self._active[session.recording.key] = session

    def note_idle(self, session: Session) -> None:
        self._active.pop(session.recording.key, None)

    def next_idle(self) -> list[Session]:
        """The next part of the idle sessions; a round of calls covers all."""
        if not self._idle:
            self._idle = [session for key, session in self._sessions.items() if key not in self._active]
        some = self._idle[-_MAX_IDLE_PER_SWEEP:]
        del self._idle[-_MAX_IDLE_PER_SWEEP:]
        return [session for session in some if self._sessions.get(session.recording.key) is session]

    @property
    def is_end_of_round(self) -> bool:
        return not self._idle

    def add(self, record: SessionRecord) -> Session:
        store = self._store if record.is_resumable and not self.is_store_full else self._memory_store
        recording = Recording(record.key, store, WindowLimits(), record.next_index)
        session = Session(record, recording, store, self._limits)
        session.is_volatile = record.is_resumable and self.is_store_full
        self._sessions[record.key] = self._active[record.key] = session
        queue = self._queue_of(record.kind)
        queue.add(session)
        session.on_use = partial(queue.use, session)
        self._tombstones.pop(record.key, None)
        return session

    def add_new(self, request: SessionRequest) -> Session:
        key = SessionKey(request.owner, request.session_id or f"sess-{secrets.token_hex(16)}")
        record = SessionRecord(
            key, is_named=bool(request.session_id), used_at=self._store.now(), is_resumable=request.resumable
        )
        if retention := request.retention:
            record.kind, record.ttl_seconds = retention.kind, retention.ttl_seconds
            record.grace_seconds = retention.grace_seconds
        return self.add(record)

    def move_to_memory(self, key: SessionKey) -> None:
        if session := self._sessions.get(key):
            session.move_to(self._memory_store)

    def forget(self, session: Session, *, for_good: bool = False) -> None:
        """In a shared store others may need it: there it goes when its time to live is over, or `for_good`."""
        key = session.recording.key
        del self._sessions[key]
        self._active.pop(key, None)
        self._queue_of(session.kind).remove(session)
        if session.is_resumable:
            if isinstance(self._store, SharedStore) and not for_good:
                self._store.drop(key)
            else:
                self._store.forget(key)
            self._tombstones[key] = None
            if len(self._tombstones) > _MAX_TOMBSTONES:
                del self._tombstones[next(iter(self._tombstones))]

    def pick_victim(self, owner: str, kind: str) -> Session | None:
        """None where there is room. Raises `QueueFull` if all are running."""
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

    def bound_memory(self) -> None:
        surplus = sum(one.num_bytes for one in self._sessions.values()) - self._limits.max_bytes
        for session in self._in_order_of_eviction() if surplus > 0 else ():
            if surplus <= 0:
                return
            if session.is_durable and self._store.durability == "degraded":
                continue  # the file may be lost: memory may have the only copy
            surplus -= session.num_bytes
            if session.is_durable:
                session.recording.drop_window()
                surplus += session.num_bytes
            else:
                self.forget(session)

    def make_room_in_store(self) -> None:
        """Evicts the oldest finished session of the owner who holds most, until the store has room.

        If all that is left runs, new sessions stay in memory. Running ones may add to the store.
        """
        self.is_store_full = False
        while self._store.durability == "durable" and self._store.is_full:
            victim = next((oldest for owner in self._store.owners() if (oldest := self._oldest_of(owner))), None)
            if victim is None:
                self.is_store_full = True
                return
            self.forget(victim)

    def _oldest_of(self, owner: str) -> Session | None:
        """Of the finished sessions that the store has."""
        both = [queue.oldest_of(owner) for queue in (self._stream_queue, self._retained_queue)]
        return min((session for session in both if session), key=lambda one: one.last_used_at, default=None)

    def _queue_of(self, kind: str) -> EvictionQueue:
        return self._retained_queue if kind else self._stream_queue

    def _in_order_of_eviction(self) -> list[Session]:
        """Non-resumable first, then anonymous, then least recently used."""
        return sorted(
            (session for session in self._sessions.values() if session.is_evictable),
            key=lambda one: (one.is_resumable, one.is_named, one.last_used_at),
        )
