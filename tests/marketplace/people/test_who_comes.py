"""`MARKETPLACE_AUTH=auto`: open for direct calls from this machine, and for nobody else."""

import logging
import socket
from collections.abc import Iterator

import httpx2
import pytest
from starlette.requests import Request

from server.marketplace.directness import comes_directly
from tests.marketplace.conftest import SECRET
from tests.marketplace.people.asking import new_email, register_user
from tests.serving import served, settings_with

PRIVATE = "email"


@pytest.fixture(scope="module")
def open_to_all() -> Iterator[httpx2.Client]:
    with (
        served(settings_with(jwt_secret_key=SECRET, marketplace_auth="open")) as running,
        httpx2.Client(base_url=running.url, timeout=30) as client,
    ):
        yield client


def sees_everything(client: httpx2.Client, headers: list[tuple[str, str]]) -> bool:
    user = register_user(client, email=new_email())
    answer = client.get(f"/api/users/{user['id']}", headers=headers)
    assert answer.status_code == 200
    return bool(answer.json()[PRIVATE])


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("Host", "localhost")],
        [("Host", "LOCALHOST:3000")],
        [("Host", "127.0.0.1:3000")],
        [("Host", "[::1]:3000")],
        [("Origin", "http://localhost:5173")],
        [("Origin", "http://127.0.0.1")],
        [("Origin", "https://[::1]:8443")],
        [("Referer", "http://localhost/docs")],
    ],
    ids=str,
)
def test_calls_from_this_machine_are_open(laptop: httpx2.Client, headers: list[tuple[str, str]]) -> None:
    assert sees_everything(laptop, headers)


@pytest.mark.parametrize(
    "headers",
    [
        [("Host", "market.example.com")],
        [("Host", "localhost.example.com")],
        [("Host", "localhost:3000@example.com")],
        [("Host", "192.168.1.7:3000")],
        [("Host", "")],
        [("Origin", "https://example.com")],
        [("Origin", "http://localhost.example.com")],
        [("Origin", "http://localhost@example.com")],
        [("Origin", "null")],
        [("Forwarded", "for=192.0.2.1")],
        [("X-Forwarded-For", "127.0.0.1")],
        [("X-Forwarded-Proto", "https")],
        [("X-Forwarded-Host", "localhost")],
        [("X-Real-IP", "127.0.0.1")],
        [("Via", "1.1 proxy")],
        [("CF-Connecting-IP", "192.0.2.1")],
        [("Fastly-Client-IP", "192.0.2.1")],
        [("X-Original-Forwarded-For", "192.0.2.1")],
    ],
    ids=str,
)
def test_whatever_came_through_somebody_else_is_not(laptop: httpx2.Client, headers: list[tuple[str, str]]) -> None:
    assert not sees_everything(laptop, headers)


def test_a_proxy_on_this_machine_opens_nothing(laptop: httpx2.Client) -> None:
    """uvicorn believes a proxy on this machine about whom it speaks for; we believe that there is one."""
    refused = laptop.post(
        "/api/suppliers/1/members", json={"user_id": 1}, headers={"X-Forwarded-For": "127.0.0.1", "Host": "localhost"}
    )
    assert refused.status_code in (401, 404)


@pytest.mark.parametrize(
    ("peer", "is_direct"),
    [
        (("127.0.0.1", 5000), True),
        (("127.8.8.8", 5000), True),
        (("::1", 5000), True),
        (("::ffff:127.0.0.1", 5000), True),
        (("::ffff:192.0.2.1", 5000), False),
        (("192.168.1.7", 5000), False),
        (("0.0.0.0", 5000), False),
        (("localhost", 5000), False),
        (None, False),
    ],
)
def test_the_peer_is_this_machine(peer: tuple[str, int] | None, is_direct: bool) -> None:
    scope = {"type": "http", "client": peer, "headers": [(b"host", b"localhost:3000")]}
    assert comes_directly(Request(scope)) is is_direct


def test_of_two_hosts_the_foreign_one_decides() -> None:
    headers = [(b"host", b"localhost"), (b"host", b"market.example.com")]
    assert not comes_directly(Request({"type": "http", "client": ("127.0.0.1", 1), "headers": headers}))
    assert not comes_directly(Request({"type": "http", "client": ("127.0.0.1", 1), "headers": []}))


def test_a_proxy_that_rewrites_the_host_and_adds_nothing_opens_nothing(laptop: httpx2.Client) -> None:
    """`proxy_pass http://127.0.0.1:3000;` of nginx, and nothing else."""
    user = register_user(laptop, email=new_email())
    asked = f"GET /api/users/{user['id']} HTTP/1.0\r\nHost: 127.0.0.1:3000\r\nConnection: close\r\n\r\n"
    with socket.create_connection((laptop.base_url.host, laptop.base_url.port), timeout=30) as connection:
        connection.sendall(asked.encode())
        answer = connection.makefile("rb").read().decode()
    assert " 200 OK" in answer and f'"id":{user["id"]}' in answer
    assert user["email"] not in answer


def test_open_is_open_whoever_comes(open_to_all: httpx2.Client) -> None:
    assert sees_everything(open_to_all, [("X-Forwarded-For", "192.0.2.1"), ("Host", "market.example.com")])


def test_required_is_required_on_this_machine_too(internet: httpx2.Client) -> None:
    assert not sees_everything(internet, [])


@pytest.mark.parametrize(
    ("auth", "level", "said"), [("open", logging.WARNING, "EVERYTHING"), ("auto", logging.WARNING, "need no token")]
)
def test_the_log_says_who_may_write(auth: str, level: int, said: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "tis"), served(settings_with(marketplace_auth=auth, log_level="info")):
        pass
    assert [line for line in caplog.records if said in line.getMessage() and line.levelno == level]
