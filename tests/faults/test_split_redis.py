"""One server alone is cut off from Redis: another goes on with its answers while it does so, too."""

import asyncio
from pathlib import Path
from random import Random

import pytest

from tests.faults.checker import check
from tests.faults.cluster.chaos_proxy import proxied
from tests.faults.history import connections_of
from tests.faults.mortal_server import until, until_durability
from tests.faults.replicas import replicas
from tests.faults.test_replicas import clients_of, read_at, references_of
from tests.redis_server import RedisServer

pytestmark = [pytest.mark.slow, pytest.mark.anyio]


async def test_a_reader_who_has_seen_more_than_the_other_server_has_made_waits_for_it(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    paced = "echo?tokens_per_second=20"
    async with (
        proxied(redis_server.port, Random(1)) as way,
        replicas(tmp_path, redis_server, MODEL_REPO_ID=paced) as (a, b),
    ):
        await a.start_again(REDIS_URL=f"redis://127.0.0.1:{way.port}/0")
        clients = clients_of(a, "split", 4)
        for client in clients:
            await client.connect()
            await client.read(blocks=10)
        way.black_hole()
        # What is not stored is shown as soon as the store counts as away; the other server has begun behind it by then.
        await asyncio.gather(*(client.read(blocks=95) for client in clients))
        for client in clients:
            client.move_to(b.url)
        await asyncio.gather(*(client.follow() for client in clients))  # to it a 400 is a fault
        await way.heal()
        await until_durability(a, "durable")
        await until(lambda: "another server has taken" in a.log.read_text())
        again = [*await read_at(a, clients), *await read_at(b, clients)]
        check(connections_of([*clients, *again]), references_of(clients, finish_reason="stop"))
