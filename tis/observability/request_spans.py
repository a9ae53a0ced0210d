"""A span for each request, around its log line. Of its path the template, as a path may name a person."""

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tis.observability.request_facts import current_facts
from tis.observability.request_log import PROBES, UNROUTED, current_request_id, known_method, route_of
from tis.observability.spans import Tracer, use_span

_MIN_SERVER_ERROR = 500  # what clients did wrong is no error of the span


class RequestSpanMiddleware:
    """Outside of `RequestLogMiddleware`. Names of attributes are those of OpenTelemetry's HTTP conventions."""

    def __init__(self, app: ASGIApp, tracer: Tracer) -> None:
        self.app = app
        self._tracer = tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in PROBES:
            await self.app(scope, receive, send)
            return
        method = known_method(scope["method"])
        span = self._tracer.request_span(
            method, Headers(scope=scope), {"http.request.method": method, "url.scheme": scope.get("scheme")}
        )
        status = 0

        async def send_with_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        error: str | None = None
        with use_span(span):
            try:
                await self.app(scope, receive, send_with_status)
            except BaseException as fault:
                error = type(fault).__name__
                raise
            finally:
                route = route_of(scope)
                if route != UNROUTED:
                    span.rename(f"{method} {route}")
                code = current_facts().error_code
                span.set(
                    {
                        "http.route": route if route != UNROUTED else None,
                        "http.response.status_code": status or None,
                        "tis.request.id": current_request_id(),
                        "tis.error.code": code,
                    }
                )
                span.end(error or ((code or str(status)) if status >= _MIN_SERVER_ERROR else None))
