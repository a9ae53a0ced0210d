"""A client that opens a stream and never reads it is cut; one that reads slowly is not."""

import asyncio
import json
import socket
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.openai_api.test_chat import CHAT, said
from tests.serving import served, settings_with
from tests.test_status import until
from tis.http.slow_readers import becomes_writable
from tis.observability.metrics import REGISTRY

# More than the kernel takes off the server's hands.
LONG = said("a long tale ", session_id="long", ignore_eos=True, max_tokens=20_000, stream=True, logprobs=True)


def num_cut() -> float:
    return REGISTRY.get_sample_value("tis_slow_readers_cut_total") or 0.0


def starving(url: str) -> socket.socket:
    address = urlsplit(url)
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect((address.hostname, address.port))
    body = json.dumps(LONG).encode()
    head = f"POST {CHAT} HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Type: application/json\r\n"
    client.sendall(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    return client


def test_a_client_that_never_reads_is_cut_and_its_session_is_whole() -> None:
    before = num_cut()
    with served(settings_with(slow_reader_seconds=0.2)) as server, starving(server.url):
        until(lambda: num_cut() > before)
        [session] = list(server.app.state.sessions)
        until(lambda: not session.recording.readers)
        assert '"finish_reason":"length"' in httpx2.post(server.url + CHAT, json=LONG, timeout=60).text[-1000:]


@pytest.mark.anyio
async def test_a_client_that_reads_a_little_now_and_then_is_not_cut() -> None:
    left = iter([9, 8, 8, 3, 3, 1, 1, 1])
    assert not await becomes_writable(asyncio.Event().wait, lambda: next(left), 0.001)
    assert list(left) == []


@pytest.mark.anyio
async def test_a_client_that_catches_up_is_not_cut() -> None:
    writable = asyncio.Event()
    writable.set()
    assert await becomes_writable(writable.wait, lambda: 9, 60)
