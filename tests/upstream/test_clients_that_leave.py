"""Who leaves and cannot come back leaves nothing running: the connection to the upstream is closed, in every API."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from scripts.demo_whisper.sentences import all_spoken
from tests.openai_api.test_chat import CHAT
from tests.serving import Served, served, settings_with
from tests.test_status import until
from tests.upstream.gateway import HEAD, SECONDS, ScriptedUpstream, Send, event, scripted

MESSAGES = [{"role": "user", "content": "Halo"}]
TALKS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": (CHAT, {"model": "far", "messages": MESSAGES}),
    "completion": ("/v1/completions", {"model": "far", "prompt": "Halo"}),
    "completions": ("/v1/completions", {"model": "far", "prompt": ["one"], "n": 2}),
    "response": ("/v1/responses", {"model": "far", "input": "Halo", "store": False}),
    "message": ("/v1/messages", {"model": "far", "max_tokens": 50, "messages": MESSAGES}),
    "ollama chat": ("/ollama/api/chat", {"model": "far", "messages": MESSAGES}),
    "ollama generate": ("/ollama/api/generate", {"model": "far", "prompt": "Halo"}),
}
WHOLE: dict[str, tuple[str, dict[str, Any]]] = {
    "embedding": ("/v1/embeddings", {"model": "far-embedding", "input": "Halo"}),
    "ollama embed": ("/ollama/api/embed", {"model": "far-embedding", "input": "Halo"}),
    "rerank": ("/v1/rerank", {"model": "far-reranker", "query": "a", "documents": ["b"]}),
}


JSON_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"


def begin(send: Send) -> None:
    """What a chat and a completion begin with, each in its own form."""
    send(HEAD)
    send(event({"choices": [{"index": 0, "delta": {"content": "Ha"}, "text": "Ha"}]}))


def goes_on(sign_of_life: bytes) -> Callable[[Send], None]:
    """Until its client has gone."""

    def go_on(send: Send) -> None:
        pause = threading.Event()
        while True:
            send(sign_of_life)
            pause.wait(0.02)

    return go_on


@dataclass
class LeftServer:
    server: Served
    talking: ScriptedUpstream
    whole: ScriptedUpstream

    @property
    def num_running(self) -> int:
        return sum(status.num_running for status in self.server.app.state.engine.statuses)


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LeftServer]:
    path = tmp_path_factory.mktemp("leave") / "models.yaml"
    with (
        scripted(begin, goes_on(b": ping\n\n")) as talking,
        scripted(JSON_HEAD, goes_on(b" ")) as whole,
    ):
        far = {
            "far": (talking, "chat"),
            "far-embedding": (whole, "embedding"),
            "far-reranker": (whole, "rerank"),
            "far-ears": (whole, "transcription"),
        }
        shared = {"upstream_kind": "openai", "upstream_seconds": SECONDS}
        entries = {name: {**shared, "upstream": one.url, "task": task} for name, (one, task) in far.items()}
        path.write_text(json.dumps({"models": entries}))
        settings = settings_with(
            model_config_path=str(path),
            model_repo_id="far",
            models="far-embedding,far-reranker,far-ears",
            anonymous_grace_seconds=0,
        )
        with served(settings) as server:
            yield LeftServer(server, talking, whole)


def connected(server: Served, path: str, data: bytes, content_type: str) -> socket.socket:
    address = urlsplit(server.url)
    client = socket.create_connection((str(address.hostname), address.port or 0), timeout=30)
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {content_type}\r\nContent-Length: {len(data)}"
    client.sendall(f"{head}\r\n\r\n".encode() + data)
    return client


def leave(
    front: LeftServer, upstream: ScriptedUpstream, path: str, body: dict[str, Any], *, reads: bool = False
) -> None:
    leave_sent(front, upstream, path, json.dumps(body).encode(), "application/json", reads=reads)


def leave_sent(
    front: LeftServer, upstream: ScriptedUpstream, path: str, data: bytes, content_type: str, *, reads: bool = False
) -> None:
    num_asked, num_closed = len(upstream.bodies), upstream.num_closed
    with connected(front.server, path, data, content_type) as client:
        until(lambda: len(upstream.bodies) > num_asked)
        if reads:
            assert client.recv(1000).startswith(b"HTTP/1.1 200")
        assert upstream.num_closed == num_closed
    until(lambda: upstream.num_closed > num_closed)
    until(lambda: front.num_running == 0)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("name", TALKS)
def test_an_answer_without_a_session_ends_at_its_upstream(name: str, stream: bool, front: LeftServer) -> None:
    path, body = TALKS[name]
    leave(front, front.talking, path, {**body, "stream": stream}, reads=stream)


@pytest.mark.parametrize("name", WHOLE)
def test_vectors_and_scores_end_at_their_upstream(name: str, front: LeftServer) -> None:
    leave(front, front.whole, *WHOLE[name])


@pytest.mark.parametrize(("path", "stream"), [("transcriptions", "true"), ("transcriptions", ""), ("translations", "")])
def test_a_sound_that_nobody_waits_for_is_heard_no_further(path: str, stream: str, front: LeftServer) -> None:
    fields = {"model": "far-ears", **({"language": "id"} if path == "transcriptions" else {})}
    fields |= {"stream": stream} if stream else {}
    request = httpx2.Request(
        "POST", front.server.url, data=fields, files={"file": ("a.ogg", all_spoken()[0].sentence.path.read_bytes())}
    )
    leave_sent(front, front.whole, f"/v1/audio/{path}", request.read(), request.headers["Content-Type"])
