"""What waits to be written to Redis, by session. It is bounded: what is too much is written from memory later."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from tis.streaming.stores import redis_changes
from tis.streaming.stores.redis_changes import Acks, SessionChange
from tis.streaming.stores.store import Committed, Event, SessionKey, SessionRecord

_MAX_CHANGES = 256  # in one pipeline
_MAX_BYTES = 8 * 2**20


class ChangeQueue:
    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._queues: dict[SessionKey, deque[SessionChange]] = {}
        self._num_bytes = 0
        self.num_put = 0
        # Sessions whose changes are no longer here, with what waits for them: they are written anew from memory.
        self._incomplete: dict[SessionKey, Acks] = {}

    def __contains__(self, key: SessionKey) -> bool:
        return key in self._queues or key in self._incomplete

    @property
    def is_empty(self) -> bool:
        return not (self._queues or self._incomplete)

    @property
    def needs_restores(self) -> bool:
        return bool(self._incomplete)

    @property
    def has_restores(self) -> bool:
        """Some are still to be made, or to be written."""
        return bool(self._incomplete) or any(queue[0].mode == "restore" for queue in self._queues.values())

    def oldest_queued_at(self) -> float | None:
        return min((queue[0].queued_at for queue in self._queues.values()), default=None)

    def has_any_of(self, num_put: int) -> bool:
        """Some of the first so many changes still wait, in whatever form."""
        return bool(self._incomplete) or any(queue[0].number <= num_put for queue in self._queues.values())

    def put(self, change: SessionChange) -> bool:
        """Returns False if too much waits: then nothing does, and all of these sessions are incomplete."""
        if change.mode == "forget":
            self.discard(change.key)
        elif change.key in self._incomplete:
            self._incomplete[change.key] |= change.acks
            return True
        self.num_put += 1
        change.number = self.num_put
        self._queues.setdefault(change.key, deque()).append(change)
        return self._grow(change.num_bytes)

    def append(self, key: SessionKey, claim: str, events: Sequence[Event], committed: Committed) -> bool:
        queue = self._queues.get(key)
        if queue and queue[-1].takes_events:
            queue[-1].take(events, committed)
            return self._grow(redis_changes.bytes_of(events))
        change = SessionChange(key, claim)
        change.take(events, committed)
        return self.put(change)

    def next_batch(self) -> list[SessionChange]:
        """The oldest of each session, and what follows it; not more than Redis should do at once."""
        batch: list[SessionChange] = []
        num_bytes = 0
        for queue in self._queues.values():
            for change in queue:
                if batch and (len(batch) >= _MAX_CHANGES or num_bytes > _MAX_BYTES):
                    return batch
                change.is_sent = True
                batch.append(change)
                num_bytes += change.num_bytes
        return batch

    def is_first(self, change: SessionChange) -> bool:
        queue = self._queues.get(change.key)
        return bool(queue) and queue is not None and queue[0] is change

    def remove_first(self, change: SessionChange) -> None:
        queue = self._queues[change.key]
        queue.popleft()
        self._num_bytes -= change.num_bytes
        if not queue:
            del self._queues[change.key]

    def discard(self, key: SessionKey) -> None:
        for change in self._queues.pop(key, ()):
            self._num_bytes -= change.num_bytes
        self._incomplete.pop(key, None)

    def set_aside(self, key: SessionKey) -> None:
        waiting = self._incomplete.setdefault(key, {})
        for change in self._queues.pop(key, ()):
            self._num_bytes -= change.num_bytes
            waiting |= change.acks

    def put_restores(
        self,
        sessions: Iterable[tuple[SessionRecord, Sequence[Event]]],
        claim_of: Callable[[SessionKey], str | None],
        ttl_seconds: float,
    ) -> None:
        incomplete, self._incomplete = self._incomplete, {}
        for session, events in sessions:
            waiting, claim = incomplete.get(session.key), claim_of(session.key)
            if waiting is not None and claim is not None:
                change = redis_changes.restore(session, events, claim, ttl_seconds)
                change.acks = waiting
                self._queues[session.key] = deque([change])
                self._num_bytes += change.num_bytes

    def _grow(self, num_bytes: int) -> bool:
        self._num_bytes += num_bytes
        if self._num_bytes <= self._max_bytes:
            return True
        for key, queue in list(self._queues.items()):
            if not any(change.mode == "forget" for change in queue):
                self.set_aside(key)
        return False
