"""Invitations of the caller. They stand below `/users/me`, and every function here is of the room of suppliers."""

from datetime import datetime
from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel

from tis.marketplace.auth.schemas import TOKEN_REQUIRED, MembershipView
from tis.marketplace.context import ContextDep
from tis.marketplace.kit.docs import responses
from tis.marketplace.kit.fields import Id
from tis.marketplace.kit.responses import Message
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.suppliers import invitations

router = APIRouter(prefix="/users/me/invitations", tags=["suppliers"], route_class=CheckedRoute)

_EXAMPLE = {
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


@router.get("", responses=responses([_EXAMPLE], _USER_REQUIRED))
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
            for invitation, business_name in invitations.list_invitations(session, principal)
        ]


@router.post(
    "/{supplier_id}/accept",
    responses=responses({"supplier_id": 3, "role": "editor"}, _USER_REQUIRED, _NOT_INVITED),
)
def accept_invitation(context: ContextDep, supplier_id: Id) -> MembershipView:
    """Accept the invitation of a supplier: you work for it, and its owners see your first name."""
    with context.writing() as (session, principal):
        member = invitations.accept_invitation(session, principal, supplier_id)
        return MembershipView(supplier_id=member.supplier_id, role=member.role)


@router.delete("/{supplier_id}", responses=responses({"detail": "Declined."}, _USER_REQUIRED, _NOT_INVITED))
def decline_invitation(context: ContextDep, supplier_id: Id) -> Message:
    """Decline the invitation of a supplier."""
    with context.writing() as (session, principal):
        invitations.decline_invitation(session, principal, supplier_id)
    return Message(detail="Declined.")
