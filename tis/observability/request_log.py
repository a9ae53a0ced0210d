"""Request ids, and one log line per request."""

import contextvars
import logging
import re
import time
import uuid

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger("tis.requests")

# Load balancers and monitors request these every few seconds.
PROBES = {"/live", "/ready", "/health", "/metrics"}

_ACCEPTED_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
_current_id: contextvars.ContextVar[str] = contextvars.ContextVar("request_id", default="-")


def current_request_id() -> str:
    return _current_id.get()


class RequestLogMiddleware:
    """Accepts or makes the request id, and logs method, path, status and time; never query, headers or body."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = accepted_or_new_id(Headers(scope=scope).get("x-request-id"))
        _current_id.set(request_id)
        began = time.perf_counter()
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-ID"] = request_id
            await send(message)

        try:
            await self.app(scope, receive, send_with_id)
        finally:
            took_ms = (time.perf_counter() - began) * 1000
            level = logging.DEBUG if scope["path"] in PROBES else logging.INFO
            log.log(level, "%s %s %s %.0fms %s", scope["method"], one_line(scope["path"]), status, took_ms, request_id)


def accepted_or_new_id(client_id: str | None) -> str:
    return client_id if client_id and _ACCEPTED_ID.fullmatch(client_id) else f"req-{uuid.uuid4().hex}"


def one_line(path: str) -> str:
    """A decoded path may contain line breaks, with which a client could forge log lines."""
    return path[:200].encode("unicode_escape").decode("ascii")
