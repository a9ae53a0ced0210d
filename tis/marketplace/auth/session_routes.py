"""The sessions of the caller. Those of a supplier, for its owners: `tis/marketplace/suppliers/shop_sessions.py`."""

from fastapi import APIRouter, Depends

from tis.marketplace.auth import sessions
from tis.marketplace.auth.schemas import TOKEN_REQUIRED
from tis.marketplace.auth.sessions import SESSION_EXAMPLE, SessionId, SessionView
from tis.marketplace.context import ContextDep
from tis.marketplace.kit.docs import responses
from tis.marketplace.kit.responses import Message, no_store
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.policy import require_account

router = APIRouter(
    prefix="/auth/sessions", tags=["accounts"], dependencies=[Depends(no_store)], route_class=CheckedRoute
)


@router.get("", responses=responses([SESSION_EXAMPLE], TOKEN_REQUIRED))
def list_sessions(context: ContextDep) -> list[SessionView]:
    """List where the caller is signed in, newest first; at most 100."""
    with context.reading() as (session, principal):
        return sessions.list_sessions(session, principal, require_account(principal))


@router.delete("", responses=responses({"detail": "Signed out everywhere else."}, TOKEN_REQUIRED))
def end_other_sessions(context: ContextDep) -> Message:
    """End all sessions of the caller but this one."""
    with context.writing() as (session, principal):
        sessions.end_other_sessions(session, principal, require_account(principal))
    return Message(detail="Signed out everywhere else.")


@router.delete(
    "/{session_id}", responses=responses({"detail": "Signed out."}, {**TOKEN_REQUIRED, 404: "Session not found"})
)
def end_session(context: ContextDep, session_id: SessionId) -> Message:
    """End a session of the caller; its tokens are refused from then on."""
    with context.writing() as (session, principal):
        sessions.end_session(session, principal, require_account(principal), session_id)
    return Message(detail="Signed out.")
