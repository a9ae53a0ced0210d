"""What happens to a cluster, one blow after the other, in an order that a seed decides."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from tests.faults.cluster.calm import Calm
from tests.faults.cluster.chaos_proxy import ChaosProxy
from tests.faults.cluster.machines import LEASE_SECONDS, ChaosCluster, kill_postgres, start_postgres
from tests.faults.mortal_server import MortalServer

_WAYS = ("cut", "refuse", "stall", "black_hole", "half_open_there", "half_open_back")


@dataclass(frozen=True, slots=True)
class Blow:
    """`needs_calm`: it takes Redis from a server, so nobody may be beginning a session."""

    name: str
    strike: Callable[[], Awaitable[None]]
    needs_calm: bool = False


@dataclass(frozen=True, slots=True)
class StruckBlow:
    name: str
    at: float
    seconds: float


def all_blows(cluster: ChaosCluster, chance: Random) -> list[Blow]:
    """Each once; whom of two it hits, and for how long, is chance."""
    long = LEASE_SECONDS + 2.0  # another server takes what this one had
    short = LEASE_SECONDS / 2

    def some(parts: Sequence[Any]) -> Any:
        return chance.choice(parts)

    blows = [
        Blow("kill a server", lambda: kill_and_start(some(cluster.servers))),
        Blow("stop a server", lambda: end_and_start(some(cluster.servers))),
        Blow("pause a server for longer than its lease", lambda: pause(some(cluster.servers), long)),
        Blow("pause a server for less than its lease", lambda: pause(some(cluster.servers), short)),
        Blow("kill an upstream", lambda: kill_and_start(some(cluster.upstreams))),
        Blow("pause an upstream", lambda: pause(some(cluster.upstreams), long)),
        Blow("kill Redis", lambda: kill_redis(cluster), needs_calm=True),
        Blow("pause Redis", lambda: pause_redis(cluster, chance.uniform(1, 6)), needs_calm=True),
        Blow("kill PostgreSQL", lambda: kill_database(cluster)),
    ]
    for part, proxies in cluster.proxies.items():
        for way in _WAYS:
            name = f"{way} between {part} and a server" if part != "upstreams" else f"{way} before an upstream"
            blows.append(Blow(name, partial(spoil_one, proxies, way, long, chance), needs_calm=part == "redis"))
    return blows


async def strike(blow: Blow, cluster: ChaosCluster, calm: Calm, began: float) -> StruckBlow:
    """The next one comes when both servers store sessions again: two at once may lose what only memory had."""
    async with _calm_for(blow, calm):
        at = time.monotonic()
        await blow.strike()
        await cluster.until_durable()
    return StruckBlow(blow.name, round(at - began, 1), round(time.monotonic() - at, 1))


@asynccontextmanager
async def _calm_for(blow: Blow, calm: Calm) -> AsyncIterator[None]:
    if blow.needs_calm:
        async with calm.broken():
            yield
    else:
        yield


async def kill_and_start(server: MortalServer) -> None:
    server.kill()
    await asyncio.sleep(LEASE_SECONDS + 1)
    await server.start()


async def end_and_start(server: MortalServer) -> None:
    server.terminate()
    await server.exit_code()
    await server.start()


async def pause(server: MortalServer, seconds: float) -> None:
    os.kill(server.pid, signal.SIGSTOP)
    try:
        await asyncio.sleep(seconds)
    finally:
        os.kill(server.pid, signal.SIGCONT)


async def kill_redis(cluster: ChaosCluster) -> None:
    cluster.redis.kill()
    await asyncio.sleep(1)
    await asyncio.to_thread(cluster.redis.start)


async def pause_redis(cluster: ChaosCluster, seconds: float) -> None:
    cluster.redis.pause()
    try:
        await asyncio.sleep(seconds)
    finally:
        cluster.redis.go_on()


async def kill_database(cluster: ChaosCluster) -> None:
    kill_postgres(cluster.postgres)
    await asyncio.sleep(1)
    await start_postgres(cluster.postgres)


async def spoil_one(proxies: Sequence[ChaosProxy], way: str, seconds: float, chance: Random) -> None:
    proxy = chance.choice(proxies)
    try:
        match way:
            case "cut":
                proxy.cut()
                return
            case "refuse":
                proxy.refuse()
                proxy.cut(0.5)
            case "stall":
                proxy.stall()
            case "black_hole":
                proxy.black_hole()
            case "half_open_there":
                proxy.half_open("there")
            case _:
                proxy.half_open("back")
        await asyncio.sleep(seconds)
    finally:
        await proxy.heal()
