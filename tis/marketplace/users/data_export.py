"""Exports all data about a user, for the user."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, or_, select
from sqlalchemy.orm import Session

from tis.marketplace.auth.accounts import user_account
from tis.marketplace.kit.principal import Principal
from tis.marketplace.policy import require_user
from tis.marketplace.tables import (
    AuditEntry,
    IdempotentRequest,
    PriceChange,
    RefreshToken,
    Reservation,
    Review,
    StockMovement,
    Supplier,
    SupplierInvitation,
    SupplierMember,
    Table,
)
from tis.marketplace.users.service import find_user

# Hashes and the normalized e-mail add nothing to the rest; digests and chains are parts of credentials.
_EXCLUDED = {"password_hash", "email_key", "digest", "chain", "request_digest"}


def export_user_data(session: Session, principal: Principal) -> dict[str, Any]:
    user_id = require_user(principal)
    user, account = find_user(session, user_id), user_account(user_id)
    about_user = (AuditEntry.entity == "user") & (AuditEntry.entity_id == str(user_id))
    return {
        "profile": {**_columns(user), "has_password": user.password_hash is not None},
        "memberships": _memberships(session, user_id),
        "invitations": _rows(session, select(SupplierInvitation).where(SupplierInvitation.user_id == user_id)),
        "reviews": _rows(session, select(Review).where(Review.user_id == user_id)),
        "reservations": _rows(session, select(Reservation).where(Reservation.actor == account)),
        "stock_movements": _rows(session, select(StockMovement).where(StockMovement.actor == account)),
        "price_changes": _rows(session, select(PriceChange).where(PriceChange.actor == account)),
        "sessions": _rows(session, select(RefreshToken).where(RefreshToken.account == account)),
        "remembered_answers": _rows(session, select(IdempotentRequest).where(IdempotentRequest.actor == account)),
        "audit_log": _rows(session, select(AuditEntry).where(or_(AuditEntry.actor == account, about_user))),
    }


def _memberships(session: Session, user_id: int) -> list[dict[str, Any]]:
    rows = session.execute(
        select(SupplierMember, Supplier.business_name)
        .join(Supplier, Supplier.id == SupplierMember.supplier_id)
        .where(SupplierMember.user_id == user_id)
        .order_by(SupplierMember.supplier_id)
    )
    return [{**_columns(member), "business_name": name} for member, name in rows]


def _rows(session: Session, statement: Select[Any]) -> list[dict[str, Any]]:
    found: Sequence[Table] = session.scalars(statement).all()
    return sorted((_columns(row) for row in found), key=lambda row: str(row.get("created_at") or row.get("at")))


def _columns(row: Table) -> dict[str, Any]:
    return {column.key: getattr(row, column.key) for column in row.__table__.columns if column.key not in _EXCLUDED}
