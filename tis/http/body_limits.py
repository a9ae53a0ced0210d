"""Limits on request bodies: bytes (MAX_BODY_MB, and less for some paths), and what `JsonScanner` counts.

A body that would block the event loop for long is refused while it arrives.
"""

import re

from starlette._utils import get_route_path
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tis.errors import ServiceError, TooLarge
from tis.http.error_handlers import BodyRejected, error_response
from tis.http.json_scan import JsonScanner

SCAN = "tis.scanned_body"  # of a scope


class BodySizeLimitMiddleware:
    """Limits the bytes of bodies for paths under `prefix`, except where "METHOD path" matches `except_for`.

    FastAPI's own `max_body_size` answers in plain text, whatever the API.
    """

    def __init__(self, app: ASGIApp, *, prefix: str, max_bytes: int, except_for: str = "(?!)") -> None:
        self.app = app
        self._prefix, self._except_for, self._max_bytes = prefix, re.compile(except_for), max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = get_route_path(scope) if scope["type"] == "http" else ""
        if not path.startswith(self._prefix) or self._except_for.fullmatch(f"{scope['method']} {path}"):
            await self.app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "0")
        if announced.isdecimal() and int(announced) > self._max_bytes:
            error = TooLarge(f"The body is larger than the {self._max_bytes:,} bytes that this route takes.")
            await error_response(scope, error)(scope, receive, send)
            return
        received = 0

        async def counting_receive() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._max_bytes:
                raise HTTPException(413)  # what FastAPI raises when a body exceeds its own limit
            return message

        await self.app(scope, counting_receive, send)


class JsonScanMiddleware:
    """Scans bodies of some paths: the app receives them without their media, and `scope` has what was found.

    `ScannedBodyRoute` puts the media back.
    """

    def __init__(
        self, app: ASGIApp, *, prefixes: tuple[str, ...], max_text_bytes: int, except_for: str = "(?!)"
    ) -> None:
        """`except_for`: a pattern of paths whose bodies are forms."""
        self.app = app
        self._prefixes, self._max_text_bytes, self._except_for = prefixes, max_text_bytes, re.compile(except_for)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = get_route_path(scope) if scope["type"] == "http" else ""
        if not path.startswith(self._prefixes) or self._except_for.fullmatch(path):
            await self.app(scope, receive, send)
            return
        scanner = JsonScanner(self._max_text_bytes)
        scope[SCAN] = scanner.body

        async def scanning_receive() -> Message:
            message = await receive()
            if message["type"] != "http.request":
                return message
            try:
                remaining = scanner.add(message.get("body", b""), is_last=not message.get("more_body", False))
            except ServiceError as error:
                raise BodyRejected(error) from None
            return {**message, "body": remaining}

        await self.app(scope, scanning_receive, send)
