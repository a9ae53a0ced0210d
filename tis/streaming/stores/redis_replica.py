"""This process among those that share a Redis: its lease, the sessions of processes that died, and orders of others.

A process renews its lease again and again. When a lease is over, another process takes the sessions of its owner, each
by a compare-and-set. It does so only after it has itself reached Redis for as long as a lease: when Redis comes back
from an outage all leases are over, and their owners must have the time to renew them.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, cast

from redis.asyncio.client import Pipeline
from redis.exceptions import ResponseError

from tis.observability.logs import log_exception
from tis.streaming.stores.redis_clients import FAULTS, RedisClients, RedisScript
from tis.streaming.stores.redis_keys import REPLICAS, held_by, keys_of, orders_of
from tis.streaming.stores.redis_records import VERSION
from tis.streaming.stores.redis_scripts import RENEW, TAKE

_log = logging.getLogger("tis.store")
_MAX_ORDERS = 4096
_ORDERS_SECONDS = 3600
_TAKEN_AT_ONCE = 64
_POLL_SECONDS = 1.0
_DEAF_SECONDS = 3.0  # since the last answer of Redis


class RedisReplica:
    def __init__(
        self,
        clients: RedisClients,
        *,
        lease_seconds: float,
        retry_seconds: float,
        wait_seconds: float,
        left_seconds: float,
        run_version: int,
        is_running_here: Callable[[str], bool],
        on_taken: Callable[[str, str], Awaitable[bool]],
        on_order: Callable[[str, str], None],
        on_fault: Callable[[Exception], None],
    ) -> None:
        """`is_running_here` gets a digest, `on_taken` its new claim, too; `on_order` what to do, and the digest."""
        self.id = secrets.token_hex(8)
        self.is_reached = True
        self._stopping = asyncio.Event()
        self._clients = clients
        self._lease_seconds = lease_seconds
        self._retry_seconds = retry_seconds
        self._wait_seconds = wait_seconds
        self._left_seconds = left_seconds
        self._run_version = run_version
        self._is_running_here = is_running_here
        self._on_taken, self._on_order, self._on_fault = on_taken, on_order, on_fault
        self._renew, self._take = RedisScript(RENEW), RedisScript(TAKE)
        self._left_since: dict[str, float] = {}  # by process: since when this one leaves its sessions to others
        self._num_claims = 0
        self._taking: dict[str, tuple[bytes, str]] = {}  # by digest: the claim before, and ours
        self._reached_since = self._reached_at = time.monotonic()

    def new_claim(self) -> str:
        self._num_claims += 1
        return f"{self.id}:{self._num_claims}"

    @property
    def hears_others(self) -> bool:
        return self.is_reached and time.monotonic() - self._reached_at < _DEAF_SECONDS

    async def stop(self) -> None:
        """Ends its tasks. One that is cancelled while it connects would leave its connection open."""
        self._stopping.set()
        with suppress(*FAULTS):
            await self.order(f"{self.id}:0", "stop", "")

    async def keep_lease(self) -> None:
        while not self._stopping.is_set():
            pause = min(_POLL_SECONDS, self._lease_seconds / 3)
            try:
                if await self.renew():
                    continue
            except FAULTS as error:
                self.is_reached = isinstance(error, ResponseError)
                self._reached_since = float("inf")
                self._on_fault(error)
                pause = self._retry_seconds
            except Exception as error:  # without a lease the sessions of this process would be taken
                log_exception("the lease could not be renewed", error, "-")
            await self._pause(pause)

    async def renew(self) -> bool:
        """Then takes what others have left, until the lease has to be renewed again; returns whether there is more."""
        lease_ms = round(self._lease_seconds * 1000)
        over = await self._renew.run(self._clients.commands, [REPLICAS], (self.id, lease_ms))
        now = time.monotonic()
        if self._reached_since > now or now - self._reached_at > self._lease_seconds:
            self._reached_since = now
        self.is_reached, self._reached_at = True, now
        for digest in list(self._taking):
            await self._take_session(digest)
        released, dead = cast(list[bytes], over[0]), cast(list[bytes], over[1])
        is_sure = now - self._reached_since >= self._lease_seconds
        for name in [*released, *(dead if is_sure else ())]:
            if not await self._take_from(name.decode(), now + self._lease_seconds / 3):
                return True
        return False

    async def release(self) -> None:
        """Another process may take at once what this one has not finished."""
        redis: Any = self._clients.commands
        has_left_some = await redis.scard(held_by(self.id))
        pipeline = redis.pipeline(transaction=True)
        if has_left_some:
            pipeline.zadd(REPLICAS, {self.id: 0})
        else:
            pipeline.zrem(REPLICAS, self.id)
        pipeline.delete(orders_of(self.id))
        await pipeline.execute()

    async def order(self, claim: str, what: str, digest: str) -> None:
        pipeline = self._clients.commands.pipeline(transaction=True)
        queue_order(pipeline, claim, what, digest)
        await pipeline.execute()

    async def follow_orders(self) -> None:
        name, last = orders_of(self.id), "0"
        while not self._stopping.is_set():
            try:
                found = cast(Any, await self._clients.waits.xread({name: last}, block=round(self._wait_seconds * 1000)))
                for entry, fields in _entries(found):
                    last = entry
                    self._on_order(fields[b"do"].decode(), fields[b"of"].decode())
            except FAULTS:
                await self._pause(self._retry_seconds)
            except Exception as error:
                log_exception("an order of another process could not be followed", error, "-")
                await self._pause(self._retry_seconds)

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    async def _take_from(self, other: str, until: float) -> bool:
        """Returns whether the time was enough."""
        if other == self.id:
            return True
        redis: Any = self._clients.commands
        digests = cast(list[bytes], await redis.srandmember(held_by(other), _TAKEN_AT_ONCE))
        if not digests:
            self._left_since.pop(other, None)
            pipeline = redis.pipeline(transaction=True)  # nobody would find what is left behind its name
            pipeline.zrem(REPLICAS, other)
            pipeline.delete(orders_of(other))
            await pipeline.execute()
            return True
        for digest in digests:
            if time.monotonic() > until:
                return False
            if self._is_running_here(digest.decode()):
                continue  # it was taken from this process, which has still to notice and to stop
            held, version, runs = await redis.hmget(keys_of(digest.decode()).meta, "claim", "v", "runs")
            if held and held.decode().rpartition(":")[0] == other:
                if version is None or int(version) > VERSION:
                    continue  # a server of a later version can read it
                if int(runs or 0) > self._run_version and self._leaves_to_others(other):
                    continue  # a server of a later version can resume it; this one could only end it
                self._taking[digest.decode()] = held, self.new_claim()
                await self._take_session(digest.decode())
            await redis.srem(held_by(other), digest)
        return True

    def _leaves_to_others(self, other: str) -> bool:
        """For a while: without such a server, somebody has to tell the readers that the answer has ended."""
        now = time.monotonic()
        return now - self._left_since.setdefault(other, now) < self._left_seconds

    async def _take_session(self, digest: str) -> None:
        """May be repeated after any fault: the same claim is not taken twice."""
        redis: Any = self._clients.commands
        held, claim = self._taking[digest]
        await redis.sadd(held_by(self.id), digest)
        is_mine = await self._take.run(redis, keys_of(digest).all(), (held, claim))
        if not (is_mine and await self._on_taken(digest, claim)):
            await redis.srem(held_by(self.id), digest)
        del self._taking[digest]


def queue_order(pipeline: Pipeline, claim: str, what: str, digest: str) -> None:
    """It goes by itself where its process is dead, and nobody deletes it."""
    name = orders_of(claim.rpartition(":")[0])
    pipeline.xadd(name, {"do": what, "of": digest}, maxlen=_MAX_ORDERS, approximate=True)
    pipeline.expire(name, _ORDERS_SECONDS)


def _entries(found: Any) -> Sequence[tuple[str, dict[bytes, bytes]]]:
    return [(entry.decode(), fields) for _, entries in found or () for entry, fields in entries]
