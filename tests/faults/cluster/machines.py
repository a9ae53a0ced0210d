"""Two servers, their Redis and PostgreSQL and two upstreams as real processes, with a chaos proxy on every way."""

import asyncio
import json
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Protocol

from tests.databases import place_of_servers
from tests.faults.cluster.chaos_proxy import ChaosProxy, proxied
from tests.faults.mortal_server import MortalServer, durability, until
from tests.marketplace.postgres import Postgres, programs_of_postgres, running_postgres
from tests.redis_server import RedisServer, require_redis
from tests.serving import free_port

LEASE_SECONDS = 2
SECRET = "a secret that both servers sign with, long enough"
# A connection that says nothing is given up soon, so that a black hole is found within the time of a test.
_UPSTREAM_SECONDS = {"connect": 2, "first_token": 4, "next_token": 2, "answer": 120, "probe": 0.5}
_MAX_STREAMS = 512


class Front(Protocol):
    """Where clients reach a server."""

    @property
    def url(self) -> str: ...


@dataclass(frozen=True)
class ChaosClusterPlan:
    tokens_per_second: float = 12
    seed: int = 1


class ChaosCluster:
    """`fronts[i]` is where clients reach `servers[i]`."""

    def __init__(
        self,
        servers: Sequence[MortalServer],
        upstreams: Sequence[MortalServer],
        redis: RedisServer,
        postgres: Postgres,
        database_url: str,
        proxies: dict[str, list[ChaosProxy]],
    ) -> None:
        self.servers, self.upstreams = servers, upstreams
        self.redis, self.postgres, self.database_url = redis, postgres, database_url
        self.proxies = proxies

    @property
    def fronts(self) -> Sequence[ChaosProxy]:
        return self.proxies["clients"]

    async def until_durable(self) -> None:
        for server in self.servers:
            if server.is_running:
                await until(partial(is_durable, server), 60, "a server that stores sessions again")

    def slow_everything(self, latency_seconds: float, jitter_seconds: float) -> None:
        for ways in self.proxies.values():
            for proxy in ways:
                proxy.slow(latency_seconds, jitter_seconds)

    def require_no_tracebacks(self) -> None:
        for server in (*self.servers, *self.upstreams):
            server.require_alive()
            assert "Traceback" not in server.log.read_text(), server.log.read_text()[-4000:]


async def is_durable(server: MortalServer) -> bool:
    return await durability(server) == "durable"


def kill_postgres(postgres: Postgres) -> None:
    """The process of it that starts the others, which end when they see that."""
    os.kill(int((postgres.folder / "data" / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)


async def start_postgres(postgres: Postgres) -> None:
    """It does not start while processes of the killed one still run."""
    for attempt in range(50):
        try:
            await asyncio.to_thread(postgres.start)
            return
        except Exception:
            if attempt == 49:
                raise
            await asyncio.sleep(0.2)


@asynccontextmanager
async def running_redis_on(folder: Path) -> AsyncIterator[RedisServer]:
    """What it has acknowledged survives a kill: `appendfsync always` writes before it answers."""
    require_redis()
    redis = RedisServer(folder, free_port(), ("--appendonly", "yes", "--appendfsync", "always"))
    redis.start()
    try:
        yield redis
    finally:
        redis.kill()


@asynccontextmanager
async def running_cluster(folder: Path, plan: ChaosClusterPlan) -> AsyncIterator[ChaosCluster]:
    programs = programs_of_postgres()
    if programs is None:
        raise FileNotFoundError("PostgreSQL is missing: apt-get install postgresql")
    chance = Random(plan.seed)
    async with AsyncExitStack() as stack:
        memory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tis-cluster-", dir=place_of_servers())))
        redis = await stack.enter_async_context(running_redis_on(memory))
        postgres = stack.enter_context(running_postgres(programs, place_of_servers()))
        database_url = postgres.new_market("market")
        upstreams = [_upstream(folder, number, plan) for number in range(2)]

        async def behind_proxy(target: int | Path) -> ChaosProxy:
            return await stack.enter_async_context(proxied(target, Random(chance.random())))

        to_upstreams = [await behind_proxy(upstream.port) for upstream in upstreams]
        to_database = [await behind_proxy(postgres.folder / ".s.PGSQL.5432") for _ in range(2)]
        to_redis = [await behind_proxy(redis.port) for _ in range(2)]
        catalogue = _write_catalogue(folder, [proxy.url for proxy in to_upstreams])
        servers = [
            _server(folder, number, catalogue, redis_port.port, database.port)
            for number, (redis_port, database) in enumerate(zip(to_redis, to_database, strict=True))
        ]
        fronts = [await behind_proxy(server.port) for server in servers]
        proxies = {"upstreams": to_upstreams, "database": to_database, "redis": to_redis, "clients": fronts}
        try:
            await asyncio.gather(*(server.start() for server in (*upstreams, *servers)))
            yield ChaosCluster(servers, upstreams, redis, postgres, database_url, proxies)
        finally:
            for server in (*servers, *upstreams):
                server.stop()


def _upstream(folder: Path, number: int, plan: ChaosClusterPlan) -> MortalServer:
    own = folder / f"upstream-{number}"
    own.mkdir()
    return MortalServer(
        own,
        MODEL_REPO_ID=f"echo?tokens_per_second={plan.tokens_per_second:g}",
        DATABASE_URL=f"sqlite:///{own}/marketplace.db",
        MARKETPLACE_AT_START="0",
        MAX_QUEUE_SIZE=str(_MAX_STREAMS),
        MAX_CONNECTIONS_PER_ADDRESS=str(2 * _MAX_STREAMS),
        ANONYMOUS_GRACE_SECONDS="0",
        DRAIN_SECONDS="0.1",
    )


def _server(folder: Path, number: int, catalogue: Path, redis_port: int, database_port: int) -> MortalServer:
    own = folder / f"server-{number}"
    own.mkdir()
    return MortalServer(
        own,
        MODEL_CONFIG=str(catalogue),
        MODEL_REPO_ID="far",
        SESSION_STORE="redis",
        REDIS_URL=f"redis://127.0.0.1:{redis_port}/0",
        SESSION_LEASE_SECONDS=str(LEASE_SECONDS),
        DATABASE_URL=f"postgresql://postgres@127.0.0.1:{database_port}/market",
        RESPONSES_URL=f"postgresql://postgres@127.0.0.1:{database_port}/market",
        RESPONSES_TIMEOUT_SECONDS="2",
        JWT_SECRET_KEY=SECRET,
        SESSIONS_TTL_SECONDS="3600",
        MAX_SESSIONS="4096",
        MAX_CONNECTIONS_PER_ADDRESS=str(2 * _MAX_STREAMS),
        DRAIN_SECONDS="0.2",
    )


def _write_catalogue(folder: Path, urls: Sequence[str]) -> Path:
    path = folder / "models.yaml"
    entry = {
        "upstream": list(urls),
        "upstream_kind": "tis",
        "upstream_model": "echo",
        "upstream_seconds": _UPSTREAM_SECONDS,
        "limits": {"max_batch_size": _MAX_STREAMS, "max_queue_size": _MAX_STREAMS},
    }
    path.write_text(json.dumps({"models": {"far": entry}}))  # JSON is YAML
    return path
