"""Servers of this version and of the next one on one Redis, drained one by one under load: no event is lost."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from random import Random

import pytest

from tests.faults.checker import check
from tests.faults.history import Client, connections_of
from tests.faults.mortal_server import MortalServer, get, post, until
from tests.faults.replicas import LEASE_SECONDS, replicas
from tests.faults.test_kill import seen_blocks
from tests.faults.test_replicas import read_at, references_of, story
from tests.openai_api.test_chat import CHAT, said
from tests.redis_server import RedisServer

pytestmark = [pytest.mark.slow, pytest.mark.anyio]
NEXT_PROGRAM = "tests/faults/cluster/next_version.py"


@pytest.fixture
async def pair(tmp_path: Path, redis_server: RedisServer) -> AsyncIterator[list[MortalServer]]:
    async with replicas(tmp_path, redis_server, DRAIN_SECONDS="0.1") as servers:
        yield servers


async def become(server: MortalServer, what: str) -> None:
    """Drained as a rollout does it, and started as another version; an empty name is this one."""
    server.terminate()
    assert await server.exit_code() == 0
    server.program = [NEXT_PROGRAM] if what else ["main.py"]
    await server.start(**({"NEXT_VERSION": what} if what else {}))


async def read_wherever_it_runs(client: Client, servers: Sequence[MortalServer], chance: Random) -> None:
    """As behind a load balancer: to any server, and to another one if that refuses."""
    async with asyncio.timeout(120):
        while not client.is_over:
            client.move_to(chance.choice(servers).url)
            await client.connect("POST" if client.cursor is None else chance.choice(["POST", "GET"]))
            await client.read(blocks=chance.randrange(1, 60))
            assert client.last.status in (0, 200, 503), client.last
            await asyncio.sleep(0.02)
        client.leave()


def clients_of(prefix: str, num: int) -> list[Client]:
    return [Client("http://nowhere", said(story(number), session_id=f"{prefix}-{number}")) for number in range(num)]


@pytest.mark.parametrize("what", ["fields", "records", "runs"])
async def test_no_event_is_lost_while_servers_become_the_next_version_and_go_back(
    pair: list[MortalServer], what: str
) -> None:
    chance = Random(what)
    rollout = [(pair[0], what), (pair[1], what), (pair[0], ""), (pair[1], "")]
    if what != "fields":  # what this version cannot read it cannot go on with: there is no way back
        rollout = rollout[:2]
    clients: list[Client] = []
    following: list[asyncio.Future[object]] = []
    for number, (server, version) in enumerate(rollout):
        begun = clients_of(f"{what}-{number}", 8)
        clients += begun
        following += [asyncio.ensure_future(read_wherever_it_runs(one, pair, chance)) for one in begun]
        await seen_blocks(begun, 200)
        await become(server, version)
    await asyncio.gather(*following)
    again = [*await read_at(pair[0], clients), *await read_at(pair[1], clients)]
    check(connections_of([*clients, *again]), references_of(clients, finish_reason="stop"))


async def test_this_version_leaves_alone_what_only_the_next_one_can_read(pair: list[MortalServer]) -> None:
    old, new = pair
    await become(new, "records")
    client = Client(new.url, said(story(1), session_id="later"))
    await client.connect()
    await client.read(blocks=10)
    for method in ("GET", "POST"):  # a POST without a cursor would begin the session a second time
        at_old = Client(old.url, client.body)
        await at_old.connect(method)
        await at_old.read()
        assert (at_old.last.status, at_old.last.error_code) == (503, "durability_degraded"), at_old.last
        assert int(at_old.last.headers["retry-after"]) > 0
    assert (await post(old.url, f"/v1/cancel/{client.session_id}")).status_code == 503
    refused = await post(old.url, CHAT, said("another", session_id="later"))
    assert refused.status_code == 503
    await client.follow()
    check(client.history, references_of([client]))


@pytest.mark.parametrize("what", ["records", "runs"])
async def test_when_the_only_server_of_the_next_version_dies_its_answers_wait_for_another(
    pair: list[MortalServer], redis_server: RedisServer, what: str
) -> None:
    old, new = pair
    await become(new, what)
    clients = [Client(new.url, said(story(number), session_id=f"waits-{number}")) for number in range(4)]
    following = asyncio.gather(*(client.follow() for client in clients))
    await seen_blocks(clients, 100)
    new.kill()
    await until(lambda: is_long_over(redis_server), LEASE_SECONDS + 30)
    assert (await get(old.url, "/ready")).status_code == 200
    await new.start()
    await following
    check(connections_of(clients), references_of(clients, finish_reason="stop"))


def is_long_over(redis: RedisServer) -> bool:
    """A lease, for so long that the other server has looked at what its owner left."""
    seconds, _ = redis.ask("TIME")
    with redis.client() as client:
        [[_, ends_at]] = client.zrange("tis:replicas", 0, 0, withscores=True)
    return float(seconds) - float(ends_at) / 1000 > LEASE_SECONDS
