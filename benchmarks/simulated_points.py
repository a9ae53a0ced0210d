"""Points of `scripts/simulate_cluster.py load` for real: how busy Redis is, and when a token is shown.

    python benchmarks/simulated_points.py [--points 2:200 4:400] [--seconds 10]

A point is SERVERS:SESSIONS of 20 tokens a second. A server is a process with the server's own store; Redis is a real
one (`appendonly yes`). It counts its own CPU, in the middle of the time in which all write.
"""

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the server and its tests

from redis_costs import Counters, begun, counters, opened

from scripts.simulated_cluster.cluster import Cluster, ClusterPlan, Outcome
from tests.redis_server import RedisServer, running_redis
from tis.streaming.stores.store import Committed

_RATE = 20.0
_EDGE_SECONDS = 1.0  # not counted, at both ends
_READY, _BEGIN_AT = "ready", "begin-at"


@dataclass(frozen=True, slots=True)
class MeasuredPoint:
    redis: Counters
    seconds: float
    delays_ms: Sequence[float]

    @property
    def busy(self) -> float:
        return self.redis.cpu_seconds / self.seconds

    @property
    def events_per_script(self) -> float:
        return self.redis.events / self.redis.scripts


def measured(redis: RedisServer, num_servers: int, num_sessions: int, seconds: float) -> MeasuredPoint:
    plain = RedisServer(redis.folder, redis.port)  # without its process, which does not go elsewhere
    with ProcessPoolExecutor(num_servers, mp_context=get_context("spawn")) as pool, redis.client() as client:
        runs = [
            pool.submit(_server, plain, f"server-{number}", num_sessions // num_servers, seconds + 2 * _EDGE_SECONDS)
            for number in range(num_servers)
        ]
        while int(client.get(_READY) or 0) < num_servers:
            time.sleep(0.05)
        client.set(_BEGIN_AT, time.time() + _EDGE_SECONDS)
        time.sleep(2 * _EDGE_SECONDS)
        before, began = counters(redis), time.monotonic()
        time.sleep(seconds)
        used, took = counters(redis) - before, time.monotonic() - began
        return MeasuredPoint(used, took, [delay for run in runs for delay in run.result()])


def _server(redis: RedisServer, name: str, num_sessions: int, seconds: float) -> list[float]:
    return asyncio.run(write_tokens(redis, name, num_sessions, seconds))


async def write_tokens(redis: RedisServer, name: str, num_sessions: int, seconds: float) -> list[float]:
    """Returns how many ms each token took until it was stored."""
    delays: list[float] = []

    def commit_of(written_at: float) -> Committed:
        return lambda index: delays.append((time.monotonic() - written_at) * 1000)

    async with opened(redis) as store:
        sessions = [begun(store, name, number) for number in range(num_sessions)]
        await store.flush()
        begin_at = await _begin_at(redis)

        async def answer(number: int) -> None:
            at = begin_at + number / num_sessions / _RATE
            while at < begin_at + seconds:
                await asyncio.sleep(max(0.0, at - time.time()))
                sessions[number].write(1, commit_of(time.monotonic()))
                at += 1 / _RATE

        await asyncio.gather(*(answer(number) for number in range(num_sessions)))
        await store.flush()
    return delays


async def _begin_at(redis: RedisServer) -> float:
    with redis.client() as client:
        client.incr(_READY)
        while not (found := client.get(_BEGIN_AT)):  # noqa: ASYNC110  another process sets it
            await asyncio.sleep(0.02)
    return float(found)


def simulated(num_servers: int, num_sessions: int) -> Outcome:
    plan = ClusterPlan(
        servers=num_servers, sessions=num_sessions, tokens=10**6, readers_each=0, kills=0, pauses=0, hops=0,
        straggler_share=0, seconds=5, rate=_RATE,
    )  # fmt: skip
    return Cluster(plan).run()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", nargs="+", default=["2:200", "4:400"], help="SERVERS:SESSIONS")
    parser.add_argument("--seconds", type=float, default=10.0)
    arguments = parser.parse_args()
    print("| servers | sessions | tokens a second | busy | events in a script | shown after, median |")
    print("|---|---|---|---|---|---|")
    for point in arguments.points:
        num_servers, num_sessions = map(int, point.split(":"))
        said = simulated(num_servers, num_sessions)
        with running_redis("--appendonly", "yes", "--appendfsync", "everysec") as redis:
            found = measured(redis, num_servers, num_sessions, arguments.seconds)
        print(
            f"| {num_servers} | {num_sessions:,} | {found.redis.events / found.seconds:,.0f}"
            f" | {said.busy:.2f} / {found.busy:.2f} | {said.events_per_script:.1f} / {found.events_per_script:.1f}"
            f" | {said.median_ms:.1f} / {statistics.median(found.delays_ms):.1f} ms |",
            flush=True,
        )


if __name__ == "__main__":
    main()
