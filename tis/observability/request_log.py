"""Request ids, and one log line per request: of its path the template of the route, as a path may name a person."""

import contextvars
import logging
import re
import time
import uuid
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tis.observability.metrics import HTTP_REQUESTS, HTTP_SECONDS
from tis.observability.recent_requests import RecentRequests
from tis.observability.request_facts import RequestFacts, begin_facts

log = logging.getLogger("tis.requests")

# Load balancers and monitors request these every few seconds.
PROBES = {"/live", "/ready", "/health", "/metrics"}

_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
UNROUTED = "(none)"  # no route has this path, or the request was refused before it came to one
_NO_STATUS = 499  # the client left before there was one

_ACCEPTED_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
_current_id: contextvars.ContextVar[str] = contextvars.ContextVar("request_id", default="-")


def current_request_id() -> str:
    return _current_id.get()


class RequestLogMiddleware:
    """Accepts or makes the request id, counts the request and logs it; never its path, query, headers or body."""

    def __init__(self, app: ASGIApp, recent: RecentRequests | None = None) -> None:
        self.app = app
        self._recent = recent

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = accepted_or_new_id(Headers(scope=scope).get("x-request-id"))
        _current_id.set(request_id)
        facts = begin_facts()
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
            seconds = time.perf_counter() - began
            line = request_line(scope, facts, request_id, status or _NO_STATUS, seconds)
            HTTP_REQUESTS.labels(line["route"], line["method"], line["status"]).inc()
            HTTP_SECONDS.labels(line["route"]).observe(seconds)
            if self._recent is not None:
                self._recent.add(line, facts, scope.get("state", {}).get("owner"), seconds)
            level = logging.DEBUG if scope["path"] in PROBES or _is_file_of_a_page(scope, status) else logging.INFO
            if log.isEnabledFor(level):
                log.log(level, "%s", as_text(line), extra={LINE: line})


def accepted_or_new_id(client_id: str | None) -> str:
    return client_id if client_id and _ACCEPTED_ID.fullmatch(client_id) else f"req-{uuid.uuid4().hex}"


def _is_file_of_a_page(scope: Scope, status: int) -> bool:
    """A page has a hundred of them."""
    return bool(scope["path"].startswith("/pages/")) and scope["method"] == "GET" and status < 400


LINE = "request"  # the attribute of a log record that has the fields of the line


def request_line(
    scope: Scope, facts: RequestFacts, request_id: str, status: int, seconds: float
) -> dict[str, str | int | float | None]:
    """All of it comes from this server, but for the id, whose characters are checked."""
    return {
        "id": request_id,
        "method": known_method(scope["method"]),
        "route": route_of(scope),
        "status": status,
        "ms": round(seconds * 1000, 1),
        "queue_ms": _rounded(facts.queue_ms),
        "first_token_ms": _rounded(facts.first_token_ms),
        "prompt_tokens": facts.prompt_tokens,
        "cached_tokens": facts.cached_tokens,
        "completion_tokens": facts.completion_tokens,
        "finish": facts.finish,
        "error": facts.error_code,
        "key": getattr(scope.get("state", {}).get("api_key"), "name", None),
        "model": facts.model,
    }


def known_method(method: str) -> str:
    return method if method in _METHODS else "other"


def route_of(scope: Scope) -> str:
    """With the prefix of its router, such as `/v1/stream/{session_id}`."""
    context = scope.get("fastapi", {}).get("effective_route_context")
    route: Any = context or scope.get("route")
    return str(getattr(route, "path", None) or UNROUTED)


def _rounded(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else round(milliseconds, 1)


def as_text(line: dict[str, str | int | float | None]) -> str:
    """For people: what is empty is left out."""
    parts = [f"{line['method']} {line['route']} {line['status']} {line['ms']:.0f}ms"]
    if line["model"]:
        parts.append(f"{line['model']} {line['prompt_tokens']}+{line['completion_tokens']} tokens")
    parts += [str(line[name]) for name in ("finish", "error", "key") if line[name]]
    return " ".join([*parts, str(line["id"])])
