"""JSON answers of the marketplace as gzip, for clients that take it."""

import gzip
import re

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tis.http.scanned_route import in_thread_if

_MIN_BYTES = 1024
_MAX_BYTES = 4 * 2**20
_THREAD_BYTES = 64 * 1024  # a larger body takes longer than a step of the event loop may
_LEVEL = 4


def takes_gzip(headers: Headers) -> bool:
    accepted = [one.replace(" ", "").lower() for one in headers.get("accept-encoding", "").split(",")]
    return any(one.partition(";")[0] == "gzip" and not re.search(r";q=0(\.0*)?$", one) for one in accepted)


class JsonCompressionMiddleware:
    """Compresses whole answers of `application/json` to GET under `prefix`.

    Not those to POST, as registrations, nor those under `except_for`, nor what no cache may keep: the size of a
    compressed secret tells of it. Not those with an `ETag`, which names the bytes and is sent back in `If-Match`. Not
    streams.
    """

    def __init__(self, app: ASGIApp, *, prefix: str, except_for: str) -> None:
        self.app = app
        self._prefix, self._except_for = prefix, except_for

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"] if scope["type"] == "http" and scope["method"] == "GET" else ""
        if not path.startswith(self._prefix) or path.startswith(self._except_for):
            await self.app(scope, receive, send)
            return
        takes, begin = takes_gzip(Headers(scope=scope)), dict[str, Message]()

        async def send_compressed(message: Message) -> None:
            if message["type"] == "http.response.start" and _may_be_compressed(Headers(raw=message["headers"])):
                begin["start"] = message  # until the body says how long it is
                return
            if start := begin.pop("start", None):
                if message["type"] == "http.response.body" and not message.get("more_body"):
                    message = await _compressed(start, message, takes=takes)
                await send(start)
            await send(message)

        await self.app(scope, receive, send_compressed)


def _may_be_compressed(headers: Headers) -> bool:
    is_json = headers.get("content-type", "").partition(";")[0].strip() == "application/json"
    is_private = "no-store" in headers.get("cache-control", "")
    return is_json and not is_private and not {"etag", "content-encoding", "set-cookie"} & {*headers.keys()}


async def _compressed(start: Message, message: Message, *, takes: bool) -> Message:
    """Changes the headers in `start`, too."""
    body: bytes = message.get("body", b"")
    if not _MIN_BYTES <= len(body) <= _MAX_BYTES:
        return message
    headers = MutableHeaders(raw=[*start["headers"]])  # an answer may be sent again
    headers.add_vary_header("Accept-Encoding")
    if takes:
        small = await in_thread_if(len(body) > _THREAD_BYTES, lambda: gzip.compress(body, _LEVEL, mtime=0))
        headers["Content-Encoding"], headers["Content-Length"] = "gzip", str(len(small))
        message = {**message, "body": small}
    start["headers"] = headers.raw
    return message
