"""Redis dies, hangs or is full: answers go on, and what is missing is stored afterwards, under the same numbers."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.checker import check
from tests.faults.history import Client, connections_of
from tests.faults.mortal_server import MortalServer, get, post, until, until_durability
from tests.faults.replicas import replicas
from tests.faults.test_replicas import clients_of, read_at, references_of, story
from tests.openai_api.test_chat import CHAT, said
from tests.redis_server import RedisServer, running_redis

pytestmark = [pytest.mark.slow, pytest.mark.anyio]


@pytest.fixture
def own_redis() -> Iterator[RedisServer]:
    with running_redis("--appendonly", "yes", "--appendfsync", "everysec") as running:
        yield running


@pytest.fixture
async def pair(tmp_path: Path, own_redis: RedisServer) -> AsyncIterator[list[MortalServer]]:
    async with replicas(tmp_path, own_redis) as servers:
        yield servers


@contextmanager
def full(redis: RedisServer) -> Iterator[None]:
    redis.ask("CONFIG", "SET", "maxmemory", "1mb")
    yield
    redis.ask("CONFIG", "SET", "maxmemory", "0")


async def begun(server: MortalServer, prefix: str) -> list[Client]:
    clients = clients_of(server, prefix, 4)
    for client in clients:
        await client.connect()
        await client.read(blocks=10)
    return clients


async def require_refusal(server: MortalServer, client: Client) -> None:
    """A cursor that nobody can check now."""
    answer = await get(
        server.url, f"/v1/stream/{client.session_id}", **{"Last-Event-ID": f"{client.session_id}:{client.cursor}"}
    )
    assert answer.status_code == 503 and int(answer.headers["retry-after"]) > 0
    assert answer.json()["error"]["code"] == "durability_degraded"


async def test_answers_go_on_while_redis_is_down(pair: list[MortalServer], own_redis: RedisServer) -> None:
    a, b = pair
    clients = await begun(a, "down")
    own_redis.kill()
    await asyncio.gather(*(client.read() for client in clients))  # to the end
    assert all(client.is_over for client in clients)
    for server in pair:
        await until_durability(server, "degraded")
        await require_refusal(server, clients[0])
    unnamed = await post(a.url, CHAT, said("still here"))
    assert unnamed.json()["choices"][0]["message"]["content"] == "still here"
    own_redis.start()
    for server in pair:
        await until_durability(server, "durable")
    again = await read_at(b, clients)
    check(connections_of([*clients, *again]), references_of(clients, finish_reason="stop"))


async def test_answers_go_on_while_redis_hangs(pair: list[MortalServer], own_redis: RedisServer) -> None:
    a, b = pair
    clients = await begun(a, "hangs")
    own_redis.pause()
    await asyncio.gather(*(client.read() for client in clients))
    assert all(client.is_over for client in clients)
    await require_refusal(b, clients[0])
    own_redis.go_on()
    await until_durability(a, "durable")
    again = await read_at(b, clients)
    check(connections_of([*clients, *again]), references_of(clients, finish_reason="stop"))


async def test_answers_go_on_while_redis_is_full(pair: list[MortalServer], own_redis: RedisServer) -> None:
    a, b = pair
    clients = await begun(a, "full")
    with full(own_redis):
        await asyncio.gather(*(client.read() for client in clients))
        assert all(client.is_over for client in clients)
        await require_refusal(a, clients[0])
    await until_durability(a, "durable")
    again = await read_at(b, clients)
    check(connections_of([*clients, *again]), references_of(clients, finish_reason="stop"))


async def test_a_redis_that_has_lost_everything_gets_the_running_answers_again(tmp_path: Path) -> None:
    with running_redis() as forgetful:
        async with replicas(tmp_path, forgetful) as (a, b):
            clients = await begun(a, "lost")
            forgetful.kill()
            forgetful.start()
            await asyncio.gather(*(client.read() for client in clients))
            assert all(client.is_over for client in clients)
            await until_durability(a, "durable")
            again = await read_at(b, clients)
            check(connections_of([*clients, *again]), references_of(clients, finish_reason="stop"))


async def test_a_reader_at_the_other_server_waits_for_redis(pair: list[MortalServer], own_redis: RedisServer) -> None:
    a, b = pair
    begun_at_a = Client(a.url, said(story(1), session_id="waits"))
    await begun_at_a.connect()
    await begun_at_a.read(blocks=10)
    watching = Client(b.url, begun_at_a.body)
    following = asyncio.create_task(watching.follow())
    await until(lambda: len(watching.blocks) > 20)
    own_redis.kill()
    own_redis.start()
    await following
    await begun_at_a.follow()
    check(connections_of([begun_at_a, watching]), references_of([watching]))


async def test_a_server_does_not_start_without_its_redis_and_shows_no_password(tmp_path: Path) -> None:
    server = MortalServer(
        tmp_path, SESSION_STORE="redis", REDIS_URL="redis://somebody:secret-word@127.0.0.1:1/0", LOG_LEVEL="debug"
    )
    with pytest.raises(AssertionError, match="does not come up"):
        await server.start()
    log = server.log.read_text()
    assert "redis://somebody@127.0.0.1:1/0" in log and "secret-word" not in log
