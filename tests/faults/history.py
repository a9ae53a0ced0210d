"""A client of the streams that writes down what it sees, and that can leave, starve or come back at any point.

Speaks HTTP over a bare socket: light enough for 500 in one process, and its receive buffer and its end can be chosen.
"""

import asyncio
import json
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

import h11

from tests.openai_api.test_chat import CHAT

DONE = "[DONE]"
_RECONNECT_SECONDS = 0.05
_RUDELY = struct.pack("ii", 1, 0)  # SO_LINGER of no time: the peer gets a reset instead of an end


@dataclass(frozen=True, slots=True)
class Seen:
    at: float
    session: str | None  # None, as the index: the block had no id
    index: int | None
    payload: str

    @property
    def is_error(self) -> bool:
        return self.payload.startswith('{"error":')

    @property
    def is_terminal(self) -> bool:
        return self.payload == DONE or self.is_error

    @property
    def chunk(self) -> Any:
        return json.loads(self.payload)


@dataclass(slots=True)
class Connection:
    """What one reader saw between connecting and the end of the connection, whoever ended it."""

    session: str
    turn: int
    after: int | None  # the cursor that was sent
    status: int = 0  # 0: nobody answered
    headers: Mapping[str, str] = field(default_factory=dict)
    blocks: list[Seen] = field(default_factory=list)
    body: bytes = b""  # of an answer that is no stream
    # whole: the server ended the answer as HTTP wants it. lost: it just went. left: we went.
    end: Literal["open", "whole", "lost", "left"] = "open"

    @property
    def is_stream(self) -> bool:
        return self.headers.get("content-type", "").startswith("text/event-stream")

    @property
    def error_code(self) -> str | None:
        """Of a refusal; None for an answer."""
        if self.is_stream or not self.body:
            return None
        error = json.loads(self.body).get("error")
        return str(error["code"]) if error else None


