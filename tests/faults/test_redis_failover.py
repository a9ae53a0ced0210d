"""Redis behind Sentinel: its master is killed, a replica takes its place, and no stream ends or changes."""

import asyncio
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis

from tests.faults.checker import check
from tests.faults.history import Client, connections_of
from tests.faults.mortal_server import until, until_durability
from tests.faults.replicas import replicas
from tests.faults.test_replicas import clients_of, read_at, references_of
from tests.redis_server import RedisServer, running_redis
from tests.serving import free_port

pytestmark = [pytest.mark.slow, pytest.mark.anyio]
_SERVICE = "sessions"


@dataclass
class SentinelServer:
    port: int

    @property
    def url(self) -> str:
        return f"redis+sentinel://127.0.0.1:{self.port}/{_SERVICE}/0"

    def master_port(self) -> int:
        with redis.Redis(port=self.port, decode_responses=True) as client:
            return int(client.sentinel_get_master_addr_by_name(_SERVICE)[1])

    def num_replicas(self) -> int:
        with redis.Redis(port=self.port, decode_responses=True) as client:
            return len(client.sentinel_slaves(_SERVICE))


@contextmanager
def running_sentinel(folder: Path, master: RedisServer) -> Iterator[SentinelServer]:
    port = free_port()
    settings = folder / "sentinel.conf"  # Sentinel writes what it learns into it
    settings.write_text(
        f"port {port}\nbind 127.0.0.1\ndir {folder}\n"
        f"sentinel monitor {_SERVICE} 127.0.0.1 {master.port} 1\n"
        f"sentinel down-after-milliseconds {_SERVICE} 500\nsentinel failover-timeout {_SERVICE} 2000\n"
    )
    with (folder / "sentinel.log").open("ab") as log:
        sentinel = subprocess.Popen(["redis-server", str(settings), "--sentinel"], stdout=log, stderr=log)
    try:
        yield SentinelServer(port)
    finally:
        sentinel.kill()
        sentinel.wait()


async def test_streams_go_on_when_a_replica_takes_the_place_of_the_master(tmp_path: Path) -> None:
    with (
        running_redis() as master,
        running_redis("--replicaof", "127.0.0.1", str(master.port)) as replica,
        running_sentinel(tmp_path, master) as sentinel,
    ):
        await until(lambda: _is_watched(sentinel), what="Sentinel knows the replica")
        async with replicas(tmp_path, master, 2, REDIS_URL=sentinel.url) as (a, b):
            clients = clients_of(a, "moved")
            for client in clients:
                await client.connect()
                await client.read(blocks=10)
            watching = [Client(b.url, client.body) for client in clients]
            for client in watching:
                await client.connect()
                await client.read(blocks=5)
            master.kill()
            await until(lambda: sentinel.master_port() == replica.port, what="the replica is the master")
            await asyncio.gather(*(client.read() for client in clients))
            assert all(client.is_over for client in clients)
            for server in (a, b):
                await until_durability(server, "durable")
            await asyncio.gather(*(client.follow() for client in watching))
            again = [*await read_at(a, clients), *await read_at(b, clients)]
            check(connections_of([*clients, *watching, *again]), references_of(clients, finish_reason="stop"))


def _is_watched(sentinel: SentinelServer) -> bool:
    try:
        return sentinel.num_replicas() == 1
    except redis.exceptions.RedisError:
        return False
