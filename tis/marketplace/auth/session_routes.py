"""The sessions of an account: where it is signed in. They are listed, and ended one by one or all together."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Path
from pydantic import BaseModel
from sqlalchemy.orm import Session

from tis.errors import NotFound
from tis.marketplace.auth.schemas import TOKEN_REQUIRED
from tis.marketplace.auth.tokens import active_links, end_all_chains, end_chain
from tis.marketplace.context import ContextDep
from tis.marketplace.kit import audit
from tis.marketplace.kit.docs import responses
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.responses import Message, no_store
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.policy import require_account
from tis.marketplace.tables import RefreshToken

router = APIRouter(
    prefix="/auth/sessions", tags=["accounts"], dependencies=[Depends(no_store)], route_class=CheckedRoute
)

_MAX_LISTED = 100
_SESSION_EXAMPLE = {
    "id": "9f2c4a7be0d14c55a1b3c8d7e6f50412",
    "is_current": True,
    "agent": "Mozilla/5.0 (Android 16; Mobile; rv:150.0) Gecko/150.0 Firefox/150.0",
    "signed_in_at": "2026-11-21T03:00:00Z",
    "refreshed_at": "2026-11-22T03:00:00Z",
    "expires_at": "2026-11-29T03:00:00Z",
}
_SessionId = Annotated[str, Path(pattern="^[0-9a-f]{32}$")]


class SessionView(BaseModel):
    id: str
    is_current: bool
    agent: str | None
    signed_in_at: datetime
    refreshed_at: datetime
    expires_at: datetime


@router.get("", responses=responses([_SESSION_EXAMPLE], TOKEN_REQUIRED))
def list_sessions(context: ContextDep) -> list[SessionView]:
    """List where the caller is signed in, newest first; at most 100."""
    with context.reading() as (session, principal):
        links = active_links(require_account(principal)).limit(_MAX_LISTED)
        return [_session_view(link, principal) for link in session.scalars(links)]


@router.delete("", responses=responses({"detail": "Signed out everywhere else."}, TOKEN_REQUIRED))
def end_other_sessions(context: ContextDep) -> Message:
    """End all sessions of the caller but this one."""
    with context.writing() as (session, principal):
        end_all_chains(session, require_account(principal), except_chain=principal.chain)
        _note(session, principal)
    return Message(detail="Signed out everywhere else.")


@router.delete(
    "/{session_id}", responses=responses({"detail": "Signed out."}, {**TOKEN_REQUIRED, 404: "Session not found"})
)
def end_session(context: ContextDep, session_id: _SessionId) -> Message:
    """End a session of the caller; its tokens are refused from then on."""
    with context.writing() as (session, principal):
        own = active_links(require_account(principal)).where(RefreshToken.chain == session_id)
        if session.scalar(own.limit(1)) is None:
            raise NotFound("Session not found")
        end_chain(session, session_id)
        _note(session, principal)
    return Message(detail="Signed out.")


def _session_view(link: RefreshToken, principal: Principal) -> SessionView:
    return SessionView(
        id=link.chain,
        is_current=link.chain == principal.chain,
        agent=link.agent,
        signed_in_at=link.signed_in_at or link.created_at,
        refreshed_at=link.created_at,
        expires_at=link.expires_at,
    )


def _note(session: Session, principal: Principal) -> None:
    kind, _, number = require_account(principal).partition(":")
    audit.note(session, principal, f"{kind}.sign_out", kind, number)
