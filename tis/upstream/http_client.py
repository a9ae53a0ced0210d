"""HTTP to one upstream: every wait, line and body has a bound, and nothing is followed, decompressed or proxied."""

import asyncio
import json
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Any

import httpcore2

from tis.engine.models.entry_fields import UpstreamSeconds
from tis.network.url import read_url
from tis.upstream.bounded_json import parse_json
from tis.upstream.errors import UpstreamFault, failed, too_slow, unreachable
from tis.upstream.event_lines import EventLines, EventTooLong
from tis.upstream.refusals import fault_of_status

MAX_ANSWER_BYTES = 64 * 2**20  # of all events of one stream, or of one body
_MAX_ERROR_BYTES = 64 * 2**10
_MAX_SHORT_BYTES = 4 * 2**20  # of lists of models, and of counts
_LARGE_BYTES = 256 * 2**10  # more is written and parsed in a thread
_KEEP_ALIVE_SECONDS = 3.0  # servers close idle connections after 5 s and later


class StreamWatch:
    """Lets somebody else end the wait for the next event of a stream."""

    def __init__(self) -> None:
        self.last_at = time.monotonic()  # of a sign of life
        self.session_id = ""  # of an upstream of ours
        self.is_given_up = False
        self._wait: asyncio.Timeout | None = None

    def give_up(self) -> None:
        if self._wait and not self._wait.expired():
            self.is_given_up = True
            self._wait.reschedule(asyncio.get_running_loop().time())

    @asynccontextmanager
    async def waiting(self, seconds: float) -> AsyncIterator[None]:
        async with asyncio.timeout(seconds) as self._wait:
            try:
                yield
            finally:
                self._wait, self.last_at = None, time.monotonic()


class UpstreamHttp:
    def __init__(self, url: str, key: str, seconds: UpstreamSeconds, tls: ssl.SSLContext | None) -> None:
        base = read_url(url, any_port=True)
        self.url = url
        self._origin = f"{base.scheme}://{base.authority}"
        self._path = base.target.rstrip("/") or "/v1"
        self._key = key
        self._seconds = seconds
        self._headers = {
            "Host": base.authority,
            "User-Agent": "transformers-inference-server",
            "Accept-Encoding": "identity",
            **({"Authorization": f"Bearer {key}"} if key else {}),
        }
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=tls, max_connections=None, keepalive_expiry=_KEEP_ALIVE_SECONDS
        )

    async def close(self) -> None:
        await self._pool.aclose()

    async def events(self, path: str, body: Mapping[str, Any], watch: StreamWatch) -> AsyncGenerator[bytes, None]:
        """The data of the events of an answer, as they come. To close it closes the connection, which aborts it."""
        lines, num_bytes, seconds = EventLines(), 0, self._seconds.first_token
        async with AsyncExitStack() as stack:
            written = await _written(body)
            async with _noticing_silence(watch, seconds):
                response = await stack.enter_async_context(self._response("POST", self._path + path, written, seconds))
            _require_events(response)
            watch.session_id = _header(response, b"x-session-id").decode("latin-1")[:128]
            received = await stack.enter_async_context(aclosing(_body_of(response)))
            while True:
                events: list[bytes] = []
                # Comments and bytes of an event that does not end are no signs of life.
                async with _noticing_silence(watch, seconds):
                    while not events and (chunk := await anext(received, None)) is not None:
                        num_bytes += len(chunk)
                        events = lines.feed(chunk)
                if num_bytes > MAX_ANSWER_BYTES:
                    raise failed(f"sent more than {MAX_ANSWER_BYTES // 2**20} MiB")
                for event in events or lines.rest():
                    yield event
                if not events:
                    return
                seconds = self._seconds.next_token

    async def get(self, path: str, seconds: float) -> Any:
        return await self._json("GET", self._path + path, b"", seconds, max_bytes=_MAX_SHORT_BYTES)

    async def post(self, path: str, body: Mapping[str, Any], seconds: float) -> Any:
        return await self._json("POST", self._path + path, await _written(body), seconds)

    async def post_at_root(self, path: str, body: Mapping[str, Any], seconds: float) -> Any:
        """Beside `/v1`, not below it; the answer is short."""
        target = self._path.removesuffix("/v1") + path
        return await self._json("POST", target, await _written(body), seconds, max_bytes=_MAX_SHORT_BYTES)

    async def post_form(self, path: str, content_type: str, body: bytes, seconds: float) -> Any:
        return await self._json("POST", self._path + path, body, seconds, content_type)

    async def post_for_file(self, path: str, body: Mapping[str, Any], seconds: float, max_bytes: int) -> bytes:
        return await self._whole("POST", self._path + path, await _written(body), seconds, max_bytes=max_bytes)

    async def _json(
        self,
        method: str,
        path: str,
        body: bytes,
        seconds: float,
        content_type: str = "application/json",
        *,
        max_bytes: int = MAX_ANSWER_BYTES,
    ) -> Any:
        whole = await self._whole(method, path, body, seconds, content_type, max_bytes=max_bytes)
        return await asyncio.to_thread(parse_json, whole) if len(whole) > _LARGE_BYTES else parse_json(whole)

    async def _whole(
        self,
        method: str,
        path: str,
        body: bytes,
        seconds: float,
        content_type: str = "application/json",
        *,
        max_bytes: int,
    ) -> bytes:
        try:
            async with (
                asyncio.timeout(seconds),
                self._response(method, path, body, seconds, content_type) as response,
            ):
                return await _read(response, max_bytes)
        except TimeoutError:
            raise too_slow(f"did not answer within {seconds:g} s") from None

    @asynccontextmanager
    async def _response(
        self, method: str, path: str, body: bytes, seconds: float, content_type: str = "application/json"
    ) -> AsyncIterator[httpcore2.Response]:
        """`seconds`: until it begins to answer."""
        connect = self._seconds.connect
        headers: dict[bytes | str, bytes | str] = dict(self._headers.items())
        if body:
            headers |= {"Content-Type": content_type, "Content-Length": str(len(body))}
        timeouts = {"connect": connect, "pool": connect, "read": seconds, "write": seconds}
        try:
            sent = self._pool.stream(
                method, self._origin + path, headers=headers, content=body, extensions={"timeout": timeouts}
            )
            async with AsyncExitStack() as stack:
                try:
                    response = await stack.enter_async_context(sent)
                except AttributeError:  # anyio, of a connection that was reset as soon as it was made
                    raise unreachable() from None
                _require_plain(response)
                if response.status != 200:
                    raise await self._refusal(response)
                yield response
        except (httpcore2.ConnectTimeout, httpcore2.PoolTimeout):
            raise unreachable(is_silent=True) from None
        except (httpcore2.ConnectError, OSError):
            raise unreachable() from None
        except httpcore2.TimeoutException:
            raise too_slow(f"did not answer within {seconds:g} s") from None
        except (httpcore2.NetworkError, httpcore2.ProtocolError) as broken:
            is_stale = isinstance(broken, httpcore2.RemoteProtocolError) and "disconnected without" in str(broken)
            fault = failed("closed the connection, or does not speak HTTP")
            raise UpstreamFault(fault.error, is_stale=is_stale) from None

    async def _refusal(self, response: httpcore2.Response) -> UpstreamFault:
        try:
            async with asyncio.timeout(self._seconds.connect):
                said = await _read(response, _MAX_ERROR_BYTES)
        except (TimeoutError, UpstreamFault):
            said = b""
        return fault_of_status(response.status, said, _header(response, b"retry-after").decode("latin-1"), self._key)


