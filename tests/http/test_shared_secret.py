"""The secret of read tokens: one for all servers that share a Redis, and one that an operator names and replaces."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from tests.http.keys import bearer
from tests.openai_api.test_chat import CHAT, said
from tests.redis_server import RedisServer, running_redis
from tests.serving import MovedClock, served, settings_with
from tis.http.shared_secret import SECRET_KEY, SharedSecret
from tis.setting_types import SettingsError
from tis.settings import Settings
from tis.streaming.stores.memory import MemoryStore
from tis.streaming.stores.redis_clients import RedisClients

OLD, NEW = "o" * 32, "n" * 32


@asynccontextmanager
async def secret_of_a_server(redis: RedisServer, clock: MovedClock) -> AsyncIterator[SharedSecret]:
    clients = RedisClients(redis.url, seconds=1.0, wait_seconds=0.0, max_waits=1)
    secret = SharedSecret(clients, clock)
    await secret.open()
    yield secret
    await clients.close()


@pytest.mark.anyio
async def test_all_servers_have_one_secret_and_take_another_that_the_operator_writes(
    redis_server: RedisServer,
) -> None:
    clock = MovedClock()
    async with secret_of_a_server(redis_server, clock) as one, secret_of_a_server(redis_server, clock) as other:
        [first] = await one.all()
        assert await other.all() == [first] and len(first) >= 32
        redis_server.ask("SET", SECRET_KEY, NEW)
        clock.move(11)
        assert await one.all() == await other.all() == [NEW.encode()]
        redis_server.ask("DEL", SECRET_KEY)  # as when Redis has lost its data
        clock.move(11)
        assert await one.all() == await other.all() == [NEW.encode()]


@pytest.mark.anyio
async def test_without_redis_a_server_keeps_the_secret_that_it_has() -> None:
    clock = MovedClock()
    with running_redis() as redis:
        async with secret_of_a_server(redis, clock) as one, secret_of_a_server(redis, clock) as other:
            before = await one.all()
            redis.kill()
            clock.move(11)
            assert await one.all() == await other.all() == before
            redis.start()  # with nothing in it
            clock.move(11)
            assert await other.all() == await one.all() == before


def test_a_named_secret_is_replaced_without_ending_its_tokens() -> None:
    store = MemoryStore()

    def asked(secrets: str, token: str | None) -> tuple[int, str]:
        """Begins an answer, unless there is a token; reads it with the token; makes another token."""
        settings = settings_with(api_keys="sk-one", read_token_secret=secrets)
        with served(settings, session_store=store) as server, httpx2.Client(base_url=server.url) as http:
            http.post(CHAT, json=said("Halo", stream=True, session_id="s"), headers=bearer("sk-one"))
            made = http.post("/v1/stream/s/read_token", headers=bearer("sk-one")).json()["read_token"]
            return http.get(f"/v1/stream/s?read_token={token or made}").status_code, made

    status, old = asked(OLD, None)
    assert status == 200
    status, new = asked(f"{NEW},{OLD}", old)
    assert status == 200
    assert [asked(NEW, token)[0] for token in (new, old)] == [200, 401]


def test_a_secret_that_can_be_guessed_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"READ_TOKEN_SECRET=\(hidden\): a secret has 32 characters or more"):
        Settings.from_env({"READ_TOKEN_SECRET": f"{NEW},guessed"}, env_file=None)
