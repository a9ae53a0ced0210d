"""An answer of an upstream that nobody wants any more: before it has begun, in the queue, and while it grows."""

import asyncio
import json
import socket
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.test_status import until
from tests.upstream.gateway import HEAD, Send, event, gateway, scripted, write_catalogue
from tis.engine.models.catalogue import read_catalogue
from tis.engine.prompt import ChatPrompt
from tis.upstream.upstream_engine import UpstreamEngine, UpstreamLimits


@pytest.mark.anyio
async def test_it_ends_and_gives_its_place_back(tmp_path: Path) -> None:
    is_over = threading.Event()

    def say_nothing(send: Send) -> None:
        is_over.wait(30)

    with scripted(say_nothing) as upstream:
        path = write_catalogue(tmp_path, [upstream.url], upstream_kind="openai")
        engine = UpstreamEngine(read_catalogue(path), {}, UpstreamLimits(max_running=1))
        await engine.open()
        try:
            for _ in range(3):
                prepared = await engine.prepare("far", ChatPrompt([{"role": "user", "content": "Halo"}]), {})
                answer = engine.submit(prepared)
                answer.cancel()
                async with asyncio.timeout(10):
                    assert [piece.finish async for piece in answer] == ["cancelled"]
            assert engine.statuses[0].num_running == 0
        finally:
            is_over.set()
            await engine.close()


HALO = [{"role": "user", "content": "Halo"}]
ASKED: dict[str, tuple[str, dict[str, object]]] = {
    "chat": ("/v1/chat/completions", {"messages": HALO}),
    "completion": ("/v1/completions", {"prompt": "Halo"}),
    "completions": ("/v1/completions", {"prompt": ["Halo", "Hai"]}),
    "response": ("/v1/responses", {"input": "Halo", "store": False}),
    "message": ("/v1/messages", {"messages": HALO, "max_tokens": 2000}),
    "Ollama": ("/ollama/api/chat", {"messages": HALO}),
}


@pytest.mark.parametrize("is_streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("dialect", ASKED)
def test_a_client_that_leaves_ends_the_answer_of_the_upstream_and_its_wait(
    dialect: str, is_streamed: bool, tmp_path: Path
) -> None:
    path, body = ASKED[dialect]

    def write_for_ever(send: Send) -> None:
        pause = threading.Event()
        while True:
            text = {"text": "a"} if "/completions" == path[3:] else {"delta": {"content": "a"}}
            send(event({"choices": [{"index": 0, **text}]}))
            pause.wait(0.05)

    settings = {"anonymous_grace_seconds": 0}
    with (
        scripted(HEAD, write_for_ever) as upstream,
        gateway(
            tmp_path, upstream.url, upstream_kind="openai", limits={"max_batch_size": 1}, settings=settings
        ) as server,
    ):
        [model] = server.app.state.engine.upstream._models.values()
        asked = {"model": "far", **body, "stream": is_streamed}
        num_prompts = 2 if dialect == "completions" else 1
        first = Leaving(f"{server.url}{path}", asked)
        until(lambda: (model.status.num_running, model.status.num_waiting) == (1, num_prompts - 1))
        second = Leaving(f"{server.url}{path}", asked)
        until(lambda: model.status.num_waiting == 2 * num_prompts - 1)
        second.leave()
        until(lambda: model.status.num_waiting == num_prompts - 1)
        first.leave()
        until(lambda: model.status.num_running == 0 and upstream.num_closed >= 1)


class Leaving:
    """A client that goes away in the middle."""

    def __init__(self, url: str, body: dict[str, object]) -> None:
        address = urlsplit(url)
        data = json.dumps(body).encode()
        self._socket = socket.create_connection((address.hostname, address.port or 80))
        head = f"POST {address.path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
        self._socket.sendall(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)

    def leave(self) -> None:
        self._socket.close()
