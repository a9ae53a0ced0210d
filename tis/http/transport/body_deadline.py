"""BodyDeadlineMiddleware: a client that sends its body too slowly gets a 408."""

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tis.http.error_handlers import BodyRejected
from tis.http.errors import RequestTimeout
from tis.observability.metrics import TRANSPORT_REFUSALS

# Slower than this, and the deadline comes.
_MIN_BYTES_PER_SECOND = 8 * 1024
_WITH_BODY = frozenset({"POST", "PUT", "PATCH", "DELETE"})


class BodyDeadlineMiddleware:
    """Limits the time in which the app waits for the body: `seconds`, and one more for every 8 KiB that have arrived.

    Time in which the app does not read, as it waits for something else, is not the client's. A complete body ends it:
    an answer may take any time. No route reads the body of a GET.
    """

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self.app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in _WITH_BODY:
            await self.app(scope, receive, send)
            return
        clock = asyncio.get_running_loop().time
        left = self._seconds
        is_complete = False

        async def timed_receive() -> Message:
            nonlocal left, is_complete
            if is_complete:
                return await receive()
            began = clock()
            try:
                async with asyncio.timeout(left):
                    message = await receive()
            except TimeoutError:
                TRANSPORT_REFUSALS.labels("body_timeout").inc()
                raise BodyRejected(
                    RequestTimeout(
                        f"The body did not arrive in time: {self._seconds:g} s (BODY_TIMEOUT_SECONDS), and one more "
                        f"for every {_MIN_BYTES_PER_SECOND:,} bytes.",
                        code="body_timeout",
                    )
                ) from None
            left += len(message.get("body", b"")) / _MIN_BYTES_PER_SECOND - (clock() - began)
            is_complete = not message.get("more_body", False)
            return message

        await self.app(scope, timed_receive, send)
