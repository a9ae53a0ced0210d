"""Where an account is signed in: listed, and ended by the account itself or by the owners of a supplier."""

from datetime import datetime
from typing import Annotated

from fastapi import Path
from pydantic import BaseModel
from sqlalchemy.orm import Session

from tis.errors import NotFound
from tis.marketplace.auth.accounts import split_account
from tis.marketplace.auth.tokens import active_links, end_all_chains, end_chain
from tis.marketplace.kit import audit
from tis.marketplace.kit.principal import Principal
from tis.marketplace.tables import RefreshToken

_MAX_LISTED = 100
SESSION_EXAMPLE = {
    "id": "9f2c4a7be0d14c55a1b3c8d7e6f50412",
    "is_current": True,
    "agent": "Mozilla/5.0 (Android 16; Mobile; rv:150.0) Gecko/150.0 Firefox/150.0",
    "signed_in_at": "2026-11-21T03:00:00Z",
    "refreshed_at": "2026-11-22T03:00:00Z",
    "expires_at": "2026-11-29T03:00:00Z",
}
SessionId = Annotated[str, Path(pattern="^[0-9a-f]{32}$")]


class SessionView(BaseModel):
    id: str
    is_current: bool
    agent: str | None
    signed_in_at: datetime
    refreshed_at: datetime
    expires_at: datetime


def list_sessions(session: Session, principal: Principal, account: str) -> list[SessionView]:
    """Newest first."""
    links = session.scalars(active_links(account).limit(_MAX_LISTED))
    return [_session_view(link, principal) for link in links]


def end_session(session: Session, principal: Principal, account: str, session_id: str) -> None:
    own = active_links(account).where(RefreshToken.chain == session_id)
    if session.scalar(own.limit(1)) is None:
        raise NotFound("Session not found")
    end_chain(session, session_id, signed_out=principal.account == account)
    _note(session, principal, account)


def end_other_sessions(session: Session, principal: Principal, account: str) -> None:
    """All but the session of the caller."""
    end_all_chains(session, account, except_chain=principal.chain, signed_out=principal.account == account)
    _note(session, principal, account)


def _session_view(link: RefreshToken, principal: Principal) -> SessionView:
    return SessionView(
        id=link.chain,
        is_current=link.chain == principal.chain,
        agent=link.agent,
        signed_in_at=link.signed_in_at,
        refreshed_at=link.created_at,
        expires_at=link.expires_at,
    )


def _note(session: Session, principal: Principal, account: str) -> None:
    kind, number = split_account(account)
    audit.note(session, principal, f"{kind}.sign_out", kind, number)
