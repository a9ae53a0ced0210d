"""Several server processes on one Redis, as behind a load balancer."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.faults.mortal_server import MortalServer
from tests.redis_server import RedisServer

LEASE_SECONDS = 2


@asynccontextmanager
async def replicas(
    folder: Path, redis: RedisServer, num: int = 2, **variables: str
) -> AsyncIterator[list[MortalServer]]:
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
        servers.append(MortalServer(own, **shared, DATABASE_URL=f"sqlite:///{own}/marketplace.db"))
    try:
        for server in servers:
            await server.start()
        yield servers
        for server in servers:
            assert "Traceback" not in server.log.read_text()
    finally:
        for server in servers:
            server.stop()
