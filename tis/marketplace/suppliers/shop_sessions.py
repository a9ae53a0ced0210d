"""The sessions of a supplier's own account, for its owners: whoever registered the supplier holds its token, also
after the owners removed that user.

Not for admins, and not for everybody in open mode: who is signed in where is personal. An admin suspends.
"""

from fastapi import APIRouter, Depends
from sqlalchemy.orm import Session

from tis.marketplace.auth.accounts import supplier_account
from tis.marketplace.auth.links import delete_links
from tis.marketplace.auth.schemas import SESSION_EXAMPLE, SessionId, SessionView
from tis.marketplace.auth.tokens import end_other_sessions_of, end_session_of, sessions_of
from tis.marketplace.context import ContextDep
from tis.marketplace.kit.docs import responses
from tis.marketplace.kit.fields import Id
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.responses import Message, no_store
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.policy import require_account_owner
from tis.marketplace.suppliers.members import withdraw_all
from tis.marketplace.suppliers.schemas import OWNER_REQUIRED
from tis.marketplace.suppliers.service import lock_supplier_for_update, public_supplier

router = APIRouter(
    prefix="/suppliers/{supplier_id}/sessions",
    tags=["suppliers"],
    dependencies=[Depends(no_store)],
    route_class=CheckedRoute,
)

_EXAMPLE = {**SESSION_EXAMPLE, "is_current": False}


@router.get("", responses=responses([_EXAMPLE], OWNER_REQUIRED))
def list_shop_sessions(context: ContextDep, supplier_id: Id) -> list[SessionView]:
    """List where the supplier's own account is signed in, for its owners, newest first; at most 100."""
    with context.reading() as (session, principal):
        public_supplier(session, principal, supplier_id)
        account = supplier_account(supplier_id)
        require_account_owner(principal, account)
        return sessions_of(session, principal, account)


@router.delete("", responses=responses({"detail": "Signed out everywhere else."}, OWNER_REQUIRED))
def end_shop_sessions(context: ContextDep, supplier_id: Id) -> Message:
    """End all sessions of the supplier's own account but the caller's, for its owners.

    If an owner ends them, the open invitations and one-time links of the supplier end, too.
    """
    with context.writing() as (session, principal):
        account = _locked_account(session, principal, supplier_id)
        end_other_sessions_of(session, principal, account)
        _end_what_they_left(session, principal, supplier_id, account)
    return Message(detail="Signed out everywhere else.")


@router.delete(
    "/{session_id}",
    responses=responses({"detail": "Signed out."}, {**OWNER_REQUIRED, 404: "Session not found"}),
)
def end_shop_session(context: ContextDep, supplier_id: Id, session_id: SessionId) -> Message:
    """End a session of the supplier's own account, for its owners; its tokens are refused from then on.

    If an owner ends it, the open invitations and one-time links of the supplier end, too.
    """
    with context.writing() as (session, principal):
        account = _locked_account(session, principal, supplier_id)
        end_session_of(session, principal, account, session_id)
        _end_what_they_left(session, principal, supplier_id, account)
    return Message(detail="Signed out.")


def _locked_account(session: Session, principal: Principal, supplier_id: int) -> str:
    """Locked as by a login and a refresh: no session begins while others end."""
    lock_supplier_for_update(session, principal, supplier_id)
    account = supplier_account(supplier_id)
    require_account_owner(principal, account)
    return account


def _end_what_they_left(session: Session, principal: Principal, supplier_id: int, account: str) -> None:
    """An invitation, or a link that changes the e-mail, would let in again whoever held the session."""
    if principal.account != account:
        withdraw_all(session, principal, supplier_id)
        delete_links(session, account)
