"""A server of ours in front of upstreams, and an upstream that sends what a test wants."""

import json
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.serving import Served, served, settings_with

SECONDS = {"connect": 10, "first_token": 30, "next_token": 20, "answer": 60, "probe": 0.2}


def write_catalogue(folder: Path, urls: Sequence[str], **fields: Any) -> Path:
    path = folder / "models.yaml"
    entry = {"upstream": list(urls), "upstream_kind": "tis", "upstream_seconds": SECONDS, **fields}
    path.write_text(json.dumps({"models": {"far": entry}}))  # JSON is YAML
    return path


@contextmanager
def gateway(folder: Path, *urls: str, settings: dict[str, Any] | None = None, **fields: Any) -> Iterator[Served]:
    """`fields`: of the catalogue entry of its only model, which is called `far`."""
    path = write_catalogue(folder, urls, **fields)
    with served(settings_with(model_config_path=str(path), model_repo_id="far", **(settings or {}))) as running:
        yield running


@contextmanager
def client_of(server: Served) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=server.url, timeout=30) as client:
        yield client


Send = Callable[[bytes], None]
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
_MODELS = b'{"object": "list", "data": [{"id": "far", "max_model_len": 4096}]}'


class ScriptedUpstream:
    """Lists one model, and answers each chat with what the script sends; then it closes the connection."""

    def __init__(self, script: Callable[[Send], None], models: Callable[[Send], None]) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[str] = []
        self.num_closed = 0  # connections that its client closed while the script wrote
        self._script, self._models = script, models
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=[connection], daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as received:
            head = b"".join(iter(lambda: received.readline(), b"\r\n")).decode()
            if not head.startswith("POST"):
                self._send(self._models, connection)
                return
            if "/tokenize" in head.splitlines()[0]:
                connection.sendall(b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
                return
            [length] = [line.split(":")[1] for line in head.splitlines() if line.lower().startswith("content-length")]
            data = received.read(int(length))
            self.bodies.append(json.loads(data) if data.startswith(b"{") else {})  # the other ones are forms
            self.headers.append(head)
            self._send(self._script, connection)

    def _send(self, script: Callable[[Send], None], connection: socket.socket) -> None:
        try:
            script(connection.sendall)
        except OSError:
            self.num_closed += 1


def list_models(send: Send) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
    send(head + b"Content-Length: %d\r\n\r\n%b" % (len(_MODELS), _MODELS))


@contextmanager
def scripted(
    *sent: bytes | Callable[[Send], None], models: Callable[[Send], None] = list_models
) -> Iterator[ScriptedUpstream]:
    def script(send: Send) -> None:
        for one in sent:
            if isinstance(one, bytes):
                send(one)
            else:
                one(send)

    upstream = ScriptedUpstream(script, models)
    try:
        yield upstream
    finally:
        upstream.close()


def chunk(delta: dict[str, Any] | None = None, *, finish: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return event({"object": "chat.completion.chunk", "choices": [choice], **more})


def event(data: Any) -> bytes:
    return b"data: %b\n\n" % json.dumps(data).encode()


DONE = b"data: [DONE]\n\n"
