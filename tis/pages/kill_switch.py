"""POST /pages/kill: the chat page of a demo really kills the server, in mid-answer; its parent starts it again.

The server itself looks whether an answer is being written: a small model is at its end before a page on a busy machine
could say that it sees the beginning.

The route exists with DEMO=1, on a server that listens on loopback only and that has a parent, and nowhere else. A
program of this computer could end the process anyway; so what is kept out is the web page of a stranger.
"""

import asyncio
import time
from collections.abc import Callable, Iterable

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import JSONResponse
from starlette.background import BackgroundTask
from starlette.datastructures import Headers

from tis.errors import Forbidden
from tis.http.client_address import is_of_this_computer
from tis.http.dependencies import SessionsDep
from tis.http.hosts import host_name
from tis.http.origins import LOCAL_HOSTS
from tis.streaming.session import Session

router = APIRouter(include_in_schema=False)


_EVENTS_TO_SEE = 20  # of an answer, before the server is killed
_WAIT_SECONDS = 30.0
_LOOK_SECONDS = 0.005


class KillSwitch:
    """`kill` ends the process so that its parent starts it again; None where that cannot be."""

    def __init__(self, kill: Callable[[], None] | None) -> None:
        self._kill = kill
        self._is_set = False

    @property
    def exists(self) -> bool:
        return self._kill is not None

    async def pull_in_an_answer(self, sessions: Iterable[Session]) -> None:
        """Kills as soon as one is being written and has begun to be seen. If none comes, nothing happens."""
        if self._kill is None or self._is_set:
            return
        self._is_set = True
        end = time.monotonic() + _WAIT_SECONDS
        while time.monotonic() < end:
            if any(_can_be_seen(session) for session in sessions):
                return self._kill()
            await asyncio.sleep(_LOOK_SECONDS)
        self._is_set = False


def _can_be_seen(session: Session) -> bool:
    return session.is_running and session.recording.next_index - session.latest.first_index >= _EVENTS_TO_SEE


@router.post("/pages/kill")
async def kill_the_server(request: Request, sessions: SessionsDep) -> JSONResponse:
    switch: KillSwitch = request.app.state.kill_switch
    if not switch.exists:
        raise HTTPException(404)
    _require_own_page(request)
    return JSONResponse(
        {"will_be_killed": True}, status_code=202, background=BackgroundTask(switch.pull_in_an_answer, sessions)
    )


def _require_own_page(request: Request) -> None:
    """A browser names the page that sends a POST, and no page can make it name another one."""
    headers: Headers = request.headers
    own = f"{request.url.scheme}://{headers.get('host', '')}"
    # The name, too: a stranger's own name that resolves to this computer is of the same origin as the server.
    is_local_name = host_name(headers.get("host", "")) in LOCAL_HOSTS
    if not (is_of_this_computer(request.scope) and is_local_name and headers.get("origin") == own):
        raise Forbidden("Only the chat page of this server may do that, on this computer.")
