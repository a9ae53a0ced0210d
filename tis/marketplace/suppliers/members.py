"""The users who work for a supplier. A supplier without a password of its own keeps at least one owner.

An owner invites; only the user makes a member of it. Whoever changes members or invitations locks the row of the
supplier first.
"""

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import Row, delete, func, select
from sqlalchemy.orm import Session

from tis.errors import Conflict, NotFound
from tis.marketplace.auth.accounts import account_holder, user_account
from tis.marketplace.auth.shop_tokens import revoke_tokens_of
from tis.marketplace.columns import now
from tis.marketplace.kit import audit
from tis.marketplace.kit.principal import Principal
from tis.marketplace.policy import require_owner, require_user
from tis.marketplace.suppliers.schemas import MemberView, invitation_view, member_view
from tis.marketplace.suppliers.service import lock_supplier_for_update, public_supplier
from tis.marketplace.tables import Supplier, SupplierInvitation, SupplierMember, User

_INVITED_FOR = timedelta(days=14)
_MAX_MEMBERS = 100  # of a supplier, with those it has invited


def list_members(session: Session, principal: Principal, supplier_id: int) -> list[MemberView]:
    """Members, then open invitations."""
    public_supplier(session, principal, supplier_id)
    require_owner(principal, supplier_id)
    members = session.execute(
        select(SupplierMember, User.name)
        .join(User, User.id == SupplierMember.user_id)
        .where(SupplierMember.supplier_id == supplier_id)
        .order_by(SupplierMember.user_id)
    )
    invited = (
        select(SupplierInvitation)
        .where(SupplierInvitation.supplier_id == supplier_id, SupplierInvitation.expires_at > now())
        .order_by(SupplierInvitation.user_id)
    )
    return [
        *(member_view(member, name) for member, name in members),
        *map(invitation_view, session.scalars(invited)),
    ]


def set_member(session: Session, principal: Principal, supplier_id: int, user_id: int, role: str) -> MemberView:
    """Invites the user, also a member who is to become an owner. A member's role is lowered at once."""
    supplier = lock_supplier_for_update(session, principal, supplier_id)
    name = session.scalar(select(User.name).where(User.id == user_id, User.deleted_at.is_(None)))
    if name is None:
        raise NotFound("User not found")
    member = session.get(SupplierMember, (supplier_id, user_id), populate_existing=True)
    withdraw_invitation(session, supplier_id, user_id)
    before = member.role if member else None
    if member is None or (role == "owner" and member.role != "owner"):
        if member is None:
            _require_room(session, supplier_id)
        moment = now()
        invitation = SupplierInvitation(
            supplier_id=supplier_id, user_id=user_id, role=role, created_at=moment, expires_at=moment + _INVITED_FOR
        )
        session.add(invitation)
        session.flush()
        audit.note(session, principal, "member.invite", "supplier", supplier_id, user_id=user_id, role=[before, role])
        return invitation_view(invitation)
    if role != "owner":
        require_another_owner(session, supplier, user_id)
    member.role = role
    if before == "owner" and role != "owner":
        withdraw_all(session, principal, supplier_id)
        revoke_tokens_of(session, supplier_id, user_account(user_id))
    session.flush()
    if before != role:
        audit.note(session, principal, "member.set", "supplier", supplier_id, user_id=user_id, role=[before, role])
    return member_view(member, name)


def remove_member(session: Session, principal: Principal, supplier_id: int, user_id: int) -> None:
    """Owners remove anybody, and withdraw invitations; every member may leave."""
    if principal.user_id == user_id and supplier_id in principal.supplier_ids:
        supplier = lock_supplier_row(session, supplier_id)
    else:
        supplier = lock_supplier_for_update(session, principal, supplier_id)
    was_invited = withdraw_invitation(session, supplier_id, user_id)
    member = session.get(SupplierMember, (supplier_id, user_id), populate_existing=True)
    if supplier is None or (member is None and not was_invited):
        raise NotFound("Member not found")
    before = None
    if member is not None:
        require_another_owner(session, supplier, user_id)
        before = member.role
        session.delete(member)
        revoke_tokens_of(session, supplier_id, user_account(user_id))
        if before == "owner" and principal.user_id != user_id:
            withdraw_all(session, principal, supplier_id)
    audit.note(session, principal, "member.remove", "supplier", supplier_id, user_id=user_id, role=[before, None])


def lock_supplier_row(session: Session, supplier_id: int) -> Supplier | None:
    """For members, who need no rights to leave or to come: see `lock_supplier_for_update`."""
    return session.get(Supplier, supplier_id, with_for_update={"key_share": True}, populate_existing=True)


def withdraw_invitation(session: Session, supplier_id: int, user_id: int) -> bool:
    """Whether there was one. The caller has locked the row of the supplier."""
    invitation = session.get(SupplierInvitation, (supplier_id, user_id), populate_existing=True)
    if invitation is None:
        return False
    was_open = invitation.expires_at > now()
    session.delete(invitation)
    session.flush()
    return was_open


def withdraw_all(session: Session, principal: Principal, supplier_id: int) -> None:
    """When an owner is removed, or a session of the supplier is ended: its invitations would let it in again, under
    another name. The caller has locked the row of the supplier.
    """
    of_supplier = SupplierInvitation.supplier_id == supplier_id
    invited = session.scalars(
        select(SupplierInvitation.user_id).where(of_supplier).order_by(SupplierInvitation.user_id)
    )
    if user_ids := list(invited):
        session.execute(delete(SupplierInvitation).where(of_supplier))
        audit.note(session, principal, "member.withdraw", "supplier", supplier_id, user_id=user_ids)


def require_another_owner(session: Session, supplier: Supplier, user_id: int) -> None:
    """The caller has locked the row of the supplier, or two owners could leave at the same moment."""
    signs_in_by_itself = supplier.password_hash is not None
    if supplier.deleted_at is None and not signs_in_by_itself and owners_of(session, supplier.id) == {user_id}:
        raise Conflict(
            f"This is the last owner of supplier {supplier.id}. Name another one, "
            "give the supplier a password, or delete it first."
        )


def owners_of(session: Session, supplier_id: int) -> set[int]:
    owners = select(SupplierMember.user_id).where(
        SupplierMember.supplier_id == supplier_id, SupplierMember.role == "owner"
    )
    return set(session.scalars(owners))


def _require_room(session: Session, supplier_id: int) -> None:
    expired = SupplierInvitation.supplier_id == supplier_id, SupplierInvitation.expires_at <= now()
    session.execute(delete(SupplierInvitation).where(*expired))
    num_people = sum(
        session.scalar(select(func.count()).where(table.supplier_id == supplier_id)) or 0
        for table in (SupplierMember, SupplierInvitation)
    )
    if num_people >= _MAX_MEMBERS:
        raise Conflict(f"A supplier has at most {_MAX_MEMBERS} members and invitations.")


_MAX_LISTED = 100  # the newest; one that is accepted or declined makes room
_NOT_INVITED = "There is no open invitation from this supplier."


def open_invitations(session: Session, principal: Principal) -> Sequence[Row[SupplierInvitation, str]]:
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
        raise NotFound(_NOT_INVITED)
    role, is_open = invitation.role, invitation.expires_at > now()
    if not (is_open and supplier.is_active):
        raise NotFound(_NOT_INVITED)
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
        raise NotFound(_NOT_INVITED)
    audit.note(session, principal, "member.decline", "supplier", supplier_id, user_id=user_id)
