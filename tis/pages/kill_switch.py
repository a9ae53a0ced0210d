"""POST /pages/kill: the chat page of a demo really kills the server, in mid-answer; its parent starts it again.

The server itself counts what the page has of an answer: a small model is at its end before a page on a busy machine
could say that it sees the beginning.

The route exists with DEMO=1, on a server that listens on loopback only and that has a parent, and nowhere else. A
program of this computer could end the process anyway; so what is kept out is the web page of a stranger.
"""

import re
import time
from collections.abc import Callable

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import JSONResponse
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tis.errors import Forbidden
from tis.http.client_address import is_of_this_computer
from tis.http.hosts import host_name
from tis.http.origins import LOCAL_HOSTS

_EVENTS_TO_SEE = 20  # of an answer, before the server is killed
_WAIT_SECONDS = 30.0
_EVENT = re.compile(rb"^id: .*?\n\n", re.DOTALL | re.MULTILINE)

router = APIRouter(include_in_schema=False)


class KillSwitch:
    """`kill` ends the process so that its parent starts it again; None where that cannot be."""

    def __init__(self, kill: Callable[[], None] | None) -> None:
        self._kill = kill
        self._set_until = 0.0

    @property
    def exists(self) -> bool:
        return self._kill is not None

    @property
    def is_set(self) -> bool:
        return time.monotonic() < self._set_until

    def set(self) -> None:
        """The next answer, or the one that is being written, will be cut. If none comes, nothing happens."""
        self._set_until = time.monotonic() + _WAIT_SECONDS

    def pull(self) -> None:
        self._set_until = 0.0
        if self._kill:
            self._kill()


class KillSwitchMiddleware:
    """Kills the server as soon as enough events of one stream are sent, and before its last one is."""

    def __init__(self, app: ASGIApp, switch: KillSwitch) -> None:
        self._app = app
        self._switch = switch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        seen, is_stream = 0, False

        async def send_until_killed(message: Message) -> None:
            nonlocal seen, is_stream
            if message["type"] == "http.response.start":
                is_stream = Headers(raw=message["headers"]).get("content-type", "").startswith("text/event-stream")
            elif is_stream:
                body: bytes = message.get("body", b"")
                ends = [event.end() for event in _EVENT.finditer(body)]
                num_shown = max(0, _EVENTS_TO_SEE - seen)
                seen += len(ends)
                # A page that is late gets many at once: it shall have some of them, and never the last.
                if len(ends) > num_shown and self._switch.is_set:
                    shown = ends[num_shown - 1] if num_shown else 0
                    await send({"type": "http.response.body", "body": body[:shown], "more_body": True})
                    self._switch.pull()
                    message = {**message, "body": body[shown:]}
            await send(message)

        await self._app(scope, receive, send_until_killed)


@router.post("/pages/kill")
async def kill_the_server(request: Request) -> JSONResponse:
    switch: KillSwitch = request.app.state.kill_switch
    if not switch.exists:
        raise HTTPException(404)
    _require_own_page(request)
    switch.set()
    return JSONResponse({"will_be_killed": True}, status_code=202)


def _require_own_page(request: Request) -> None:
    """A browser names the page that sends a POST, and no page can make it name another one."""
    headers: Headers = request.headers
    own = f"{request.url.scheme}://{headers.get('host', '')}"
    # The name, too: a stranger's own name that resolves to this computer is of the same origin as the server.
    is_local_name = host_name(headers.get("host", "")) in LOCAL_HOSTS
    if not (is_of_this_computer(request.scope) and is_local_name and headers.get("origin") == own):
        raise Forbidden("Only the chat page of this server may do that, on this computer.")
