"""Servers that share a Redis count calls together, and each alone while it is away."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from tests.redis_server import RedisServer, running_redis
from tis.http.call_counts import CallUse, CountedCaller, LocalCounts
from tis.http.shared_counts import SharedCounts
from tis.streaming.stores.redis_clients import RedisClients

pytestmark = [pytest.mark.anyio, pytest.mark.long]
_LEASE_SECONDS = 1.0
ONE = {"requests_per_minute": 1}


class CountingServer(SharedCounts):
    """As it stands in one server."""

    def __init__(self, url: str) -> None:
        self.clients = RedisClients(url, seconds=1.0, wait_seconds=0.0, max_waits=1)
        self.local = LocalCounts()
        super().__init__(self.clients, self.local, lease_seconds=_LEASE_SECONDS)

    async def die(self) -> None:
        """Without a word to anybody."""
        assert self._task
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def call(self, caller: CountedCaller) -> bool:
        return (await self.begin(caller, ONE if "requests_per_minute" in caller.limits else {})).is_accepted


@asynccontextmanager
async def serving(redis: RedisServer) -> AsyncIterator[CountingServer]:
    server = CountingServer(redis.url)
    await server.open()
    try:
        yield server
    finally:
        await server.close()
        await server.clients.close()


Pair = tuple[CountingServer, CountingServer]


@asynccontextmanager
async def two(redis: RedisServer) -> AsyncIterator[Pair]:
    async with AsyncExitStack() as stack:
        yield await stack.enter_async_context(serving(redis)), await stack.enter_async_context(serving(redis))


@pytest.fixture
async def pair(redis_server: RedisServer) -> AsyncIterator[Pair]:
    async with two(redis_server) as both:
        yield both


def caller(id: str = "shop", **limits: int) -> CountedCaller:
    return CountedCaller(id, limits, f"name of {id}")


async def seen(server: CountingServer, one: CountedCaller, what: str, wanted: object) -> CallUse:
    async with asyncio.timeout(20):
        while getattr(found := await server.look(one), what) != wanted:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return found


async def remaining(server: CountingServer, one: CountedCaller) -> int:
    return (await server.look(one)).windows[0].remaining


async def test_two_servers_allow_together_what_one_may(pair: Pair, redis_server: RedisServer) -> None:
    shop = caller(requests_per_minute=10)
    answers = await asyncio.gather(*(pair[number % 2].call(shop) for number in range(50)))
    assert answers.count(True) == 10
    for server in pair:
        [window] = (await server.look(shop)).windows
        assert (window.limit, window.remaining) == (10, 0) and 50 < window.resets_in <= 60
    [name] = [one for one in redis_server.ask("KEYS", "*:requests_per_minute") if redis_server.ask("GET", one) == "10"]
    redis_server.ask("PEXPIRE", name, 300)
    [window] = (await pair[1].look(shop)).windows
    await asyncio.sleep(window.resets_in)
    assert await pair[0].call(shop)  # the time that it names is the true one


async def test_tokens_of_one_server_are_seen_at_the_other(pair: Pair) -> None:
    a, b = pair
    shop = caller(tokens_per_minute=100, tokens_per_day=1000)
    assert await a.call(shop)
    for _ in range(9):
        a.count(shop, {"tokens_per_minute": 10, "tokens_per_day": 10}, {"generated_tokens": 10})
    b.count(shop, {"tokens_per_minute": 10, "tokens_per_day": 10}, {"prompt_tokens": 10})
    async with asyncio.timeout(20):
        while await remaining(b, shop):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert not await a.call(shop) and not await b.call(shop)
    totals = (await a.look(shop)).totals
    assert (totals.prompt_tokens, totals.generated_tokens) == (10, 90) and (totals.requests, totals.refused) == (1, 2)
    assert (await b.look(shop)).totals == totals
    assert a.totals_here(shop.key_name).prompt_tokens == 0  # the metrics of each server are its own


async def test_running_calls_are_counted_together_and_given_back(pair: Pair) -> None:
    a, b = pair
    shop = caller(running_requests=3)
    assert [await one.call(shop) for one in (a, b, a, b)] == [True, True, True, False]
    assert (await b.look(shop)).num_running == (await a.look(shop)).num_running == 3
    a.end(shop)
    await seen(b, shop, "num_running", 2)
    assert [await one.call(shop) for one in (b, a)] == [True, False]


async def test_a_server_that_ends_in_order_gives_back_at_once(pair: Pair, redis_server: RedisServer) -> None:
    shop = caller(running_requests=1)
    async with serving(redis_server) as ending:
        assert await ending.call(shop) and not await pair[0].call(shop)
    assert await pair[0].call(shop)


def lease_ends(redis_server: RedisServer) -> float:
    [leases] = redis_server.ask("KEYS", "*:leases")
    return float(redis_server.ask("ZRANGE", leases, -1, -1, "WITHSCORES")[0][1])


async def test_running_calls_of_a_dead_server_are_given_back_with_its_lease(
    pair: Pair, redis_server: RedisServer
) -> None:
    a, b = pair
    shop, unlimited = caller(running_requests=2), caller("unlimited")
    assert await a.call(shop) and await a.call(shop) and await a.call(unlimited) and not await b.call(shop)
    first = lease_ends(redis_server)
    async with asyncio.timeout(20):
        while lease_ends(redis_server) - first < 2000 * _LEASE_SECONDS:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert not await b.call(shop)  # the lease is renewed while they run
    await seen(b, unlimited, "num_running", 1)
    await a.die()
    await seen(b, shop, "num_running", 0)
    await seen(b, unlimited, "num_running", 0)
    assert await b.call(shop)


async def test_a_server_that_was_paused_longer_than_its_lease_has_its_calls_again(pair: Pair) -> None:
    a, b = pair
    shop = caller(running_requests=2)
    assert await a.call(shop) and await a.call(shop)
    await a.die()
    await seen(b, shop, "num_running", 0)
    assert await b.call(shop)
    a._task = asyncio.create_task(a._run())  # it goes on where it was
    await seen(b, shop, "num_running", 3)
    a.end(shop)
    b.end(shop)
    await seen(b, shop, "num_running", 1)
    a.end(shop)
    await seen(a, shop, "num_running", 0)
    assert a.is_shared and await a.call(shop)


async def test_a_call_whose_client_leaves_while_redis_is_asked_has_not_been(pair: Pair) -> None:
    a, b = pair
    shop = caller(requests_per_minute=5, running_requests=5)
    for _ in range(20):
        waiting = asyncio.create_task(a.call(shop))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    found = await seen(b, shop, "num_running", 0)
    assert found.windows[0].remaining == 5 and not a.local.running
    assert all([await b.call(shop) for _ in range(5)])


async def test_without_redis_each_server_goes_on_alone_from_what_it_knew() -> None:
    shop, other = caller(requests_per_minute=4, tokens_per_day=100), caller("other", running_requests=1)
    with running_redis() as redis:
        async with two(redis) as (a, b):
            assert [await one.call(shop) for one in (a, b, a)] == [True] * 3
            assert await a.call(other)
            redis.kill()
            async with asyncio.timeout(20):
                assert await a.call(shop)  # the fourth, as it knows of three
                assert not await a.call(shop)
                assert not await a.call(other)
            assert not a.is_shared and (await a.look(shop)).windows[0].remaining == 0
            a.count(shop, {"tokens_per_day": 30}, {"generated_tokens": 30})
            a.end(shop)
            redis.start()  # with nothing in it
            async with asyncio.timeout(20):
                while not (a.is_shared and b.is_shared):  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
            found = await seen(b, shop, "num_running", 3)  # two at one, one at the other: what ran goes on
            assert found.windows[1].remaining == 70 and found.totals.generated_tokens == 30
            assert found.windows[0].remaining == 3  # counted at one server while Redis was away
            assert not await b.call(other)


async def test_a_redis_that_hangs_makes_nobody_wait_for_long() -> None:
    shop = caller(requests_per_minute=100)
    with running_redis() as redis:
        async with two(redis) as (a, b):
            assert await a.call(shop)
            redis.pause()
            async with asyncio.timeout(20):
                assert all(await asyncio.gather(*(a.call(shop) for _ in range(20))))
                assert not a.is_shared
                assert all([await a.call(shop) for _ in range(20)])
            redis.go_on()
            async with asyncio.timeout(20):
                while not a.is_shared:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
            await seen(b, shop, "num_running", 41)


async def test_a_redis_that_is_full_stops_no_call_and_what_was_counted_is_written_later() -> None:
    shop = caller(requests_per_minute=3, tokens_per_day=100)
    with running_redis() as redis:
        async with two(redis) as (a, b):
            redis.ask("CONFIG", "SET", "maxmemory", "1mb")
            assert [await a.call(shop) for _ in range(4)] == [True, True, True, False]
            for _ in range(3):
                a.count(shop, {"tokens_per_day": 10}, {"generated_tokens": 10})
                before = redis.ask("INFO", "commandstats")["cmdstat_evalsha"]["calls"]
                async with asyncio.timeout(20):
                    while redis.ask("INFO", "commandstats")["cmdstat_evalsha"]["calls"] == before:  # noqa: ASYNC110
                        await asyncio.sleep(0.02)
            redis.ask("CONFIG", "SET", "maxmemory", "0")
            await seen(a, shop, "num_running", 3)
            async with asyncio.timeout(20):
                while (await b.look(shop)).windows[1].remaining != 70:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
            assert (await b.look(shop)).totals.generated_tokens == 30


async def test_names_of_callers_are_not_in_redis(pair: Pair, redis_server: RedisServer) -> None:
    await pair[0].call(caller("address 192.0.2.77", requests_per_minute=3))
    names = redis_server.ask("KEYS", "*")
    assert any(name.endswith(":running") for name in names) and not any("192.0.2" in name for name in names)
    assert all(redis_server.ask("PTTL", name) > 0 for name in names if not name.endswith(":leases"))
