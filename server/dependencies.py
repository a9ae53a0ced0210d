"""The parts of the app that routes ask for by type."""

from typing import Annotated, cast

from fastapi import Depends, Request

from server.engine.front_desk import FrontDesk
from server.security.keys import ANONYMOUS
from server.settings import Settings
from server.streaming.sessions import Sessions


def _engine(request: Request) -> FrontDesk:
    return cast(FrontDesk, request.app.state.engine)


def _sessions(request: Request) -> Sessions:
    return cast(Sessions, request.app.state.sessions)


def _settings(request: Request) -> Settings:
    return cast(Settings, request.app.state.settings)


def _owner(request: Request) -> str:
    """Set by the guard; whose sessions these are."""
    return str(getattr(request.state, "owner", ANONYMOUS))


EngineDep = Annotated[FrontDesk, Depends(_engine)]
SessionsDep = Annotated[Sessions, Depends(_sessions)]
RulesDep = Annotated[Settings, Depends(_settings)]
OwnerDep = Annotated[str, Depends(_owner)]
