"""A network resets connections to Redis that nobody uses at that moment: nobody notices."""

from collections.abc import AsyncIterator
from random import Random
from typing import Any

import pytest

from tests.faults.cluster.chaos_proxy import ChaosProxy, proxied
from tests.redis_server import RedisServer
from tests.streaming.stores.harness import until
from tis.streaming.stores.redis_clients import FAULTS, RedisClients

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """The two tell of a reset in different ways."""
    if request.param:
        pytest.importorskip("uvloop", reason="there is none on Windows")
    return "asyncio", {"use_uvloop": request.param}


@pytest.fixture
async def proxy(redis_server: RedisServer) -> AsyncIterator[ChaosProxy]:
    async with proxied(redis_server.port, Random(1)) as proxy:
        yield proxy


@pytest.fixture
async def clients(proxy: ChaosProxy) -> AsyncIterator[RedisClients]:
    clients = RedisClients(f"redis://127.0.0.1:{proxy.port}/0", seconds=5, wait_seconds=1, max_waits=4)
    yield clients
    await clients.close()


async def reset(clients: RedisClients, proxy: ChaosProxy) -> Any:
    """The connection, which nobody uses."""
    redis: Any = clients.commands
    assert await redis.ping()
    [connection] = redis.connection_pool._available_connections
    proxy.cut()
    await until(lambda: connection._writer.is_closing())
    return connection


async def test_a_connection_that_was_reset_is_replaced(clients: RedisClients, proxy: ChaosProxy) -> None:
    for _ in range(3):
        await reset(clients, proxy)
    redis: Any = clients.commands
    async with redis.pipeline(transaction=False) as pipeline:
        pipeline.set("a", "1")
        pipeline.get("a")
        assert await pipeline.execute() == [True, b"1"]


async def test_a_connection_that_redis_has_closed_is_replaced(clients: RedisClients, redis_server: RedisServer) -> None:
    redis: Any = clients.commands
    assert await redis.ping()
    [connection] = redis.connection_pool._available_connections
    redis_server.ask("CLIENT", "KILL", "TYPE", "normal")
    await until(lambda: connection._reader.at_eof())
    assert await redis.ping()


async def test_a_reset_in_the_last_moment_is_a_fault_of_the_connection(
    clients: RedisClients, proxy: ChaosProxy
) -> None:
    connection = await reset(clients, proxy)
    with pytest.raises(FAULTS):
        await connection.send_packed_command(connection.pack_command("PING"), check_health=False)
    redis: Any = clients.commands
    assert await redis.ping()
