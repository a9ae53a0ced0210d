"""The addresses that REDIS_URL may have: a password, TLS, and Sentinels that know which Redis is the master."""

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.redis_server import RedisServer, running_redis
from tests.serving import free_port, settings_with, until_listening
from tests.streaming.stores.harness import FAST_REDIS, StoreHarness
from tis.arguments.stores import session_store_of
from tis.setting_types import SettingsError
from tis.settings import Settings
from tis.streaming.stores.memory import MemoryStore
from tis.streaming.stores.redis import RedisStore
from tis.streaming.stores.redis_clients import RedisClients, url_without_password
from tis.streaming.stores.sqlite import SqliteStore
from tis.streaming.stores.store import StoreRefused

pytestmark = [pytest.mark.anyio, pytest.mark.long]
PASSWORD = "p@ss:word"
WRITTEN = "p%40ss%3Aword"


async def works(url: str) -> None:
    harness = StoreHarness(RedisStore(url, timeouts=FAST_REDIS))
    await harness.open()
    harness.end_turn(harness.begin_turn())
    harness.append(b"a")
    await harness.store.flush()
    assert (harness.store.durability, harness.times_degraded) == ("durable", 0)
    await harness.store.close()


@pytest.fixture
def locked() -> Iterator[RedisServer]:
    with running_redis("--requirepass", PASSWORD, password=PASSWORD) as running:
        yield running


async def test_a_password_and_a_database(locked: RedisServer) -> None:
    await works(f"redis://:{WRITTEN}@127.0.0.1:{locked.port}/3")


@pytest.fixture
def sentinel_port(locked: RedisServer, tmp_path: Path) -> Iterator[int]:
    port = free_port()
    config = tmp_path / "sentinel.conf"
    config.write_text(
        f"port {port}\nbind 127.0.0.1\ndir {tmp_path}\n"
        f"sentinel monitor sessions 127.0.0.1 {locked.port} 1\nsentinel auth-pass sessions {PASSWORD}\n"
    )
    with (tmp_path / "log").open("w") as log:
        sentinel = subprocess.Popen(["redis-server", str(config), "--sentinel"], stdout=log, stderr=log)
    until_listening(port)
    yield port
    sentinel.kill()
    sentinel.wait()


async def test_sentinels_say_where_the_master_is(sentinel_port: int) -> None:
    await works(f"redis+sentinel://:{WRITTEN}@127.0.0.1:1,127.0.0.1:{sentinel_port}/sessions/2")


async def test_behind_sentinels_too_whoever_finds_all_connections_in_use_waits_for_one(
    sentinel_port: int, locked: RedisServer
) -> None:
    url = f"redis+sentinel://:{WRITTEN}@127.0.0.1:{sentinel_port}/sessions/2"
    clients = RedisClients(url, seconds=20, wait_seconds=1, max_waits=3)
    try:
        news = await asyncio.gather(*(clients.waits.xread({"nothing": "$"}, block=10) for _ in range(120)))
        assert len(news) == 120 and not any(news)
        assert locked.ask("INFO", "clients")["connected_clients"] < 20
    finally:
        await clients.close()


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return certificate


async def test_tls_with_a_certificate_that_is_checked(certificate: Path) -> None:
    port, key = free_port(), certificate.with_name("key.pem")
    options = ["--tls-port", str(port), "--tls-cert-file", str(certificate), "--tls-key-file", str(key)]
    with running_redis(*options, "--tls-auth-clients", "no"):
        await works(f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={certificate}")
        with pytest.raises(StoreRefused, match="certificate verify failed"):
            await works(f"rediss://127.0.0.1:{port}/0")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://:secret@host:6379/0", "redis://host:6379/0"),
        ("rediss://me:secret@host/1?ssl_ca_certs=/a", "rediss://me@host/1"),
        ("redis+sentinel://me:secret@a:1,b:2/service/0", "redis+sentinel://me@a:1,b:2/service/0"),
    ],
)
def test_an_address_is_shown_without_its_password(url: str, shown: str) -> None:
    assert url_without_password(url) == shown


@pytest.mark.parametrize("url", ["redis://:12/secret@host/0", "redis://:/secret@host/0", "redis://me:12?secret@host"])
def test_a_password_that_would_be_read_as_a_path_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(SettingsError, match="REDIS_URL cannot be read") as refused:
        session_store_of(settings_with(session_store="redis", redis_url=url))
    assert "secret" not in str(refused.value)


def test_the_settings_choose_the_store(tmp_path: Path) -> None:
    path = str(tmp_path / "sessions.db")
    assert isinstance(session_store_of(settings_with()), MemoryStore)
    assert isinstance(session_store_of(settings_with(persist_sessions=True, sessions_db_path=path)), SqliteStore)
    assert isinstance(session_store_of(settings_with(session_store="sqlite", sessions_db_path=path)), SqliteStore)
    assert isinstance(session_store_of(settings_with(session_store="memory", persist_sessions=True)), MemoryStore)
    shared = settings_with(session_store="redis", redis_url="redis://127.0.0.1/0", persist_sessions=True)
    assert isinstance(session_store_of(shared), RedisStore)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"SESSION_STORE": "redis"}, "REDIS_URL must be set"),
        ({"SESSION_STORE": "redis", "REDIS_URL": "http://secret-word@host"}, "REDIS_URL must begin with"),
    ],
)
def test_what_cannot_be_an_address_is_refused_without_showing_it(given: dict[str, str], told: str) -> None:
    with pytest.raises(Exception, match=told) as refused:
        Settings.from_env(given, env_file=None)
    assert "secret-word" not in str(refused.value)
