"""A small client of an OpenAI server for the commands of the terminal: requests, and streams of events."""

import http.client
import json
import os
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tis.settings import Settings

_MAX_ERROR_CHARS = 500
_MAX_LINE_BYTES = 16 * 2**20
_MAX_PAGE_BYTES = 16 * 2**20
CONNECTION_ERRORS = (OSError, http.client.HTTPException)


class ApiRefused(Exception):
    """The server answered with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class AddressError(ValueError):
    """A URL that no server can have."""


@dataclass(frozen=True, slots=True)
class StreamEvent:
    id: str
    data: str


class EventStream:
    """An open answer, and the id of the newest event that came whole."""

    def __init__(self, response: http.client.HTTPResponse, connection: http.client.HTTPConnection) -> None:
        self._response, self._connection = response, connection
        self.last_id = ""
        self.session_id = response.headers.get("X-Session-Id", "")

    def __iter__(self) -> Iterator[StreamEvent]:
        """Ends after `[DONE]`. Raises one of CONNECTION_ERRORS if the connection ends before that."""
        event_id, data = "", []
        while raw := self._response.readline(_MAX_LINE_BYTES):
            line = raw.decode(errors="replace").rstrip("\r\n")
            name, _, value = line.partition(":")
            if name == "id":
                event_id = value.strip()
            elif name == "data":
                data.append(value.removeprefix(" "))
            elif not line and data:
                text, data = "\n".join(data), []
                self.last_id = event_id or self.last_id
                if text == "[DONE]":
                    return
                yield StreamEvent(event_id, text)
        raise ConnectionError("the stream ended before its end")

    def close(self) -> None:
        self._connection.close()


@dataclass(frozen=True, slots=True)
class ApiClient:
    url: str  # without the /v1
    key: str | None = None
    timeout: float = 120.0

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise AddressError(f"{self.url!r} is no URL of a server: write it as http://127.0.0.1:3000")

    def get_text(self, path: str) -> str:
        return self._whole("GET", path, None).decode(errors="replace")

    def get(self, path: str) -> Any:
        return json.loads(self._whole("GET", path, None))

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        return json.loads(self._whole("POST", path, body))

    def stream(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, last_event_id: str = ""
    ) -> EventStream:
        connection = self._connect()
        try:
            response = self._ask(connection, method, path, body, {"Last-Event-ID": last_event_id})
        except BaseException:
            connection.close()
            raise
        return EventStream(response, connection)

    def _whole(self, method: str, path: str, body: Mapping[str, Any] | None) -> bytes:
        connection = self._connect()
        try:
            return self._ask(connection, method, path, body, {}).read(_MAX_PAGE_BYTES)
        finally:
            connection.close()

    def _ask(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        headers: Mapping[str, str],
    ) -> http.client.HTTPResponse:
        sent = {name: value for name, value in headers.items() if value}
        if self.key:
            sent["Authorization"] = f"Bearer {self.key}"
        if body is not None:
            sent["Content-Type"] = "application/json"
        data = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        connection.request(method, urlsplit(self.url).path.rstrip("/") + path, data, sent)
        response = connection.getresponse()
        if response.status >= 400:
            raise ApiRefused(response.status, _message_of(response.read(_MAX_PAGE_BYTES)))
        return response

    def _connect(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        assert parts.hostname
        if parts.scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=self.timeout, context=context)
        return http.client.HTTPConnection(parts.hostname, parts.port, timeout=self.timeout)


def client_of(settings: Settings, url: str | None, key: str | None, timeout: float = 120.0) -> ApiClient:
    """Without a URL, the server that these settings describe, with its first key."""
    own = [one.get_secret_value() for one in settings.api_keys]
    if url is None:
        host = "127.0.0.1" if settings.host in ("0.0.0.0", "::") else settings.host
        address = f"[{host}]" if ":" in host else host
        return ApiClient(f"http://{address}:{settings.port}", key or next(iter(own), None), timeout)
    address = url.rstrip("/").removesuffix("/v1")
    return ApiClient(address, key or os.environ.get("OPENAI_API_KEY") or next(iter(own), None), timeout)


def _message_of(body: bytes) -> str:
    try:
        given = json.loads(body)
        error = given.get("error", given.get("detail", given))
        text = str(error.get("message", error) if isinstance(error, dict) else error)
    except (ValueError, AttributeError):
        text = body.decode(errors="replace")
    return printable(text)[:_MAX_ERROR_CHARS]


def printable(text: str) -> str:
    """Without what a terminal would obey."""
    return "".join(one for one in text if one.isprintable() or one in "\n\t")
