"""Gives every request a ticket before its body is read, and takes it back when its response has ended."""

from typing import cast

from fastapi import Request
from starlette._utils import get_route_path
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tis.admission.admission import Admission
from tis.admission.ticket import Ticket
from tis.errors import ServiceError
from tis.http.client_address import client_address
from tis.http.error_handlers import BodyRejected, error_response
from tis.http.start_pacing import StartPacer
from tis.observability.request_log import PROBES

# What a body without a Content-Length may have before it needs more room; it gets that at once, or a 429.
_STEP_BYTES = 2**20


class AdmissionMiddleware:
    """Inside the check of API keys, which names the owner. Elsewhere the owner is the address of the client.

    A request without a body, such as one that follows a stream, is counted and never waits for room. Probes have no
    ticket and start at once.
    """

    def __init__(self, app: ASGIApp, admission: Admission, max_body_bytes: int) -> None:
        self.app = app
        self._admission = admission
        self._max_body_bytes = max_body_bytes
        self._pacer = StartPacer()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or get_route_path(scope) in PROBES:
            await self.app(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        owner = state.get("owner") or f"address {client_address(scope)}"
        await self._pacer.turn(owner)
        ticket = state["ticket"] = self._admission.ticket(owner, state.get("meter"))
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
                receive = _counting(receive, ticket)
            await self.app(scope, receive, send)
        finally:
            ticket.end_request()

    def _announced_bytes(self, scope: Scope) -> int | None:
        """None without a body. A larger body than the server takes is refused while it is read."""
        headers = Headers(scope=scope)
        if "transfer-encoding" in headers:
            return min(_STEP_BYTES, self._max_body_bytes)
        length = headers.get("content-length", "0")[:19]
        return min(int(length), self._max_body_bytes) or None if length.isdecimal() else None


def ticket_of(request: Request) -> Ticket:
    """Without the middleware a route must fail, not be without bounds."""
    return cast(Ticket, request.state.ticket)


def _counting(receive: Receive, ticket: Ticket) -> Receive:
    num_bytes = 0

    async def counting_receive() -> Message:
        nonlocal num_bytes
        message = await receive()
        num_bytes += len(message.get("body", b""))
        try:
            while num_bytes > ticket.held("body_bytes") > 0:
                ticket.take_now("body_bytes", _STEP_BYTES)
        except ServiceError as error:
            raise BodyRejected(error) from None
        if ticket.stage == "receiving" and not message.get("more_body", False):
            ticket.enter("preparing")
        return message

    return counting_receive
