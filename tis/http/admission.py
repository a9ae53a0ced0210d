"""Gives every request a ticket before its body is read, and takes it back when its response has ended."""

from typing import cast

from fastapi import Request
from starlette._utils import get_route_path
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tis.admission.admission import Admission
from tis.admission.ticket import Ticket
from tis.errors import ServiceError, TooLarge
from tis.http.client_address import client_address
from tis.http.error_handlers import BodyRejected, error_response
from tis.observability.request_log import PROBES

# What a body without a Content-Length may have before it needs more room; it gets that at once, or a 429.
_STEP_BYTES = 2**20


class AdmissionMiddleware:
    """Inside the check of API keys, which names the owner. Elsewhere the owner is the address of the client.

    A request without a body, such as one that follows a stream, is counted and never waits. Probes have no ticket.
    """

    def __init__(self, app: ASGIApp, admission: Admission, max_body_bytes: int) -> None:
        self.app = app
        self._admission = admission
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and _content_length(scope) > self._max_body_bytes:
            await error_response(scope, self._too_large())(scope, receive, send)
            return
        if scope["type"] != "http" or get_route_path(scope) in PROBES:
            await self.app(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        ticket = state["ticket"] = self._admission.ticket(state.get("owner") or f"address {client_address(scope)}")
        try:
            announced = self._announced_bytes(scope)
            if announced is None:
                ticket.enter("answering")
            else:
                ticket.enter("receiving")
                try:
                    await ticket.take("requests", 1)
                    await ticket.take("body_bytes", announced)
                except ServiceError as error:
                    await error_response(scope, error)(scope, receive, send)
                    return
                receive = self._counting(receive, ticket)
            await self.app(scope, receive, send)
        finally:
            ticket.end_request()

    def _announced_bytes(self, scope: Scope) -> int | None:
        """None without a body."""
        if "transfer-encoding" in Headers(scope=scope):
            return min(_STEP_BYTES, self._max_body_bytes)
        return _content_length(scope) or None

    def _counting(self, receive: Receive, ticket: Ticket) -> Receive:
        num_bytes = 0

        async def counting_receive() -> Message:
            nonlocal num_bytes
            message = await receive()
            num_bytes += len(message.get("body", b""))
            if num_bytes > self._max_body_bytes:
                raise BodyRejected(self._too_large())
            try:
                while num_bytes > ticket.held("body_bytes") > 0:
                    ticket.take_now("body_bytes", _STEP_BYTES)
            except ServiceError as error:
                raise BodyRejected(error) from None
            if ticket.stage == "receiving" and not message.get("more_body", False):
                ticket.enter("preparing")
            return message

        return counting_receive

    def _too_large(self) -> TooLarge:
        return TooLarge(f"The body is larger than {self._max_body_bytes / 2**20:g} MiB, the limit of MAX_BODY_MB.")


def ticket_of(request: Request) -> Ticket:
    """Without the middleware a route must fail, not be without bounds."""
    return cast(Ticket, request.state.ticket)


def _content_length(scope: Scope) -> int:
    """The transport lets only a number of at most 64 bits through."""
    length = Headers(scope=scope).get("content-length", "0")[:20]
    return int(length) if length.isdecimal() else 0