class Client:
    """Follows one turn of one session, over as many connections as that takes."""

    def __init__(self, url: str, body: Mapping[str, Any], *, turn: int = 0, key: str = "", path: str = CHAT) -> None:
        self._url = urlsplit(url)
        self.path = path
        self.body = body
        self._key = key
        self._turn = turn
        self.session_id: str = body.get("session_id", "")
        self.history: list[Connection] = []
        self._wire: _Wire | None = None

    @property
    def url(self) -> str:
        return self._url.geturl()

    def move_to(self, url: str) -> None:
        """The next connection goes there, as a load balancer may decide."""
        self._url = urlsplit(url)

    @property
    def session(self) -> str:
        """Names the session among those of all owners."""
        return f"{self._key}/{self.session_id}"

    @property
    def blocks(self) -> Sequence[Seen]:
        return [block for connection in self.history for block in connection.blocks]

    @property
    def cursor(self) -> int | None:
        return next((block.index for block in reversed(self.blocks) if block.index is not None), None)

    @property
    def last(self) -> Connection:
        return self.history[-1]

    @property
    def is_over(self) -> bool:
        """A notice without an id is to this reader on this connection: he may come again."""
        blocks = self.blocks
        return bool(blocks) and blocks[-1].is_terminal and blocks[-1].index is not None

    async def connect(
        self,
        method: str = "POST",
        *,
        after: int | None = None,
        with_body: bool = True,
        receive_buffer: int | None = None,
    ) -> Connection:
        """Asks for what comes after the last block that was seen; the answer is not waited for."""
        self.leave()
        after = self.cursor if after is None else after
        connection = Connection(self.session, self._turn, after)
        self.history.append(connection)
        try:
            wire = await _Wire.to(self._url.hostname or "", self._url.port or 0, receive_buffer)
        except OSError:
            connection.end = "lost"
            return connection
        self._wire = wire
        try:
            await wire.send(self._request(method, after, with_body))
        except OSError:
            self._lose()
        return connection

    async def is_found(self) -> bool:
        """Whether the session is there, for one that another request begins; if so, this is a reader of it."""
        await self.connect("GET")
        await self.read(blocks=1)
        return self.last.status == 200

    async def read(self, blocks: int | None = None, *, num_bytes: int | None = None) -> Connection:
        """Up to so many new blocks or bytes, or to the end."""
        connection = self.last
        if self._wire is None:
            return connection
        seen_before, bytes_before = len(connection.blocks), self._wire.num_bytes
        while self._wire and connection.end == "open":
            if blocks is not None and len(connection.blocks) - seen_before >= blocks:
                break
            left = 65536 if num_bytes is None else num_bytes + bytes_before - self._wire.num_bytes
            if left <= 0:
                break
            await self._read_some(min(left, 65536) if blocks is None else 256)
        return connection

    async def sip(self, bytes_per_second: int) -> None:
        """As a phone at the edge of its network does, until the end."""
        while self._wire and self.last.end == "open":
            await self._read_some(bytes_per_second // 4)
            await asyncio.sleep(0.25)

    async def follow(self, returning: str = "POST", *, patience: float = 60) -> "Client":
        """To the terminal block, through whatever happens to the server."""
        try:
            async with asyncio.timeout(patience):
                while not self.is_over:
                    if self._wire is None:
                        await self.connect("POST" if self.cursor is None else returning)
                    await self.read()
                    if not self.is_over:
                        self._expect_more()
                        await asyncio.sleep(_RECONNECT_SECONDS)
        except TimeoutError:
            raise AssertionError(f"{self.session} hangs; its last connections: {self.history[-3:]}") from None
        finally:
            self.leave()
        return self

    def _expect_more(self) -> None:
        if self.last.status not in (0, 200, 429, 503):
            raise AssertionError(f"{self.session} is not let in: {self.last}")

    def leave(self, *, rudely: bool = False) -> None:
        if self._wire:
            self._wire.close(rudely=rudely)
            self._wire = None
            if self.last.end == "open":
                self.last.end = "left"

    def _request(self, method: str, after: int | None, with_body: bool) -> bytes:
        headers = [f"Host: {self._url.netloc}", "Connection: close"]
        if self._key:
            headers.append(f"Authorization: Bearer {self._key}")
        if after is not None:
            headers.append(f"Last-Event-ID: {self.session_id}:{after}")
        if method == "GET":
            return "\r\n".join([f"GET /v1/stream/{self.session_id} HTTP/1.1", *headers, "", ""]).encode()
        given = self.body if with_body else {"session_id": self.session_id}
        body = json.dumps({"stream": True, **given}).encode()
        headers += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        return "\r\n".join([f"POST {self.path} HTTP/1.1", *headers, "", ""]).encode() + body

    async def _read_some(self, size: int) -> None:
        assert self._wire
        try:
            events = await self._wire.receive(size)
        except (OSError, h11.RemoteProtocolError):  # which is also a body that just stops
            self._lose()
            return
        for event in events:
            self._take(event)

    def _take(self, event: h11.Event) -> None:
        assert self._wire
        connection = self.last
        if isinstance(event, h11.Response):
            connection.status = event.status_code
            connection.headers = {name.decode(): value.decode() for name, value in event.headers}
            if not self.session_id:
                self.session_id = connection.headers.get("x-session-id", "")
                connection.session = self.session
        elif isinstance(event, h11.Data):
            if connection.is_stream:
                connection.blocks += self._wire.blocks_in(bytes(event.data))
            else:
                connection.body += bytes(event.data)
        elif isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
            connection.end = "whole" if isinstance(event, h11.EndOfMessage) else "lost"
            self.leave()

    def _lose(self) -> None:
        self.last.end = "lost"
        self.leave()


class _Wire:
    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._http = h11.Connection(h11.CLIENT)
        self._http.send(h11.Request(method="GET", target="/", headers=[("Host", "tests")]))  # ours are sent by hand
        self._http.send(h11.EndOfMessage())
        self._unfinished = b""
        self.num_bytes = 0

    @classmethod
    async def to(cls, host: str, port: int, receive_buffer: int | None) -> "_Wire":
        sock = socket.socket()
        try:
            sock.setblocking(False)
            if receive_buffer:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            await asyncio.get_running_loop().sock_connect(sock, (host, port))
        except BaseException:
            sock.close()
            raise
        return cls(sock)

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self._socket, data)

    async def receive(self, size: int) -> list[h11.Event]:
        data = await asyncio.get_running_loop().sock_recv(self._socket, size)
        self.num_bytes += len(data)
        self._http.receive_data(data)
        events: list[h11.Event] = []
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA or event is h11.PAUSED:
                return events
            assert not isinstance(event, type(h11.NEED_DATA))
            events.append(event)  # type: ignore[arg-type]
            if isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
                return events

    def blocks_in(self, data: bytes) -> list[Seen]:
        *whole, self._unfinished = (self._unfinished + data).split(b"\n\n")
        return [_block(block.decode()) for block in whole]

    def close(self, *, rudely: bool) -> None:
        if rudely:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RUDELY)
        self._socket.close()


def _block(text: str) -> Seen:
    fields: dict[str, str] = {}
    for line in text.split("\n"):
        name, _, value = line.partition(":")
        fields[name] = value.removeprefix(" ")
    session, _, index = fields.get("id", "").rpartition(":")
    return Seen(time.monotonic(), session or None, int(index) if session else None, fields.get("data", ""))


def connections_of(clients: Sequence[Client]) -> list[Connection]:
    return [connection for client in clients for connection in client.history]
