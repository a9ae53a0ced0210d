"""Invitations of the calling user to work for a supplier: list, accept and decline them."""

from collections.abc import Sequence

from sqlalchemy import Row, select
from sqlalchemy.orm import Session

from tis.errors import NotFound
from tis.marketplace.auth.accounts import account_holder, user_account
from tis.marketplace.columns import now
from tis.marketplace.kit import audit
from tis.marketplace.kit.principal import Principal
from tis.marketplace.policy import require_user
from tis.marketplace.suppliers.members import lock_supplier_row, withdraw_invitation
from tis.marketplace.tables import Supplier, SupplierInvitation, SupplierMember

_MAX_LISTED = 100  # the newest; one that is accepted or declined makes room
_NONE = "There is no open invitation from this supplier."


def list_invitations(session: Session, principal: Principal) -> Sequence[Row[SupplierInvitation, str]]:
    """Newest first, each with the business name. Closed and suspended suppliers invite nobody."""
    open_ones = (
        select(SupplierInvitation, Supplier.business_name)
        .join(Supplier, Supplier.id == SupplierInvitation.supplier_id)
        .where(
            SupplierInvitation.user_id == require_user(principal),
            SupplierInvitation.expires_at > now(),
            Supplier.status == "active",
            Supplier.deleted_at.is_(None),
        )
        .order_by(SupplierInvitation.created_at.desc(), SupplierInvitation.supplier_id)
        .limit(_MAX_LISTED)
    )
    return session.execute(open_ones).all()


def accept_invitation(session: Session, principal: Principal, supplier_id: int) -> SupplierMember:
    """Locks the supplier and the user, in the order of `delete_user`: who is being deleted becomes no member."""
    user_id = require_user(principal)
    if principal.is_admin:
        account_holder(session, user_account(user_id), locked=True)  # `delete_user` locks all admins first
    supplier = lock_supplier_row(session, supplier_id)
    user = account_holder(session, user_account(user_id), locked=True)
    invitation = session.get(SupplierInvitation, (supplier_id, user_id), populate_existing=True)
    if supplier is None or user is None or invitation is None:
        raise NotFound(_NONE)
    role, is_open = invitation.role, invitation.expires_at > now()
    if not (is_open and supplier.is_active):
        raise NotFound(_NONE)
    session.delete(invitation)
    member = session.get(SupplierMember, (supplier_id, user_id), populate_existing=True)
    before = member.role if member else None
    if member is None:
        member = SupplierMember(supplier_id=supplier_id, user_id=user_id)
        session.add(member)
    member.role = role
    session.flush()
    audit.note(session, principal, "member.accept", "supplier", supplier_id, user_id=user_id, role=[before, role])
    return member


def decline_invitation(session: Session, principal: Principal, supplier_id: int) -> None:
    user_id = require_user(principal)
    lock_supplier_row(session, supplier_id)
    if not withdraw_invitation(session, supplier_id, user_id):
        raise NotFound(_NONE)
    audit.note(session, principal, "member.decline", "supplier", supplier_id, user_id=user_id)
