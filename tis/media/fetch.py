"""Fetches URLs that untrusted clients name: only from public addresses, within limits of time and size.

The fetcher connects to the very address that it checked; resolving the name again could give another one.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import h11

from tis.errors import Unavailable
from tis.media.errors import BadMedia, fetch_failed, malformed_url, media_too_large, remote_media_disabled
from tis.media.limits import MediaBudget, MediaLimits, in_mib
from tis.media.media_types import MediaKind
from tis.network.dialling import Dialler, NotDialled, patiently
from tis.network.url import HttpUrl, NoUrl, is_allowed, read_url, redirected
from tis.observability.metrics import count_refusal
from tis.observability.spans import child_span, current_span

_READ_BYTES = 65536
_log = logging.getLogger("tis.media")
_REDIRECT_STATUSES = {301, 302, 303, 307, 308}
_USER_AGENT = "transformers-inference-server"


class _FetchError(Exception):
    """Its message goes to the log only: the client gets the same error for every reason."""


class MediaFetcher:
    def __init__(self, limits: MediaLimits, dialler: Dialler) -> None:
        self._limits = limits
        self._dialler = dialler
        self._slots = asyncio.Semaphore(limits.max_fetches)

    async def fetch(self, kind: MediaKind, text: str, budget: MediaBudget) -> bytes:
        if not self._limits.allow_remote:
            raise remote_media_disabled(kind)
        try:
            url = read_url(text)
        except NoUrl:
            raise malformed_url(kind) from None
        await self._acquire_slot()
        try:
            # One deadline for the whole fetch: a server that sends a byte a second never exceeds a read timeout.
            async with asyncio.timeout(self._limits.fetch_seconds):
                with child_span(f"fetch {kind}", {"http.request.method": "GET"}, kind="client"):
                    return await self._follow(kind, url, budget)
        # ValueError: a redirect to an invalid URL, a host name that cannot be encoded.
        except (_FetchError, NotDialled, ValueError, OSError, h11.ProtocolError) as error:
            reason = error.args[0] if isinstance(error, _FetchError | NotDialled) else type(error).__name__
            _log.info("%s not fetched: %s", kind, reason)
            raise fetch_failed(kind) from None
        finally:
            self._slots.release()

    async def _acquire_slot(self) -> None:
        try:
            async with asyncio.timeout(self._limits.fetch_seconds):
                await self._slots.acquire()
        except TimeoutError:
            count_refusal("fetches")
            message = "The server is busy fetching media for other requests. Retry later."
            raise Unavailable(message, retry_after=5) from None

    async def _follow(self, kind: MediaKind, url: HttpUrl, budget: MediaBudget) -> bytes:
        for _ in range(self._limits.max_redirects + 1):
            async with self._connected(url) as connection:
                response = await connection.get(url, kind)
                if response.status_code not in _REDIRECT_STATUSES:
                    return await self._read_body(kind, response, connection, budget)
                url = redirected(url, _header(response, b"location"))
        raise _FetchError("too many redirects")

    @asynccontextmanager
    async def _connected(self, url: HttpUrl) -> AsyncIterator["_HttpConnection"]:
        connection = await self._connect(url)
        try:
            yield connection
        finally:
            connection.abort()

    async def _connect(self, url: HttpUrl) -> "_HttpConnection":
        if not is_allowed(url.host, tuple(self._limits.allowed_hosts)):
            raise _FetchError("the host is not in the list of allowed hosts")
        targets = await self._dialler.checked(url.host, url.port)
        tls = await self._dialler.trusted() if url.scheme == "https" else None
        last_error: OSError | None = None
        for host, port, timeout_seconds in patiently(targets, self._limits.fetch_seconds):
            try:
                async with asyncio.timeout(timeout_seconds):
                    streams = await asyncio.open_connection(
                        host, port, ssl=tls, server_hostname=url.host if tls else None
                    )
            except OSError as error:
                last_error = error
            else:
                return _HttpConnection(*streams)
        raise NotDialled("no address answered") from last_error

    async def _read_body(
        self, kind: MediaKind, response: h11.Response, connection: "_HttpConnection", budget: MediaBudget
    ) -> bytes:
        if response.status_code != 200 or _header(response, b"content-encoding").lower() not in ("", "identity"):
            raise _FetchError("the response is not a plain 200")
        max_bytes = self._limits.max_item_bytes
        if int(_header(response, b"content-length") or 0) > max_bytes:
            raise self._item_too_large(kind)
        chunks, num_bytes = [], 0
        async for chunk in connection.body():
            num_bytes += len(chunk)
            budget.take_bytes(kind, len(chunk))
            if num_bytes > max_bytes:
                raise self._item_too_large(kind)
            chunks.append(chunk)
        return b"".join(chunks)

    def _item_too_large(self, kind: MediaKind) -> BadMedia:
        return media_too_large(kind, f"the limit is {in_mib(self._limits.max_item_bytes)}")


class _HttpConnection:
    """Sends one request and reads its response. h11 rejects responses that end before their declared length."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.CLIENT)

    async def get(self, url: HttpUrl, kind: MediaKind) -> h11.Response:
        headers = [
            ("Host", url.authority),
            ("User-Agent", _USER_AGENT),
            ("Accept", f"{kind}/*, */*;q=0.5"),
            ("Accept-Encoding", "identity"),
            ("Connection", "close"),
            *current_span().outgoing_headers.items(),
        ]
        request = h11.Request(method="GET", target=url.target, headers=headers)
        self._writer.write((self._http.send(request) or b"") + (self._http.send(h11.EndOfMessage()) or b""))
        await self._writer.drain()
        while True:
            event = await self._next_event()
            if isinstance(event, h11.Response):
                return event
            if not isinstance(event, h11.InformationalResponse):
                raise _FetchError("the connection ended before a response")

    async def body(self) -> AsyncIterator[bytes]:
        while not isinstance(event := await self._next_event(), h11.EndOfMessage):
            if not isinstance(event, h11.Data):
                raise _FetchError("the body ended early")
            yield bytes(event.data)

    def abort(self) -> None:
        # Without a TLS shutdown: a peer that does not answer it would delay us.
        self._writer.transport.abort()

    async def _next_event(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(await self._reader.read(_READ_BYTES))
        return event


def _header(response: h11.Response, name: bytes) -> str:
    values = [value for key, value in response.headers if key == name]
    if len(values) > 1:
        raise _FetchError("the response has a header twice")
    return bytes(values[0]).decode("utf-8", "replace").strip() if values else ""
