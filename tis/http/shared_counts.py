"""What callers have used of all servers that share a Redis, as `LocalCounts` has it of one.

A call that has limits asks Redis, in one round trip, and is counted there at once. All else (tokens, ends of calls,
totals) goes with the next round, a few times a second. One task sends everything, in order, so that what a server says
of its running calls is never overtaken. Running calls are counted under a lease of their server: when it is killed,
they are given back with the lease. While Redis is away, this server counts alone, from what it last knew, with the
same limits: no call waits longer than `answer_seconds`. Reasons: `docs/decisions/0127-shared-limits.md`.
"""

import asyncio
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from tis.http.call_counts import CallTotals, CallUse, CountedCaller, LocalCounts
from tis.http.redis_counts import COUNT, LEASES, RENEW, RESTORE, CountChange, read_reply, running_key
from tis.observability.logs import log_exception
from tis.streaming.stores.redis_clients import FAULTS, RedisClients, RedisScript, fault_label

_log = logging.getLogger("tis.http")
_ROUND_SECONDS = 0.2
_RETRY_SECONDS = 0.5
_MAX_PENDING = 20_000
_ALONE = "Redis does not answer: this server looks at limits of calls alone"


class SharedCounts:
    def __init__(
        self,
        clients: RedisClients,
        local: LocalCounts,
        *,
        lease_seconds: float,
        answer_seconds: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._redis: Any = clients.commands
        self._local = local
        self._lease_seconds, self._answer_seconds = lease_seconds, answer_seconds
        self._clock = clock
        self._count, self._renew, self._restore = RedisScript(COUNT), RedisScript(RENEW), RedisScript(RESTORE)
        self.is_shared = False
        self._server = ""  # its name in Redis
        self._is_current = False  # what Redis has under that name is so
        self._renewed_at = 0.0
        self._asked: list[CountChange] = []
        self._pending: OrderedDict[str, CountChange] = OrderedDict()
        self._wake = asyncio.Event()
        self._is_closing = False
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        try:
            await self._round()
        except FAULTS as error:
            _log.warning("%s (%s)", _ALONE, fault_label(error))
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Running calls that others go on with are theirs."""
        if self._task is None:
            return
        self._is_closing = True
        self._wake.set()
        await asyncio.wait([self._task], timeout=3 * self._answer_seconds)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def begin(self, caller: CountedCaller, costs: Mapping[str, int]) -> CallUse:
        totals = {"requests": 1} if caller.key_name else {}
        running = 1 if caller.key_name else 0
        if caller.limits and self.is_shared:
            asked = CountChange(caller, dict(costs), totals, running, checks=True)
            if (counted := await self._ask(asked)) is not None:
                return counted
        counted = await self._local.begin(caller, costs)
        if counted.is_accepted:
            self._put(caller, costs, totals, running)
        else:
            self._put(caller, {}, {"refused": 1} if caller.key_name else {}, 0)
        return counted

    async def look(self, caller: CountedCaller) -> CallUse:
        if self.is_shared and (counted := await self._ask(CountChange(caller))) is not None:
            return counted
        return await self._local.look(caller)

    def count(self, caller: CountedCaller, costs: Mapping[str, int], totals: Mapping[str, int]) -> None:
        self._local.count(caller, costs, totals)
        self._put(caller, costs, totals, 0)

    def go_on(self, caller: CountedCaller) -> None:
        self._local.go_on(caller)
        self._put(caller, {}, {}, 1)

    def end(self, caller: CountedCaller) -> None:
        self._local.end(caller)
        self._put(caller, {}, {}, -1)
        self._wake.set()  # others may wait for it

    def totals_here(self, key_name: str) -> CallTotals:
        return self._local.totals_here(key_name)

    def _put(self, caller: CountedCaller, costs: Mapping[str, int], totals: Mapping[str, int], running: int) -> None:
        change = self._pending.get(caller.id)
        if change is None:
            change = self._pending[caller.id] = CountChange(caller, since=self._clock())
            if len(self._pending) > _MAX_PENDING:
                self._pending.popitem(last=False)
        change.caller = caller  # with the limits of now
        change.add(costs, totals, running)

    def _keep(self, change: CountChange) -> None:
        """For a later round. Who waits for an answer decides alone, and puts that in by himself."""
        if change.answer is None:
            self._put(change.caller, change.costs, change.totals, 0)
            self._pending[change.caller.id].since = change.since

    async def _ask(self, change: CountChange) -> CallUse | None:
        """None if this server has to decide alone."""
        answer: asyncio.Future[CallUse | None] = asyncio.get_running_loop().create_future()
        change.answer = answer
        self._asked.append(change)
        self._wake.set()
        try:
            async with asyncio.timeout(self._answer_seconds):
                return await answer
        except TimeoutError:
            if not answer.cancelled():  # it came at the last moment
                return answer.result()
            self._count_alone("timeout")
            return None
        except asyncio.CancelledError:
            if not answer.cancelled() and (counted := answer.result()) and change.checks and counted.is_accepted:
                if change.running:
                    self._local.end(change.caller)
                self._undo(change)
            raise

    def _undo(self, change: CountChange) -> None:
        costs, totals = ({name: -amount for name, amount in one.items()} for one in (change.costs, change.totals))
        self._put(change.caller, costs, totals, -change.running)

    async def _run(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_ROUND_SECONDS):
                    await self._wake.wait()
            self._wake.clear()
            try:
                await self._round()
            except FAULTS as error:
                self._count_alone(fault_label(error))
            except Exception as error:  # those who wait for an answer get theirs from this server
                log_exception("the counts of calls could not be shared", error, "-")
                self._count_alone("error")
            if self._is_closing:
                return
            if not self.is_shared:
                await asyncio.sleep(_RETRY_SECONDS)

    def _count_alone(self, reason: str) -> None:
        if self.is_shared:
            _log.warning("%s (%s)", _ALONE, reason)
        self.is_shared = self._is_current = False
        self._let_decide(self._asked)
        self._asked = []

    def _let_decide(self, asked: list[CountChange]) -> None:
        for change in asked:
            if change.answer and not change.answer.done():
                change.answer.set_result(None)

    async def _round(self) -> None:
        """Sends what there is. What Redis refuses is kept; after another fault it may have got it, so that is over."""
        is_new = not self._is_current
        if is_new:
            for script in (self._count, self._renew, self._restore):
                await script.load(self._redis)
        elif not (self._asked or self._pending or self._is_closing or self._is_renewal_due):
            return
        had_lease = bool(self._local.running) and not is_new
        pipeline = self._redis.pipeline(transaction=False)
        num_others = self._begin_anew(pipeline) if is_new else self._renew_lease(pipeline)
        changes = [*self._pending.values(), *self._asked]
        self._pending, self._asked = OrderedDict(), []
        for change in changes:
            self._count.queue(pipeline, change.keys, change.arguments(self._server, self._lease_ms, self._clock()))
        if self._is_closing:
            pipeline.zrem(LEASES, self._server)
        try:
            replies = await pipeline.execute(raise_on_error=False)
            lapsed = [b"new"] in replies[:num_others]
            for change, reply in zip(changes, replies[num_others:], strict=False):
                if isinstance(reply, Exception):
                    self._keep(change)
                else:
                    lapsed |= self._apply(change, reply)
        finally:
            self._let_decide(changes)
        for reply in replies:
            if isinstance(reply, Exception):
                raise reply
        if is_new:
            if self._task and not self.is_shared:
                _log.warning("Redis answers again: limits of calls hold over all servers")
            self.is_shared = self._is_current = True
        elif lapsed and had_lease:  # after a pause that was longer than the lease: others may have dropped its calls
            self._is_current = False
            self._wake.set()

    @property
    def _is_renewal_due(self) -> bool:
        pause = min(1.0, self._lease_seconds / 3)
        return bool(self._local.running) and self._clock() - self._renewed_at >= pause

    @property
    def _lease_ms(self) -> int:
        return round(self._lease_seconds * 1000)

    def _begin_anew(self, pipeline: Any) -> int:
        """Under another name: what Redis has of the former one is over with its lease. Returns how many commands."""
        former, self._server = self._server, secrets.token_hex(8)
        self._renewed_at = self._clock()
        for change in self._pending.values():
            change.running = 0
        pipeline.zrem(LEASES, former)
        for caller_id, num in self._local.running.items():
            keys = [LEASES, running_key(caller_id)]
            self._restore.queue(pipeline, keys, (self._server, self._lease_ms, num))
        return 1 + len(self._local.running)

    def _renew_lease(self, pipeline: Any) -> int:
        if not self._is_renewal_due:
            return 0
        self._renewed_at = self._clock()
        self._renew.queue(pipeline, [LEASES], (self._server, self._lease_ms))
        return 1

    def _apply(self, change: CountChange, reply: Any) -> bool:
        """Returns whether the lease of this server had ended before."""
        caller, answer = change.caller, change.answer
        use, is_lease_new = read_reply(caller, reply)
        self._local.learn(caller, use.windows)
        if answer and answer.cancelled():  # the caller has gone, or this server has decided alone
            if change.checks and use.is_accepted:
                self._undo(change)
        elif answer and not answer.done():
            if change.checks and use.is_accepted:
                self._local.accept(caller, {})  # its windows are known already
            elif change.checks:
                self._local.count(caller, {}, {"refused": 1})
            answer.set_result(use)
        return is_lease_new
