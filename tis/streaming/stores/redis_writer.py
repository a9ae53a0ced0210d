"""Writes what the sessions of this process change, in one pipeline after the other, and acknowledges it.

What could not be written stays in the queue, in order: to write it twice does nothing. If too much waits, or Redis has
lost what was written, sessions are written anew from memory.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.client import Pipeline
from redis.exceptions import NoScriptError

from tis.observability.logs import log_exception
from tis.observability.metrics import STORE_ERRORS
from tis.streaming.stores.redis_changes import Acks, SessionChange
from tis.streaming.stores.redis_clients import FAULTS, RedisScript, fault_label, is_passing
from tis.streaming.stores.redis_keys import digest_of, keys_of
from tis.streaming.stores.redis_queue import ChangeQueue
from tis.streaming.stores.redis_scripts import FORGET, WRITE
from tis.streaming.stores.store import Committed, Durability, Event, SessionKey, SessionRecord

_log = logging.getLogger("tis.store")
_FORGOTTEN_MS = 600_000  # how long a process that was away must see that a session was deleted
_MAX_NOTES = 4096
_MAX_LAG_SECONDS = 1.0  # of what waits, when the store has caught up
# Queues what is written beside sessions; it may get lost when Redis is away.
Note = Callable[[Pipeline], object]


class RedisWriter:
    def __init__(
        self,
        redis: Redis,
        held_name: str,
        *,
        note_scripts: Sequence[RedisScript],
        max_queue_bytes: int,
        retry_seconds: float,
        ttl_seconds: float,
        claim_of: Callable[[SessionKey], str | None],
        on_fenced: Callable[[SessionKey], None],
        on_rejected: Callable[[SessionKey], None],
    ) -> None:
        self._redis = redis
        self._held_name = held_name
        self._write, self._forget = RedisScript(WRITE), RedisScript(FORGET)
        self._scripts = (self._write, self._forget, *note_scripts)
        self._max_queue_bytes = max_queue_bytes
        self._retry_seconds = retry_seconds
        self._ttl_seconds = ttl_seconds
        self._claim_of, self._on_fenced, self._on_rejected = claim_of, on_fenced, on_rejected
        self.snapshot: Callable[[], Iterable[tuple[SessionRecord, Sequence[Event]]]] = lambda: ()
        self.on_degraded: Callable[[], None] = lambda: None
        self.durability: Durability = "durable"
        self.queue = ChangeQueue(max_queue_bytes)
        self._notes: deque[Note] = deque(maxlen=_MAX_NOTES)
        self._changed = asyncio.Event()
        self._progress = asyncio.Event()  # the queue has become shorter, or the store degraded
        self._is_stopping = False
        self._rounds_begun = self._rounds_ended = 0
        self._failed_at = 0.0

    def put(self, change: SessionChange) -> None:
        self._check_room(self.queue.put(change))

    def append(self, key: SessionKey, claim: str, events: Sequence[Event], committed: Committed) -> None:
        self._check_room(self.queue.append(key, claim, events, committed))

    def note(self, note: Note) -> None:
        self._notes.append(note)
        self._changed.set()

    @property
    def is_idle(self) -> bool:
        return self.queue.is_empty and not self._notes

    async def flush(self) -> None:
        """What comes after the call is not waited for: other sessions may never let the queue be empty."""
        num_put, rounds = self.queue.num_put, self._rounds_begun + bool(self._notes)
        while self.queue.has_any_of(num_put) or self._rounds_ended < rounds:
            if self.durability == "degraded" or self._is_stopping:
                return
            self._progress.clear()
            await self._progress.wait()

    def stop(self) -> None:
        self._is_stopping = True
        self._changed.set()
        self._progress.set()

    def fail(self, label: str, why: str) -> None:
        STORE_ERRORS.labels("redis", label).inc()
        self._failed_at = time.monotonic()
        if self.durability == "durable":
            self.durability = "degraded"
            self._changed.set()
            _log.error(
                "Redis does not store sessions: %s (%s). Answers continue in memory; the writer retries.", why, label
            )
            self.on_degraded()
        self._progress.set()

    async def run(self) -> None:
        while not self._is_stopping:
            if self.is_idle and self.durability == "durable":
                self._changed.clear()
                await self._changed.wait()
                continue
            self._rounds_begun += 1
            try:
                await self._write_some()
            except FAULTS as error:
                self._rounds_ended = self._rounds_begun
                self.fail(fault_label(error), str(error) or type(error).__name__)
                await asyncio.sleep(self._retry_seconds)
            except Exception as error:  # whoever waits for a commit must not wait for ever
                self._rounds_ended = self._rounds_begun
                log_exception("the writer of sessions failed", error, "-")
                self.fail("unexpected", type(error).__name__)
                await asyncio.sleep(self._retry_seconds)
            self._rounds_ended = self._rounds_begun
            self._progress.set()

    async def _write_some(self) -> None:
        if self.durability == "degraded":
            await self._redis.set(f"{self._held_name}:probe", "", px=1)  # raises while Redis cannot be written
        if self.queue.needs_restores:
            self.queue.put_restores(self.snapshot(), self._claim_of, self._ttl_seconds)
        batch = self.queue.next_batch()
        notes = [self._notes.popleft() for _ in range(len(self._notes))]
        if batch or notes:
            results = await self._send(batch, notes)
            if passing := self._settle(batch, results):
                raise passing
        if self.durability == "degraded" and self._has_caught_up():
            self.durability = "durable"
            _log.warning("Redis stores sessions again, and has caught up")

    def _has_caught_up(self) -> bool:
        """The queue need not be empty: under load something new has come whenever a round ends."""
        if self.queue.has_restores:
            return False
        oldest = self.queue.oldest_queued_at()
        return oldest is None or oldest > max(self._failed_at, time.monotonic() - _MAX_LAG_SECONDS)

    async def _send(self, batch: Sequence[SessionChange], notes: Sequence[Note]) -> list[Any]:
        for _ in range(2):
            pipeline = self._redis.pipeline(transaction=False)
            places = [self._queue_change(pipeline, change) for change in batch]
            for note in notes:
                note(pipeline)
            results = await pipeline.execute(raise_on_error=False)
            if not any(isinstance(result, NoScriptError) for result in results):
                break
            for script in self._scripts:
                await script.load(self._redis)
        return [results[place] for place in places]

    def _queue_change(self, pipeline: Pipeline, change: SessionChange) -> int:
        """Returns the place of its result."""
        digest = digest_of(change.key)
        keys = keys_of(digest).all()
        if change.starts:  # before: a process that dies in between must leave no turn that nobody finds
            pipeline.sadd(self._held_name, digest)
        place = len(pipeline)
        if change.mode == "forget":
            self._forget.queue(pipeline, keys, (change.claim, _FORGOTTEN_MS))
        else:
            self._write.queue(pipeline, keys, change.arguments())
        if change.starts is False or change.mode == "forget":
            pipeline.srem(self._held_name, digest)
        return place

    def _settle(self, batch: Sequence[SessionChange], results: Sequence[Any]) -> Exception | None:
        """Acknowledges what was written. Returns the error of what may be written later."""
        passing: Exception | None = None
        blocked: set[SessionKey] = set()
        for change, result in zip(batch, results, strict=True):
            if change.key in blocked or not self.queue.is_first(change):
                continue
            if result == 0 or result == 1 or (isinstance(result, list) and result[0] == b"ok"):
                self.queue.remove_first(change)
                _acknowledge(change.acks)
                continue
            blocked.add(change.key)
            if isinstance(result, Exception) and is_passing(result):
                passing = result
            elif isinstance(result, list) and result[0] == b"fenced":
                self.queue.discard(change.key)
                self._on_fenced(change.key)
            elif isinstance(result, list) and change.mode != "restore":
                STORE_ERRORS.labels("redis", "lost").inc()  # Redis has lost what was written before
                self.queue.set_aside(change.key)
            else:
                STORE_ERRORS.labels("redis", "rejected").inc()
                self.queue.discard(change.key)
                self._on_rejected(change.key)
        return passing

    def _check_room(self, has_room: bool) -> None:
        self._changed.set()
        if not has_room:
            self.fail("slow", f"more than {self._max_queue_bytes} bytes wait to be written")


def _acknowledge(acks: Acks) -> None:
    for committed, index in acks.items():
        try:
            committed(index)
        except Exception as fault:  # the other callbacks must run
            log_exception("the callback of a commit failed", fault, "-")
