"""A key that somebody has stolen is revoked: what it began ends, and what it holds open does not get through."""

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.http.keys import bearer, entry, write_key_file
from tests.openai_api.test_chat import CHAT, said
from tests.serving import Served, served, settings_with
from tests.test_status import until
from tis.http.api_keys import ANONYMOUS, ApiKey, ApiKeys, digest_of
from tis.http.errors import InvalidApiKey
from tis.http.file_watch import FileWatch

HONEST = entry("honest", "sk-honest")
LONG = "x" * 2000  # a hundred seconds of the model below


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_key_file(tmp_path / "keys.json", HONEST, entry("stolen", "sk-stolen"))


@pytest.fixture
def server(path: Path) -> Iterator[Served]:
    with served(settings_with(api_keys_file=str(path), model_repo_id="echo?tokens_per_second=20")) as running:
        yield running


def running(server: Served, key: str) -> int:
    owner = server.app.state.api_keys.find(key).owner
    return sum(one.is_running for one in server.app.state.sessions if one.owner == owner)


def revoke(server: Served, path: Path) -> None:
    write_key_file(path, HONEST)
    until(lambda: httpx2.get(f"{server.url}/v1/usage", headers=bearer("sk-stolen"), timeout=30).status_code == 401)


def test_running_answers_of_a_revoked_key_are_cancelled_and_those_of_others_go_on(server: Served, path: Path) -> None:
    thief, honest = bearer("sk-stolen"), bearer("sk-honest")
    background = {"model": "echo", "input": LONG, "background": True}
    for headers in (thief, honest):
        assert (
            httpx2.post(f"{server.url}/v1/responses", json=background, headers=headers, timeout=30).status_code == 200
        )
    body = said(LONG, stream=True, session_id="s")
    with httpx2.stream("POST", server.url + CHAT, json=body, headers=thief, timeout=30) as answer:
        lines = answer.iter_lines()
        next(lines)
        token = httpx2.post(f"{server.url}/v1/stream/s/read_token", headers=thief, timeout=30).json()["read_token"]
        reading = f"{server.url}/v1/stream/s?read_token={token}"
        with httpx2.stream("GET", reading, timeout=30) as by_token:
            assert by_token.status_code == 200
        mine = digest_of("sk-stolen").hex()
        revoke(server, path)
        assert "data: [DONE]" in list(lines)  # long before its end
    until(lambda: not any(one.is_running for one in server.app.state.sessions if one.owner == mine))
    assert running(server, "sk-honest") == 1
    assert httpx2.get(reading, timeout=30).status_code == 401


def test_an_upload_that_was_open_when_its_key_was_revoked_is_refused(server: Served, path: Path) -> None:
    body = b'{"model": "echo", "messages": [{"role": "user", "content": "Halo"}]}'
    head = (
        f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer sk-stolen\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", urlsplit(server.url).port or 0), timeout=30) as client:
        client.sendall(head.encode() + body[:-1])
        until(lambda: server.app.state.admission.num_in("receiving") == 1)
        revoke(server, path)
        client.sendall(body[-1:])
        answer = b"".join(iter(lambda: client.recv(65_536), b""))
    assert answer.startswith(b"HTTP/1.1 401 ") and b'"code":"invalid_api_key"' in answer
    assert b"www-authenticate: Bearer" in answer and b"has been revoked" in answer


def test_an_expired_key_is_refused_but_not_revoked() -> None:
    now = 100.0
    key = ApiKey("a", digest_of("sk-a"), expires_at=101.0)
    keys = ApiKeys([], file_keys=[key], clock=lambda: now)
    keys.require_valid(key)
    now = 102.0
    with pytest.raises(InvalidApiKey, match="expired"):
        keys.require_valid(key)
    assert not keys.is_revoked(key.owner)
    keys.replace_file_keys([])
    assert keys.is_revoked(key.owner)


def test_who_is_no_key_cannot_be_revoked() -> None:
    keys = ApiKeys(["sk-a"])
    assert keys.is_revoked(digest_of("sk-of-an-earlier-start").hex())
    assert not any(map(keys.is_revoked, [digest_of("sk-a").hex(), ANONYMOUS, "marketplace user 7"]))
    assert not ApiKeys([]).is_revoked(digest_of("sk-a").hex())


@pytest.mark.anyio
async def test_a_file_that_could_not_be_opened_is_tried_again_and_a_new_mode_is_a_change(tmp_path: Path) -> None:
    """Else a `chown` after a revocation by another user would change nothing, nor would a descriptor that gets free."""
    path = tmp_path / "keys.yaml"
    path.write_text("keys: []")
    answers = iter([False, False, True, True])
    was_read: asyncio.Queue[bool] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def reload() -> bool:
        answer = next(answers)
        loop.call_soon_threadsafe(was_read.put_nowait, answer)
        return answer

    watch = FileWatch([path], reload, look_seconds=0.01)
    watch.open()
    try:
        async with asyncio.timeout(10):
            assert [await was_read.get() for _ in range(3)] == [False, False, True]
            await asyncio.sleep(0.1)
            assert was_read.empty()
            path.chmod(0o640)
            assert await was_read.get()
    finally:
        watch.close()
