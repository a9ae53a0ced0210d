"""FastAPI dependencies: the long-lived parts of the app, for routes to declare by type.

All are `async`, because FastAPI runs plain functions in a thread for each request.
"""

from typing import Annotated, cast

from fastapi import Depends, Request
from fastapi.openapi.models import HTTPBearer
from fastapi.security.base import SecurityBase

from tis.engine.engine import Engine
from tis.http.read_tokens import ReadTokens
from tis.media.loader import MediaLoader
from tis.streaming.sessions import Sessions


async def _engine(request: Request) -> Engine:
    return cast(Engine, request.app.state.engine)


async def _sessions(request: Request) -> Sessions:
    return cast(Sessions, request.app.state.sessions)


async def _media(request: Request) -> MediaLoader:
    return cast(MediaLoader, request.app.state.media)


async def _read_tokens(request: Request) -> ReadTokens:
    return cast(ReadTokens, request.app.state.read_tokens)


class OwnerDependency(SecurityBase):
    """The owner of the client's sessions. ApiKeyMiddleware sets it; without it a route must fail, not be open.

    The description is for the button "Authorize" of /docs. A dependency only for that would cost each request 15 µs.
    """

    scheme_name = "ApiKey"
    model = HTTPBearer(description="A key of `API_KEYS` or `API_KEYS_FILE`. A server without keys needs none.")

    async def __call__(self, request: Request) -> str:
        return str(request.state.owner)


_owner = OwnerDependency()
# For routes that do not use the owner: /docs sends the key to them, too.
DOCUMENTED_KEY = Depends(_owner)


EngineDep = Annotated[Engine, Depends(_engine)]
SessionsDep = Annotated[Sessions, Depends(_sessions)]
MediaDep = Annotated[MediaLoader, Depends(_media)]
ReadTokensDep = Annotated[ReadTokens, Depends(_read_tokens)]
OwnerDep = Annotated[str, Depends(_owner)]
