"""A hostile request and the statuses it may get; `request` puts the bytes together, as no HTTP client would."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

EVE, ADA = "key-of-eve-7d1f", "key-of-ada-93c2"  # the table comes from Eve; Ada's streams run beside it
NARROW, EXPIRED = "key-of-narrow-51ab", "key-of-yore-0c77"  # one model and a call a minute; and one of the past
CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
JSON = {"Content-Type": "application/json"}
HELLO: dict[str, Any] = {"role": "user", "content": "Halo"}
_OF_OLLAMA = [f"/api/{name}" for name in ("chat", "generate", "tags", "show", "ps", "version", "embed", "pull")]
CLOSED = 0  # for a connection that is closed without an answer

_WITH_TOKENS = ("/api", "/mcp")  # all else takes the key

Content = bytes | Callable[[], bytes]


@dataclass(frozen=True)
class Row:
    name: str
    statuses: tuple[int, ...]
    method: str = "GET"
    path: str = "/live"
    body: Any = None  # bytes as they are, a callable that makes them, else JSON
    headers: dict[str, str] = field(default_factory=dict)
    raw: Content | None = None  # instead of all of these
    account: str = ""  # of the marketplace: its name among `Names.tokens`
    pause_at: int = 0  # the client sends so many bytes, and the rest when an answer or nothing came
    leaves_after: int = 0  # bytes that the client reads before it is gone

    @property
    def is_ollama(self) -> bool:
        path = self.path.partition("?")[0]
        return self.raw is None and (path.startswith("/ollama/") or path in _OF_OLLAMA or "/api/blobs/" in path)

    @property
    def is_v1(self) -> bool:
        return self.raw is None and self.path.startswith("/v1/")


@dataclass(frozen=True)
class Names:
    """What exists on the server: `$product` in a path is its id."""

    values: dict[str, str]
    tokens: dict[str, str]

    def fill(self, text: str) -> str:
        for name, value in self.values.items():
            text = text.replace(f"${name}", value)
        return text


def request(row: Row, names: Names, host: str) -> bytes:
    if row.raw is not None:
        data = row.raw() if callable(row.raw) else row.raw
        return data.replace(b"$host", host.encode()).replace(b"$key", EVE.encode())
    if row.body is None:
        body = b""
    elif isinstance(row.body, bytes):
        body = row.body
    else:
        body = row.body() if callable(row.body) else names.fill(json_bytes(row.body).decode()).encode()
    headers = {"Host": host}
    if (
        len(body) < 65536
    ):  # a server that closes while the body still comes resets the connection, and the answer is lost
        headers["Connection"] = "close"
    if row.is_ollama or not row.path.startswith(_WITH_TOKENS):
        headers["Authorization"] = f"Bearer {EVE}"
    elif row.account:
        headers["Authorization"] = f"Bearer {names.tokens[row.account]}"
    if row.body is not None:
        headers |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
    headers |= {name: names.fill(value) for name, value in row.headers.items()}
    lines = [f"{name}: {value}" for name, value in headers.items() if value != "-"]
    first = f"{row.method} {names.fill(row.path)} HTTP/1.1\r\n".encode()
    return first + "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def json_bytes(value: Any) -> bytes:
    """With half surrogates and NaN, as json.dumps has them."""
    return json.dumps(value, separators=(",", ":")).encode()


def codes(statuses: int | tuple[int, ...]) -> tuple[int, ...]:
    return (statuses,) if isinstance(statuses, int) else statuses


def chat(name: str, statuses: int | tuple[int, ...], **fields: Any) -> Row:
    body = {"model": "demo", "messages": [HELLO], "max_tokens": 2, **fields}
    return Row(f"chat: {name}", codes(statuses), "POST", CHAT, body)


def response(name: str, statuses: int | tuple[int, ...], **fields: Any) -> Row:
    given = {"model": "demo", "input": "Halo", "max_output_tokens": 16, **fields}
    body = {name: value for name, value in given.items() if value is not ...}
    return Row(f"response: {name}", codes(statuses), "POST", RESPONSES, body)


def saying(*parts: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": list(parts)}]


def post(name: str, statuses: int | tuple[int, ...], path: str, body: Any, **more: Any) -> Row:
    return Row(f"POST {path}: {name}", codes(statuses), "POST", path, body, **more)


def get(name: str, statuses: int | tuple[int, ...], path: str, **more: Any) -> Row:
    return Row(f"GET {path[:60]}: {name}", codes(statuses), "GET", path, **more)


def escaped(text: str) -> str:
    return quote(text, safe="")
