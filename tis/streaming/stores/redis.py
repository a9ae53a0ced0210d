"""Sessions in Redis: several processes share them, and one resumes what another leaves when it dies.

The events of a session are a stream with ids of our own, so that none is written twice; to read what was and to wait
for what comes is one command. What a session has is written by scripts, under a claim (`redis_scripts`). Redis must
not evict keys (`maxmemory-policy noeviction`). Reasons: `docs/decisions/0124-sessions-in-redis.md`.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tis.streaming.errors import StoreUnavailable
from tis.streaming.stores import redis_changes
from tis.streaming.stores.clock import seconds_since_boot
from tis.streaming.stores.redis_changes import SessionChange
from tis.streaming.stores.redis_clients import FAULTS, RedisClients, RedisScript, fault_label, url_without_password
from tis.streaming.stores.redis_keys import digest_of, held_by, keys_of
from tis.streaming.stores.redis_reader import RedisReader
from tis.streaming.stores.redis_records import session_of
from tis.streaming.stores.redis_replica import RedisReplica, queue_order
from tis.streaming.stores.redis_scripts import CANCEL, TOUCH, WRITE
from tis.streaming.stores.redis_writer import RedisWriter
from tis.streaming.stores.shared_store import Watcher
from tis.streaming.stores.store import (
    Committed,
    Durability,
    Event,
    OnAbandoned,
    SessionKey,
    SessionRecord,
    Snapshot,
    StoreRefused,
    TurnRecord,
)

_log = logging.getLogger("tis.store")
_ENDING_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class RedisTimeouts:
    lease_seconds: float = 10.0  # how long a process may be silent before another takes its sessions
    answer_seconds: float = 5.0  # for one command
    wait_seconds: float = 5.0  # one wait for news
    slow_seconds: float = 5.0  # how long a write may wait before the store is degraded
    retry_seconds: float = 0.5
    close_seconds: float = 5.0
    left_seconds: float = 60.0  # how long sessions that a later version began are left to a server of that version
    max_queue_bytes: int = 128 * 2**20
    max_waits: int = 512  # connections that wait for news


@dataclass(slots=True)
class HeldSession:
    claim: str
    ttl_ms: int
    oldest_turn: int
    is_running: bool = False


class RedisStore:
    is_full = False
    is_remote = True

    def __init__(
        self, url: str, *, ttl_seconds: float = 600, timeouts: RedisTimeouts | None = None, run_version: int = 0
    ) -> None:
        """`ttl_seconds`: of a session that has none of its own. `run_version`: of what this process can resume."""
        self._url = url
        self._ttl_seconds = ttl_seconds
        self._run_version = run_version
        self._timeouts = limits = timeouts or RedisTimeouts()
        self._clients = RedisClients(
            url, seconds=limits.answer_seconds, wait_seconds=limits.wait_seconds, max_waits=limits.max_waits
        )
        self._replica = RedisReplica(
            self._clients,
            lease_seconds=limits.lease_seconds,
            retry_seconds=limits.retry_seconds,
            wait_seconds=limits.wait_seconds,
            left_seconds=limits.left_seconds,
            run_version=run_version,
            is_running_here=self._is_running_here,
            on_taken=self._on_taken,
            on_order=self._on_order,
            on_fault=lambda error: self._writer.fail(fault_label(error), str(error)),
        )
        self._reader = RedisReader(self._clients, lambda: self._replica.is_reached, limits.wait_seconds)
        self._touch, self._cancel, self._write = RedisScript(TOUCH), RedisScript(CANCEL), RedisScript(WRITE)
        self._writer = RedisWriter(
            self._clients.commands,
            held_by(self._replica.id),
            note_scripts=[self._touch],
            max_queue_bytes=limits.max_queue_bytes,
            retry_seconds=limits.retry_seconds,
            ttl_seconds=ttl_seconds,
            claim_of=lambda key: held.claim if (held := self._held.get(key)) else None,
            on_fenced=self._on_fenced,
            on_rejected=self._on_rejected,
        )
        self._held: dict[SessionKey, HeldSession] = {}
        self._by_digest: dict[str, SessionKey] = {}  # of those that are held
        self._claims: dict[SessionKey, str] = {}  # of others, as they were when the session was last read
        self._clock_offset = -seconds_since_boot()
        self._watcher: Watcher | None = None
        self._taken: list[SessionRecord] = []  # without a watcher
        self._on_abandoned: OnAbandoned = lambda key: None
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def durability(self) -> Durability:
        return self._writer.durability

    @property
    def lag_seconds(self) -> float:
        since = self._writer.queue.oldest_queued_at()
        return 0.0 if since is None else max(0.0, time.monotonic() - since)

    def owners(self) -> Sequence[str]:
        return []

    def now(self) -> float:
        return seconds_since_boot() + self._clock_offset

    def watch(self, watcher: Watcher) -> None:
        self._watcher = watcher

    async def open(
        self, snapshot: Snapshot, on_degraded: Callable[[], None], on_abandoned: OnAbandoned
    ) -> Sequence[SessionRecord]:
        """What another process has left goes to the watcher, or is returned; the rest is found when asked for."""
        self._writer.snapshot, self._writer.on_degraded = snapshot, on_degraded
        self._on_abandoned = on_abandoned
        redis: Any = self._clients.commands
        try:
            seconds, microseconds = await redis.time()
            self._clock_offset = seconds + microseconds / 1e6 - seconds_since_boot()
            await self._warn_of_eviction()
            await self._replica.renew()
        except FAULTS as error:
            await self._clients.close()
            raise StoreRefused(f"Redis at {url_without_password(self._url)} cannot be used: {error}.") from None
        for work in (self._writer.run(), self._replica.keep_lease(), self._replica.follow_orders()):
            self._tasks.append(asyncio.create_task(work))
        return self._taken

    async def close(self) -> None:
        if not self._tasks:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(self._timeouts.close_seconds):
                await self.flush()
        self._writer.stop()
        with suppress(TimeoutError):
            async with asyncio.timeout(_ENDING_SECONDS):
                await self._replica.stop()
        tasks, self._tasks = self._tasks, []
        _, pending = await asyncio.wait(tasks, timeout=_ENDING_SECONDS)
        for task in pending:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(TimeoutError, *FAULTS):  # last, as to renew a lease would undo it
            async with asyncio.timeout(self._timeouts.close_seconds):
                await self._replica.release()
        await self._clients.close()

    def begin_turn(self, session: SessionRecord, turn: TurnRecord, max_attached_bytes: int) -> None:
        held, expected = self._hold(session, turn)
        change = redis_changes.begin(session, turn, held.claim, expected, max_attached_bytes, self._ttl_seconds)
        change.fields["runs"] = b"%d" % self._run_version
        held.is_running = turn.last_index is None
        held.ttl_ms = int(change.fields["ttl"])
        self._writer.put(change)

    def append(self, key: SessionKey, events: Sequence[Event], committed: Committed) -> None:
        if events and (held := self._held.get(key)):
            self._writer.append(key, held.claim, events, committed)

    def end_turn(self, key: SessionKey, turn: TurnRecord) -> None:
        if (held := self._held.get(key)) and turn.last_index is not None:
            held.is_running = False
            self._writer.put(redis_changes.end(key, held.claim, turn, turn.last_index + 1, held.ttl_ms))

    def save_progress(self, key: SessionKey, used_at: float, no_reader_since: float | None) -> None:
        held = self._held.get(key)
        unheard = "" if no_reader_since is None else repr(no_reader_since)
        keys, values = keys_of(digest_of(key)).all(), (held.claim if held else "", repr(used_at), unheard)
        self._writer.note(lambda pipeline: self._touch.queue(pipeline, keys, values))

    def forget(self, key: SessionKey) -> None:
        self.drop(key)
        self._writer.put(SessionChange(key, f"nobody:{self._replica.new_claim()}", "forget"))

    def drop(self, key: SessionKey) -> None:
        self._claims.pop(key, None)
        if self._held.pop(key, None):
            self._by_digest.pop(digest_of(key), None)

    def forget_before(self, key: SessionKey, first: TurnRecord) -> None:
        if held := self._held.get(key):
            numbers = range(held.oldest_turn, first.number)
            held.oldest_turn = first.number
            self._writer.put(redis_changes.forget_before(key, held.claim, numbers, first))

    async def read(self, key: SessionKey, after: int, limit: int = 256) -> Sequence[Event]:
        return await self._reader.events(key, after, limit, self.durability)

    async def save_document(
        self, key: SessionKey, turn: TurnRecord, max_attached_bytes: int, replaced_version: int = 0
    ) -> bool:
        await self._stored_so_far(key)
        mark = self._replica.new_claim()
        change = redis_changes.document(key, mark, turn, max_attached_bytes, replaced_version)
        with self._reader.reaching():
            verdict, _ = await self._write.run(
                self._clients.commands, keys_of(digest_of(key)).all(), change.arguments()
            )
        return bool(verdict == b"ok")

    async def read_document(self, key: SessionKey, number: int) -> bytes | None:
        return await self._reader.document(key, number, self.durability)

    async def read_attachments(self, key: SessionKey, names: Collection[str]) -> Mapping[str, bytes]:
        return await self._reader.attachments(key, names, self.durability)

    async def flush(self) -> None:
        await self._writer.flush()

    def tick(self) -> None:
        if self.durability == "durable" and self.lag_seconds > self._timeouts.slow_seconds:
            self._writer.fail("slow", f"a change has waited for more than {self._timeouts.slow_seconds:g} s")

    # What only a shared store does.

    def holds(self, key: SessionKey) -> bool:
        return key in self._held

    def is_behind(self, key: SessionKey) -> bool:
        return key in self._writer.queue

    async def find(self, key: SessionKey) -> SessionRecord | None:
        fields = await self._reader.fields(key)
        session = session_of(fields)
        if key in self._writer.queue:
            return session  # what Redis has is about to change
        claim = fields.get(b"claim", b"").decode()
        if (held := self._held.get(key)) and held.claim != claim:
            if not held.is_running:
                self.drop(key)
            elif fields:  # another process has it, or has deleted it; without any, Redis has lost it, and gets it back
                self._on_fenced(key)
        if session and key not in self._held:
            self._claims[key] = claim
        return session

    def follow(self, key: SessionKey, after: int) -> AsyncGenerator[Sequence[Event], None]:
        return self._reader.follow(key, after)

    async def order_cancel(self, key: SessionKey) -> None:
        digest = digest_of(key)
        with self._reader.reaching():
            claim = (await self._cancel.run(self._clients.commands, keys_of(digest).all())).decode()
            if claim:
                await self._replica.order(claim, "cancel", digest)

    @property
    def hears_others(self) -> bool:
        return self._replica.hears_others

    def tell_heard(self, key: SessionKey) -> None:
        if claim := self._claims.get(key):
            self._writer.note(lambda pipeline: queue_order(pipeline, claim, "hear", digest_of(key)))

    async def _stored_so_far(self, key: SessionKey) -> None:
        """What a document names must be found as soon as the document is."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._timeouts.answer_seconds):
                await self.flush()
        if self.durability == "degraded" or key in self._writer.queue:
            raise StoreUnavailable("The store of sessions does not take changes now. Retry later.", retry_after=5)

    def _hold(self, session: SessionRecord, turn: TurnRecord) -> tuple[HeldSession, str]:
        key = session.key
        if held := self._held.get(key):
            return held, held.claim
        oldest = session.turns[0].number if session.turns else turn.number
        held = self._held[key] = HeldSession(self._replica.new_claim(), 0, oldest)
        self._by_digest[digest_of(key)] = key
        session.born = session.born or held.claim
        return held, self._claims.pop(key, "")

    async def _on_taken(self, digest: str, claim: str) -> bool:
        keys = keys_of(digest)
        redis: Any = self._clients.commands
        pipeline = redis.pipeline(transaction=False)
        pipeline.hgetall(keys.meta)
        pipeline.get(keys.request)
        fields, request = await pipeline.execute()
        session = session_of(fields)
        if session is None or not session.turns or session.turns[-1].last_index is not None:
            return False
        session.turns[-1].request = request or b""
        self._claims.pop(session.key, None)
        self._writer.queue.discard(session.key)  # of an earlier claim, which would be fenced
        self._held[session.key] = HeldSession(claim, int(fields[b"ttl"]), session.turns[0].number, is_running=True)
        self._by_digest[digest] = session.key
        if self._watcher:
            _log.warning("a process that shares this Redis is gone: this one resumes a session of it")
            self._watcher.on_taken(session, is_cancelled=b"cancel" in fields)
        else:
            self._taken.append(session)
        return True

    def _is_running_here(self, digest: str) -> bool:
        key = self._by_digest.get(digest)
        return key is not None and self._held[key].is_running

    def _on_order(self, what: str, digest: str) -> None:
        key = self._by_digest.get(digest)
        if key and self._watcher:
            (self._watcher.on_cancel if what == "cancel" else self._watcher.on_heard)(key)

    def _on_fenced(self, key: SessionKey) -> None:
        self.drop(key)
        if self._watcher:
            self._watcher.on_lost(key)

    def _on_rejected(self, key: SessionKey) -> None:
        """It goes on in memory. Nobody else shall go on with what Redis has of it, from where that ends."""
        self.forget(key)
        self._on_abandoned(key)

    async def _warn_of_eviction(self) -> None:
        redis: Any = self._clients.commands
        with suppress(*FAULTS):  # many hosted ones refuse the question
            found = await redis.config_get("maxmemory-policy")
            if (policy := found.get("maxmemory-policy", "noeviction")) != "noeviction":
                _log.warning("Redis may delete sessions (maxmemory-policy %s): set it to noeviction", policy)
