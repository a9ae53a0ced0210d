"""The queue of writes: the event loop fills it, the writer thread takes batches.

The writer commits a batch in one transaction; until then the batch stays in flight. If too much waits, or the file is
gone, a snapshot of all sessions in memory replaces the queue, and pending acks are sent when the snapshot is
committed. A snapshot is written over the file and deletes nothing, so queued deletes stay in the queue beside it.
"""

import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tis.streaming.stores.sqlite_rows import Operation
from tis.streaming.stores.store import Committed

_MIN_EVENTS_PER_COMMIT = 32
_GATHER_SECONDS = 0.010
_MAX_EVENTS_PER_COMMIT = 4096
_MAX_BYTES_PER_COMMIT = 16 * 2**20

Acks = dict[tuple[int, Committed], int]  # (session, callback) -> the index to acknowledge


@dataclass(slots=True)
class WriteBatch:
    operations: deque[Operation]
    acks: Acks
    is_snapshot: bool = False


class WriteQueue:
    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._changed = threading.Condition(threading.Lock())
        self._queue: deque[Operation] = deque()
        self._num_events = 0
        self._num_bytes = 0
        self._in_flight_bytes = 0
        self._snapshot: WriteBatch | None = None
        self._pending_acks: Acks = {}  # sent when the next snapshot, or the restored session, is committed
        self._deletes: dict[int, Operation] = {}  # by session: no snapshot contains deletes
        self._unwritten: set[int] = set()  # sessions that began while a snapshot is pending: the file has none of them
        self.in_flight: WriteBatch | None = None
        self.needs_snapshot = False
        self.is_stopping = False

    # The event loop's side.

    def put(self, operation: Operation) -> bool:
        """Returns False if the queue was full. Wakes the writer only if it waits for this."""
        with self._changed:
            if self.needs_snapshot:
                self._defer(operation)
                return True
            before = self._num_events
            self._queue.append(operation)
            self._count(operation, 1)
            has_room = self._has_room() or self._drop_waiting_attachments()
            if not has_room:
                self._drop_for_snapshot()
            if len(self._queue) <= 1 or before < _MIN_EVENTS_PER_COMMIT <= self._num_events:
                self._changed.notify()
            return has_room

    def put_snapshot(self, operations: Sequence[Operation]) -> None:
        with self._changed:
            self._drop_for_snapshot()
            self._snapshot = WriteBatch(
                deque([*self._deletes.values(), *operations]), self._pending_acks, is_snapshot=True
            )
            self.needs_snapshot, self._pending_acks = False, {}
            self._deletes.clear()
            self._unwritten.clear()
            self._changed.notify()

    def stop(self) -> None:
        with self._changed:
            self.is_stopping = True
            self._changed.notify()

    # The writer's side.

    def take(self, idle_seconds: float) -> WriteBatch | None:
        """Returns the batch in flight, else the next one, else None after `idle_seconds`."""
        with self._changed:
            if self.in_flight is None:
                self._wait_for_work(idle_seconds)
                self.in_flight, self._snapshot = self._snapshot or self._next_batch(), None
                self._count_in_flight()
            return self.in_flight

    def mark_committed(self, num: int) -> None:
        """Removes the first `num` operations of the batch in flight, in case the rest fails."""
        with self._changed:
            assert self.in_flight
            for _ in range(num):
                self.in_flight.operations.popleft()

    def reject_first(self) -> Operation:
        """Removes the first operation of the batch in flight. The acks of its session wait until that is restored."""
        with self._changed:
            assert self.in_flight
            rejected = self.in_flight.operations.popleft()
            acks = self.in_flight.acks
            for listener in [one for one in acks if one[0] == rejected.session]:
                index = acks.pop(listener)
                if not rejected.restores:
                    self._pending_acks[listener] = max(index, self._pending_acks.get(listener, index))
            return rejected

    def pending_deletes(self) -> Sequence[Operation]:
        """Returns the deletes to commit before a snapshot."""
        with self._changed:
            return list(self._deletes.values())

    def mark_deleted(self, operations: Iterable[Operation]) -> None:
        with self._changed:
            for operation in operations:
                self._deletes.pop(operation.session, None)

    def finish_batch(self) -> Acks:
        """The batch in flight is committed: returns its acks."""
        with self._changed:
            batch, self.in_flight = self.in_flight, None
            self._in_flight_bytes = 0
            return batch.acks if batch else {}

    @property
    def num_bytes(self) -> int:
        """What waits to be committed."""
        return self._num_bytes + self._in_flight_bytes

    @property
    def is_empty(self) -> bool:
        return self.oldest_queued_at() is None and not self.needs_snapshot

    @property
    def is_all_taken(self) -> bool:
        """Nothing waits behind the batch in flight."""
        with self._changed:
            return not (self._queue or self._snapshot or self.needs_snapshot)

    def is_behind(self, since: float) -> bool:
        """Returns whether an operation from before `since` still waits."""
        oldest = self.oldest_queued_at()
        return self.needs_snapshot or (oldest is not None and oldest < since)

    def oldest_queued_at(self) -> float | None:
        with self._changed:
            batch = self.in_flight or self._snapshot
            operations = batch.operations if batch else self._queue
            return operations[0].queued_at if operations else None

    def need_snapshot(self) -> None:
        with self._changed:
            self._drop_for_snapshot()

    def wait_for_snapshot(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._snapshot, seconds)

    def pause(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self.is_stopping, seconds)

    def drop_attachments(self) -> bool:
        """On a full disk, drops attachments in favour of answers. Returns False if there were none."""
        with self._changed:
            waiting = [*(self.in_flight.operations if self.in_flight else []), *self._queue]
            large = [operation for operation in waiting if operation.attached]
            for operation in large:
                operation.drop_attachments()
            self._num_bytes = sum(operation.num_bytes for operation in self._queue)
            self._count_in_flight()
            return bool(large)

    def put_deletes_first(self) -> None:
        """On a full disk only deletes free space, so they must not wait behind writes that need it."""
        with self._changed:
            waiting = [*(self.in_flight.operations if self.in_flight else []), *self._queue]
            gone = {operation.session for operation in waiting if operation.deletes}
            if not gone:
                return
            first = [operation for operation in waiting if operation.session in gone]
            self.in_flight = WriteBatch(
                deque(operation for operation in first if operation.deletes), _collect_acks({}, first)
            )
            self._queue = deque(operation for operation in waiting if operation.session not in gone)
            self._num_events = self._num_bytes = 0
            for operation in self._queue:
                self._count(operation, 1)
            self._count_in_flight()

    # With the lock held.

    def _drop_waiting_attachments(self) -> bool:
        """Drops attachments in favour of answers. Returns whether the queue fits its limit now."""
        for operation in self._queue:
            operation.drop_attachments()
        self._num_bytes = sum(operation.num_bytes for operation in self._queue)
        return self._has_room()

    def _has_room(self) -> bool:
        """The writer still holds its batch."""
        return self._num_bytes + self._in_flight_bytes <= self._max_bytes

    def _count_in_flight(self) -> None:
        # The events of a snapshot are in memory anyway.
        batch = self.in_flight
        operations = batch.operations if batch and not batch.is_snapshot else ()
        self._in_flight_bytes = sum(operation.num_bytes for operation in operations)

    def _wait_for_work(self, idle_seconds: float) -> None:
        something = self._changed.wait_for(lambda: self._queue or self._snapshot or self.is_stopping, idle_seconds)
        if something and self._queue:
            due = self._queue[0].queued_at + _GATHER_SECONDS
            self._changed.wait_for(
                lambda: self._num_events >= _MIN_EVENTS_PER_COMMIT or not self._queue or self.is_stopping,
                due - time.monotonic(),
            )

    def _next_batch(self) -> WriteBatch | None:
        operations: list[Operation] = []
        min_events_left, min_bytes_left = (
            self._num_events - _MAX_EVENTS_PER_COMMIT,
            self._num_bytes - _MAX_BYTES_PER_COMMIT,
        )
        while self._queue and self._num_events > min_events_left and self._num_bytes > min_bytes_left:
            operations.append(self._queue.popleft())
            self._count(operations[-1], -1)
        if not operations:
            return None
        acks = _collect_acks({}, operations)
        restored = {operation.session for operation in operations if operation.restores}
        for listener in [one for one in self._pending_acks if one[0] in restored]:
            index = self._pending_acks.pop(listener)
            acks[listener] = max(index, acks.get(listener, index))
        return WriteBatch(deque(operations), acks)

    def _defer(self, operation: Operation) -> None:
        """Holds acks and deletes back for the snapshot, which contains everything else."""
        number = operation.session
        if operation.begins:
            self._unwritten.add(number)
        if not operation.deletes:
            _collect_acks(self._pending_acks, [operation])
            return
        self._pending_acks = {
            listener: index for listener, index in self._pending_acks.items() if listener[0] != number
        }
        if number in self._unwritten:
            self._unwritten.discard(number)
        else:
            self._deletes[number] = operation

    def _drop_for_snapshot(self) -> None:
        """Also takes over the batch in flight, in case it fails: at worst an ack or a delete happens twice."""
        self.needs_snapshot = True
        batches = [batch for batch in (self.in_flight, self._snapshot) if batch]
        for batch in batches:
            for listener, index in batch.acks.items():
                self._pending_acks[listener] = max(index, self._pending_acks.get(listener, index))
        _collect_acks(self._pending_acks, self._queue)
        for operation in (*(one for batch in batches for one in batch.operations), *self._queue):
            if operation.deletes:
                self._deletes[operation.session] = operation
        self._queue.clear()
        self._snapshot = None
        self._num_events = self._num_bytes = 0

    def _count(self, operation: Operation, sign: int) -> None:
        self._num_events += sign * len(operation.events)
        self._num_bytes += sign * operation.num_bytes


def _collect_acks(acks: Acks, operations: Iterable[Operation]) -> Acks:
    for operation in operations:
        if operation.committed:
            acks[operation.session, operation.committed] = operation.events[-1].index if operation.events else -1
    return acks
