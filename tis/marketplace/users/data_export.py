"""Exports all data about a user, for the user."""

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from tis.marketplace.auth.account_export import account_export, columns_of, rows_of
from tis.marketplace.auth.accounts import user_account
from tis.marketplace.kit.principal import Principal
from tis.marketplace.policy import require_user
from tis.marketplace.tables import Review, Supplier, SupplierInvitation, SupplierMember
from tis.marketplace.users.service import find_user


def export_user_data(session: Session, principal: Principal) -> dict[str, Any]:
    user_id = require_user(principal)
    user = find_user(session, user_id)
    return {
        "profile": {**columns_of(user), "has_password": user.password_hash is not None},
        "memberships": _memberships(session, user_id),
        "invitations": rows_of(session, select(SupplierInvitation).where(SupplierInvitation.user_id == user_id)),
        "reviews": rows_of(session, select(Review).where(Review.user_id == user_id)),
        **account_export(session, user_account(user_id)),
    }


def _memberships(session: Session, user_id: int) -> list[dict[str, Any]]:
    rows = session.execute(
        select(SupplierMember, Supplier.business_name)
        .join(Supplier, Supplier.id == SupplierMember.supplier_id)
        .where(SupplierMember.user_id == user_id)
        .order_by(SupplierMember.supplier_id)
    )
    return [{**columns_of(member), "business_name": name} for member, name in rows]
