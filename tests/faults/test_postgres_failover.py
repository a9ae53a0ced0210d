"""PostgreSQL fails over to its standby while responses and the marketplace write: servers go on, nothing is lost."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.faults.cluster.askers import ClusterAskers
from tests.faults.cluster.buyers import ClusterBuyers
from tests.faults.cluster.machines import SECRET
from tests.faults.mortal_server import until
from tests.faults.replicas import replicas
from tests.faults.replicated_postgres import ReplicatedPostgres, replicated_postgres
from tests.redis_server import RedisServer

pytestmark = [pytest.mark.slow, pytest.mark.anyio]
_NUM_AT_ONCE = 3
_NUM_TOLD, _NUM_BOUGHT = 12, 6  # before the primary is killed, and again behind that


@pytest.fixture
def both() -> Iterator[ReplicatedPostgres]:
    with replicated_postgres() as running:
        yield running


async def test_a_failover_loses_nothing_that_was_acknowledged_and_servers_go_on_without_a_restart(
    tmp_path: Path, redis_server: RedisServer, both: ReplicatedPostgres
) -> None:
    both.primary.new_market("market")
    url = both.url("market")
    variables = {"RESPONSES_URL": url, "RESPONSES_TIMEOUT_SECONDS": "2", "DATABASE_URL": url, "JWT_SECRET_KEY": SECRET}
    async with replicas(tmp_path, redis_server, 2, **variables) as servers:
        pids = [server.pid for server in servers]
        askers = ClusterAskers(servers, Random(1), 60, "echo")
        buyers = ClusterBuyers(servers, Random(2))
        await asyncio.to_thread(buyers.open, servers[0].url)
        work = [asyncio.create_task(one()) for one in [askers.ask, buyers.buy] * _NUM_AT_ONCE]

        async def until_more_is_acknowledged() -> None:
            wanted = len(askers.told) + _NUM_TOLD, len(buyers.bought) + _NUM_BOUGHT
            await until(lambda: len(askers.told) >= wanted[0] and len(buyers.bought) >= wanted[1])

        await until_more_is_acknowledged()
        await asyncio.to_thread(both.primary.kill)
        await asyncio.to_thread(both.standby.promote)
        await until_more_is_acknowledged()
        askers.is_open = buyers.is_open = False
        await asyncio.gather(*work)
        now = both.standby.url("market")
        assert (await askers.faults(now), askers.notes, askers.refusals) == ({}, [], [])
        assert (await asyncio.to_thread(buyers.faults, now), buyers.refusals) == ({}, [])
        assert set(askers.num_by_kind) == {"whole", "streamed", "background", "in a conversation"}
        assert [server.pid for server in servers] == pids
