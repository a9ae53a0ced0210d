"""POST /pages/kill: the chat page of a demo really kills the server, which its parent starts again.

The route exists with DEMO=1, on a server that listens on loopback only and that has a parent, and nowhere else. A
program of this computer could end the process anyway; so what is kept out is the web page of a stranger.
"""

from collections.abc import Callable

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import JSONResponse
from starlette.background import BackgroundTask
from starlette.datastructures import Headers

from tis.errors import Forbidden
from tis.http.client_address import is_of_this_computer
from tis.http.hosts import host_name
from tis.http.origins import LOCAL_HOSTS

router = APIRouter(include_in_schema=False)


class KillSwitch:
    """`kill` ends the process so that its parent starts it again; None where that cannot be."""

    def __init__(self, kill: Callable[[], None] | None) -> None:
        self._kill = kill

    @property
    def exists(self) -> bool:
        return self._kill is not None

    def pull(self) -> None:
        if self._kill:
            self._kill()


@router.post("/pages/kill")
async def kill_the_server(request: Request) -> JSONResponse:
    switch: KillSwitch = request.app.state.kill_switch
    if not switch.exists:
        raise HTTPException(404)
    _require_own_page(request)
    return JSONResponse({"killed": True}, status_code=202, background=BackgroundTask(switch.pull))


def _require_own_page(request: Request) -> None:
    """A browser names the page that sends a POST, and no page can make it name another one."""
    headers: Headers = request.headers
    own = f"{request.url.scheme}://{headers.get('host', '')}"
    # The name, too: a stranger's own name that resolves to this computer is of the same origin as the server.
    is_local_name = host_name(headers.get("host", "")) in LOCAL_HOSTS
    if not (is_of_this_computer(request.scope) and is_local_name and headers.get("origin") == own):
        raise Forbidden("Only the chat page of this server may do that, on this computer.")
