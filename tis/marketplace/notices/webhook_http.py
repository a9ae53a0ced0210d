"""Posts to an address that a stranger named: only to public addresses, without redirects, within limits.

It connects to the very address that was checked, as the fetcher of media does.
"""

import asyncio
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import h11

from tis.network.dialling import Dialler, NotDialled, patiently
from tis.network.url import HttpUrl, NoUrl, read_url

_READ_BYTES = 16_384
_MAX_ANSWER_BYTES = 65_536
_BODY_SECONDS = 1.0
_USER_AGENT = "transformers-inference-server"


@dataclass(frozen=True)
class PostOutcome:
    """`result` is what the owner of the webhook reads: a status, or in a word why there is none."""

    result: str
    status: int | None = None
    retry_after: int = 0  # seconds

    @property
    def is_success(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


def usable_url(text: str, *, allow_http: bool) -> HttpUrl:
    """Raises NoUrl."""
    url = read_url(text)
    if url.scheme != "https" and not allow_http:
        raise NoUrl
    return url


class WebhookPoster:
    def __init__(self, dialler: Dialler, *, seconds: float, allow_http: bool = False) -> None:
        self._dialler = dialler
        self._seconds = seconds  # of everything together: a server that sends a byte a second is late, too
        self._allow_http = allow_http

    async def post(self, address: str, headers: Mapping[str, str], body: bytes) -> PostOutcome:
        try:
            url = usable_url(address, allow_http=self._allow_http)
            async with asyncio.timeout(self._seconds):
                reader, writer = await self._connect(url)
                try:
                    return await _exchange(reader, writer, url, headers, body)
                finally:
                    writer.transport.abort()
        except TimeoutError:
            return PostOutcome("timeout")
        except NotDialled:
            return PostOutcome("address not reached")
        except h11.ProtocolError:
            return PostOutcome("no HTTP answer")
        except ssl.SSLError:
            return PostOutcome("no valid certificate")
        except OSError:
            return PostOutcome("connection failed")
        except ValueError:  # NoUrl, a name that cannot be encoded
            return PostOutcome("address not allowed")

    async def _connect(self, url: HttpUrl) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        targets = await self._dialler.checked(url.host, url.port)
        tls = await self._dialler.trusted() if url.scheme == "https" else None
        for host, port, seconds in patiently(targets, self._seconds):
            try:
                async with asyncio.timeout(seconds):
                    return await asyncio.open_connection(host, port, ssl=tls, server_hostname=url.host if tls else None)
            except ssl.SSLError:
                raise
            except OSError:  # TimeoutError, too
                continue
        raise NotDialled("no address answered")


async def _exchange(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    url: HttpUrl,
    headers: Mapping[str, str],
    body: bytes,
) -> PostOutcome:
    http = h11.Connection(h11.CLIENT)
    head = [
        ("Host", url.authority),
        ("User-Agent", _USER_AGENT),
        ("Content-Type", "application/json"),
        ("Content-Length", str(len(body))),
        ("Connection", "close"),
        *headers.items(),
    ]
    sent = [h11.Request(method="POST", target=url.target, headers=head), h11.Data(body), h11.EndOfMessage()]
    writer.write(b"".join(http.send(event) or b"" for event in sent))
    await writer.drain()
    answer = _Answer(http, reader)
    while not isinstance(event := await answer.next_event(), h11.Response):
        if not isinstance(event, h11.InformationalResponse):
            return PostOutcome("no HTTP answer")
    outcome = PostOutcome(str(event.status_code), event.status_code, _retry_after(event))
    # A short body is read and forgotten, so that the program which sends it sees no broken connection.
    with suppress(TimeoutError, OSError, h11.ProtocolError):
        async with asyncio.timeout(_BODY_SECONDS):
            while isinstance(await answer.next_event(), h11.Data):
                pass
    return outcome


class _Answer:
    def __init__(self, http: h11.Connection, reader: asyncio.StreamReader) -> None:
        self._http, self._reader = http, reader
        self._num_bytes = 0

    async def next_event(self) -> object:
        """None beyond the limit."""
        while (event := self._http.next_event()) is h11.NEED_DATA:
            received = await self._reader.read(_READ_BYTES)
            self._num_bytes += len(received)
            if self._num_bytes > _MAX_ANSWER_BYTES:
                return None
            self._http.receive_data(received)
        return event


def _retry_after(response: h11.Response) -> int:
    for name, value in response.headers:
        if name == b"retry-after" and value.isdigit() and len(value) <= 9:
            return int(value)
    return 0
