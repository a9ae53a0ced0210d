"""GuardedHttpProtocol: uvicorn's protocol on httptools, with limits on everything that comes before the app."""

import asyncio
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, Literal

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from tis.errors import ServiceError
from tis.http.hosts import host_name
from tis.http.transport import refusal
from tis.http.transport.connections import GRACE_SECONDS, Connections
from tis.http.transport.descriptors import descriptor_limit
from tis.http.transport.limits import TransportLimits

# Each request is parsed when it arrives; hundreds fit into one packet.
_MAX_PIPELINED = 16
_MAX_HOST_BYTES = 262  # a name of 255, a colon and a port
# After a refusal the client's bytes are read and dropped: a connection closed earlier is reset, and with it goes the
# response.
_LINGER_SECONDS = 2.0
_MAX_DROPPED_BYTES = 16 * 2**20


class _Refused(Exception):
    """Raised in a callback of the parser, to stop it."""


class _AnsweredTransport:
    """What uvicorn's cycle writes to. It closes behind an answer whose client may still send the body."""

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        self._transport = transport
        self.close = close

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)  # `cut_slow_reader` asks it for more than uvicorn does


class GuardedHttpProtocol(HttpToolsProtocol):
    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        connections: Connections,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._connections = connections
        self._limits = connections.limits
        self.timeout_keep_alive = self._limits.keep_alive_seconds  # type: ignore[assignment]
        # `silent`: no byte of the next request has arrived. `body`: until the message is complete.
        self._phase: Literal["silent", "head", "body"] = "silent"
        self._head_began = False  # in this packet
        self._progress = 0  # heads, pieces of bodies and messages that were complete
        self._bytes_without_progress = 0
        self._running: RequestResponseCycle | None = None  # `cycle` is the newest, and may wait in the pipeline
        self._is_deaf = False  # nothing that arrives is parsed any more
        self._lingers = False
        self._last_words: refusal.Refusal | None = None
        self._num_dropped = 0
        self._start_head()

    def _start_head(self) -> None:
        self.url = b""
        self._head_bytes = 0
        self._hosts: list[bytes] = []
        self._error: ServiceError | None = None

    @property
    def _is_answering(self) -> bool:
        return self._running is not None and not self._running.response_complete

    @property
    def _method(self) -> bytes:
        return bytes(self.parser.get_method()) if self.url else b""  # before the URL the parser names its first

    # The connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        sock = transport.get_extra_info("socket")
        address = self.client[0] if self.client else None
        error = self._connections.admit(self, address, sock.fileno() if sock else -1)
        if error:
            refused = refusal.Refusal(error, b"", b"", self.root_path, [])
            refused.record()
            self._is_deaf = True
            self._write(refused)
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.release(self)
        super().connection_lost(exc)
        if self._running and self._running is not self.cycle:  # uvicorn tells only the newest
            self._running.disconnected = True
            self._running.message_event.set()

    def on_overdue(self) -> None:
        if self._phase == "head":
            self._refuse(refusal.headers_too_slow(self._limits.header_seconds))
        elif self._phase == "body" or self.timeout_keep_alive_task is None:
            self.transport.close()  # a request answered before its body came, or a connection that never sent one

    def timeout_keep_alive_handler(self) -> None:
        """After a pause of the process a request may be there that is still to be read: it takes the timer away."""
        close = super().timeout_keep_alive_handler
        self.timeout_keep_alive_task = self.loop.call_later(GRACE_SECONDS, close)

    def abort(self) -> None:
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._is_deaf:
            self._drop(data)
            return
        self._unset_keepalive_if_required()
        before = self._progress
        try:
            self._feed(data)
        except httptools.HttpParserError as error:
            self._refuse(self._error or refusal.unreadable(error, self._method))
            return
        # Headers, trailers and extensions of chunks that never end: the parser has no limit for them.
        self._bytes_without_progress += len(data)
        if self._progress != before:
            self._bytes_without_progress = 0
        elif self._bytes_without_progress > self._limits.max_head_bytes:
            self._refuse(refusal.headers_too_large(self._limits.max_head_bytes))
            return
        if self._head_began and self._phase == "head" and not self._is_answering:
            self._head_began = False
            self._connections.wait_for(self)

    def _feed(self, data: bytes) -> None:
        while True:
            try:
                self.parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as upgrade:
                data = data[upgrade.args[0] :]  # no upgrade is known: the connection goes on with HTTP/1.1

    def _should_upgrade(self) -> bool:
        return False

    # What the parser finds

    def on_message_begin(self) -> None:
        self._phase, self._head_began = "head", True
        self._start_head()
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self.url += url
        self._count_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._phase == "body":
            return  # a trailer: it must not change headers that have been checked
        self._count_head(len(name) + len(value) + 4)
        if len(self.headers) >= self._limits.max_headers:
            self._stop(refusal.too_many_headers(self._limits.max_headers))
        name = name.lower()
        if name == b"host":
            self._hosts.append(value)
        elif name == b"transfer-encoding" and value.lower() != b"chunked":
            self._stop(refusal.unknown_coding())
        elif name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        version = self.parser.get_http_version()
        if version not in ("1.1", "1.0"):
            self._stop(refusal.wrong_version())
        # A request of HTTP/1.0 may have none.
        if len(self._hosts) > 1 or (not self._hosts and version == "1.1") or not all(map(_is_host, self._hosts)):
            self._stop(refusal.invalid_host())
        if len(self.pipeline) >= _MAX_PIPELINED:
            self._stop(refusal.too_many_at_once(_MAX_PIPELINED))
        super().on_headers_complete()
        self._phase = "body"
        self._progress += 1
        self._connections.stop_waiting_for(self)

    def on_body(self, body: bytes) -> None:
        self._progress += 1
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._progress += 1
        self._phase = "silent"
        super().on_message_complete()

    def _count_head(self, num_bytes: int) -> None:
        self._head_bytes += num_bytes
        if self._head_bytes > self._limits.max_head_bytes:
            self._stop(refusal.headers_too_large(self._limits.max_head_bytes))

    def _stop(self, error: ServiceError) -> None:
        self._error = error
        raise _Refused

    # Answers

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        if not cycle.keep_alive:
            cycle.transport = _AnsweredTransport(self.transport, self._close_behind_answer)  # type: ignore[assignment]
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        is_next_started = bool(self.pipeline)
        super().on_response_complete()
        if is_next_started or self._lingers or self.transport.is_closing():
            return
        if self._last_words:
            self._say(self._last_words)
        elif self._is_deaf or (self._phase == "body" and self.expect_100_continue):
            # Whether a client that expected a 100 will still send its body, nobody knows.
            self._linger()
        else:
            self._connections.wait_for(self)

    def _refuse(self, error: ServiceError) -> None:
        """Answers requests that came before, then refuses this one and closes the connection."""
        if self.transport.is_closing():
            return
        refused = refusal.Refusal(error, self._method, self.url, self.root_path, self.headers or [])
        refused.record()
        self._is_deaf = True
        self._connections.stop_waiting_for(self)
        running = self._running
        if running is None or running.response_complete:
            if self._phase == "body":
                self.transport.close()  # the request is answered, only its body is broken
            else:
                self._say(refused)
        elif self._phase != "body":
            self._last_words = refused
        elif running is not self.cycle:
            self.pipeline.popleft()  # the request whose body is broken
            self._last_words = refused
        elif not running.response_started:
            running.disconnected = True
            running.message_event.set()
            self._say(refused)

    def _say(self, refused: refusal.Refusal) -> None:
        self._unset_keepalive_if_required()
        self._write(refused)
        self._linger()

    def _close_behind_answer(self) -> None:
        if self._phase == "body":
            self._linger()
        else:
            self.transport.close()

    def _linger(self) -> None:
        """Closes the connection when the client has had the time to read the answer."""
        self._is_deaf = self._lingers = True
        if self.transport.can_write_eof():
            self.transport.write_eof()
            self.flow.resume_reading()
            self.loop.call_later(_LINGER_SECONDS, self.transport.close)
        else:
            self.transport.close()

    def _write(self, refused: refusal.Refusal) -> None:
        self.transport.write(refused.to_bytes(STATUS_LINE[refused.status], self.server_state.default_headers))

    def _drop(self, data: bytes) -> None:
        self._num_dropped += len(data)
        if self._num_dropped > _MAX_DROPPED_BYTES and not self._is_answering:
            self.transport.abort()


def _is_host(value: bytes) -> bool:
    # An empty one is valid: the URL of the request may have no host.
    return not value or (len(value) <= _MAX_HOST_BYTES and _is_host_name(value))


@lru_cache(maxsize=1024)
def _is_host_name(value: bytes) -> bool:
    return host_name(value.decode("latin-1")) is not None


def guarded_protocol(limits: TransportLimits) -> Any:
    """For `uvicorn.Config(http=...)`, which wants a class and calls it. It counts the connections of one server."""
    connections = Connections(limits, descriptor_limit())
    factory: Callable[..., GuardedHttpProtocol] = partial(GuardedHttpProtocol, connections=connections)
    return factory