@asynccontextmanager
async def _noticing_silence(watch: StreamWatch, seconds: float) -> AsyncIterator[None]:
    try:
        async with watch.waiting(seconds):
            yield
    except TimeoutError:
        raise too_slow("does not answer any more" if watch.is_given_up else f"sent nothing for {seconds:g} s") from None
    except EventTooLong as too_long:
        raise failed(f"sent {too_long}") from None


async def _written(body: Mapping[str, Any]) -> bytes:
    """In a thread if it is large: it may have megabytes of text."""

    def write() -> bytes:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")

    return await asyncio.to_thread(write) if _is_large(body) else write()


def _is_large(body: Mapping[str, Any]) -> bool:
    """Looks at texts and at the texts of messages only: what else there is has bounds of its own."""
    parts = (body.get(name) for name in ("messages", "input", "prompt", "documents"))
    lists = [part if isinstance(part, list) else [part] for part in parts if part]
    return (
        sum(len(str(one)) if isinstance(one, str) else _chars_of(one) for some in lists for one in some) > _LARGE_BYTES
    )


def _chars_of(message: Any) -> int:
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        return _LARGE_BYTES + 1
    return len(content) if isinstance(content, str) else 0


async def _body_of(response: httpcore2.Response) -> AsyncGenerator[bytes, None]:
    async for chunk in response.aiter_stream():
        yield chunk


async def _read(response: httpcore2.Response, max_bytes: int) -> bytes:
    chunks, num_bytes = [], 0
    async with aclosing(_body_of(response)) as received:
        async for chunk in received:
            num_bytes += len(chunk)
            if num_bytes > max_bytes:
                raise failed(f"sent more than {max_bytes // 2**10} KiB")
            chunks.append(chunk)
    return b"".join(chunks)


def _header(response: httpcore2.Response, name: bytes) -> bytes:
    return next((value for key, value in response.headers if key.lower() == name), b"")


def _require_plain(response: httpcore2.Response) -> None:
    if _header(response, b"content-encoding").strip().lower() not in (b"", b"identity"):
        raise failed("sent a compressed answer, which was not asked for")


def _require_events(response: httpcore2.Response) -> None:
    if not _header(response, b"content-type").strip().lower().startswith(b"text/event-stream"):
        raise failed("did not answer with text/event-stream")
