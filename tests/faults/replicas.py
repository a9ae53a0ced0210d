"""Several server processes on one Redis, as behind a load balancer."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tests.databases import new_sqlite
from tests.faults.mortal_server import MortalServer
from tests.redis_server import RedisServer

LEASE_SECONDS = 2


@asynccontextmanager
async def replicas(
    folder: Path, redis: RedisServer, num: int = 2, *, program: Sequence[str] = ("main.py",), **variables: str
) -> AsyncIterator[list[MortalServer]]:
    """Each has a marketplace of its own where `variables` name no `DATABASE_URL`."""
    shared = {
        "SESSION_STORE": "redis",
        "REDIS_URL": redis.url,
        "SESSION_LEASE_SECONDS": str(LEASE_SECONDS),
        "MODEL_REPO_ID": "echo?tokens_per_second=80",
        **variables,
    }
    servers = []
    for number in range(num):
        own = folder / f"replica-{number}"
        own.mkdir()
        market = {} if "DATABASE_URL" in shared else {"DATABASE_URL": new_sqlite(own), "MARKETPLACE_AT_START": "0"}
        server = MortalServer(own, **market, **shared)
        server.program = [*program]
        servers.append(server)
    try:
        for server in servers:
            await server.start()
        yield servers
        for server in servers:
            assert "Traceback" not in server.log.read_text()
    finally:
        for server in servers:
            server.stop()
