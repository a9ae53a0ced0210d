"""Who works for a supplier and who is signed in as it: members, invitations of the caller, sessions of its account.

Whoever registered a supplier holds its token, also after the owners removed that user: so owners list and end the
sessions of its own account. Not admins, and not everybody in open mode: who is signed in where is personal, and an
admin can suspend.
"""

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Depends
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from sqlalchemy.orm import Session

from tis.marketplace.auth.accounts import supplier_account
from tis.marketplace.auth.links import delete_links
from tis.marketplace.auth.schemas import SESSION_EXAMPLE, TOKEN_REQUIRED, MembershipView, SessionId, SessionView
from tis.marketplace.auth.shop_tokens import revoke_tokens_of
from tis.marketplace.auth.tokens import end_other_sessions_of, end_session_of, sessions_of
from tis.marketplace.context import ContextDep
from tis.marketplace.kit.docs import KEY_USED, example_body, responses
from tis.marketplace.kit.fields import Id
from tis.marketplace.kit.idempotency import IdempotencyKeyDep
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.responses import Message, json_response, no_store
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.policy import require_account_owner
from tis.marketplace.suppliers import members
from tis.marketplace.suppliers.schemas import (
    INVITED_EXAMPLE,
    LAST_OWNER,
    MEMBER_EXAMPLE,
    OWNER_REQUIRED,
    MemberView,
    NewMember,
)
from tis.marketplace.suppliers.service import lock_supplier_for_update, public_supplier

router = APIRouter(tags=["suppliers"], route_class=CheckedRoute)

_NO_STORE = [Depends(no_store)]
_SESSION_EXAMPLE = {**SESSION_EXAMPLE, "is_current": False}
_INVITATION_EXAMPLE = {
    "supplier_id": 3,
    "business_name": "Tech Store Jakarta",
    "role": "editor",
    "created_at": "2026-11-21T03:00:00Z",
    "expires_at": "2026-12-05T03:00:00Z",
}
_USER_REQUIRED = {**TOKEN_REQUIRED, 403: "Only a user may do that, not a supplier."}
_NOT_INVITED = {404: "There is no open invitation from this supplier."}


class InvitationView(BaseModel):
    supplier_id: int
    business_name: str
    role: Literal["owner", "editor"]
    created_at: datetime
    expires_at: datetime


@router.get("/suppliers/{supplier_id}/members", responses=responses([MEMBER_EXAMPLE], OWNER_REQUIRED))
def list_members(context: ContextDep, supplier_id: Id) -> list[MemberView]:
    """List the members of a supplier, then those it has invited."""
    with context.reading() as (session, principal):
        return members.list_members(session, principal, supplier_id)


@router.post(
    "/suppliers/{supplier_id}/members",
    response_model=MemberView,
    responses=responses(INVITED_EXAMPLE, OWNER_REQUIRED, LAST_OWNER, KEY_USED),
)
def put_member(
    context: ContextDep,
    supplier_id: Id,
    body: Annotated[NewMember, example_body({"user_id": 1, "role": "editor"})],
    idempotency_key: IdempotencyKeyDep,
) -> JSONResponse:
    """Invite a user to work for a supplier, or to become its owner. An owner who is a member becomes an editor at once.

    The user accepts with `POST /api/users/me/invitations/{supplier_id}/accept`.
    """
    with context.writing() as (session, principal):
        return idempotency_key.answer(
            session,
            principal,
            lambda: json_response(members.set_member(session, principal, supplier_id, body.user_id, body.role)),
        )


@router.delete(
    "/suppliers/{supplier_id}/members/{user_id}",
    responses=responses({"detail": "Removed."}, OWNER_REQUIRED, LAST_OWNER),
)
def delete_member(context: ContextDep, supplier_id: Id, user_id: Id) -> Message:
    """Remove a user from a supplier, or withdraw an invitation. Users may always remove themselves."""
    with context.writing() as (session, principal):
        members.remove_member(session, principal, supplier_id, user_id)
    return Message(detail="Removed.")


@router.get("/users/me/invitations", responses=responses([_INVITATION_EXAMPLE], _USER_REQUIRED))
def list_own_invitations(context: ContextDep) -> list[InvitationView]:
    """List the suppliers that invite you to work for them, newest first."""
    with context.reading() as (session, principal):
        return [
            InvitationView(
                supplier_id=invitation.supplier_id,
                business_name=business_name,
                role=invitation.role,
                created_at=invitation.created_at,
                expires_at=invitation.expires_at,
            )
            for invitation, business_name in members.open_invitations(session, principal)
        ]


@router.post(
    "/users/me/invitations/{supplier_id}/accept",
    responses=responses({"supplier_id": 3, "role": "editor"}, _USER_REQUIRED, _NOT_INVITED),
)
def accept_invitation(context: ContextDep, supplier_id: Id) -> MembershipView:
    """Accept the invitation of a supplier: you work for it, and its owners see your first name."""
    with context.writing() as (session, principal):
        member = members.accept_invitation(session, principal, supplier_id)
        return MembershipView(supplier_id=member.supplier_id, role=member.role)


@router.delete(
    "/users/me/invitations/{supplier_id}", responses=responses({"detail": "Declined."}, _USER_REQUIRED, _NOT_INVITED)
)
def decline_invitation(context: ContextDep, supplier_id: Id) -> Message:
    """Decline the invitation of a supplier."""
    with context.writing() as (session, principal):
        members.decline_invitation(session, principal, supplier_id)
    return Message(detail="Declined.")


@router.get(
    "/suppliers/{supplier_id}/sessions", dependencies=_NO_STORE, responses=responses([_SESSION_EXAMPLE], OWNER_REQUIRED)
)
def list_shop_sessions(context: ContextDep, supplier_id: Id) -> list[SessionView]:
    """List where the supplier's own account is signed in, for its owners, newest first; at most 100."""
    with context.reading() as (session, principal):
        public_supplier(session, principal, supplier_id)
        account = supplier_account(supplier_id)
        require_account_owner(principal, account)
        return sessions_of(session, principal, account)


@router.delete(
    "/suppliers/{supplier_id}/sessions",
    dependencies=_NO_STORE,
    responses=responses({"detail": "Signed out everywhere else."}, OWNER_REQUIRED),
)
def end_shop_sessions(context: ContextDep, supplier_id: Id) -> Message:
    """End all sessions of the supplier's own account but the caller's, for its owners.

    If an owner ends them, the supplier's open invitations, one-time links and the tokens it made end, too.
    """
    with context.writing() as (session, principal):
        account = _locked_account(session, principal, supplier_id)
        end_other_sessions_of(session, principal, account)
        _end_what_they_left(session, principal, supplier_id, account)
    return Message(detail="Signed out everywhere else.")


@router.delete(
    "/suppliers/{supplier_id}/sessions/{session_id}",
    dependencies=_NO_STORE,
    responses=responses({"detail": "Signed out."}, {**OWNER_REQUIRED, 404: "Session not found"}),
)
def end_shop_session(context: ContextDep, supplier_id: Id, session_id: SessionId) -> Message:
    """End a session of the supplier's own account, for its owners; its tokens are refused from then on.

    If an owner ends it, the supplier's open invitations, one-time links and the tokens it made end, too.
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
    """An invitation, a link that changes the e-mail, or a token would let in again whoever held the session."""
    if principal.account != account:
        members.withdraw_all(session, principal, supplier_id)
        delete_links(session, account)
        revoke_tokens_of(session, supplier_id, account)
