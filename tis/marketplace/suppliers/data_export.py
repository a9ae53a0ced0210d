"""Exports all data about a supplier, for its own account and its owners. Its products have a CSV export."""

from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from tis.errors import NotFound
from tis.marketplace.auth.accounts import account_export, columns_of, supplier_account
from tis.marketplace.kit.fields import abbreviated_name
from tis.marketplace.kit.principal import Principal
from tis.marketplace.policy import require_account_owner
from tis.marketplace.tables import Product, Supplier, SupplierMember, User


def export_supplier_data(session: Session, principal: Principal, supplier_id: int) -> dict[str, Any]:
    account = supplier_account(supplier_id)
    require_account_owner(principal, account)
    supplier = session.get(Supplier, supplier_id)
    if supplier is None:
        raise NotFound("Supplier not found")
    goods = session.scalar(select(func.count()).where(Product.supplier_id == supplier_id))
    return {
        "profile": {**columns_of(supplier), "has_password": supplier.password_hash is not None},
        "members": _members(session, supplier_id),
        "product_count": goods,
        **account_export(session, account),
    }


def _members(session: Session, supplier_id: int) -> list[dict[str, Any]]:
    rows = session.execute(
        select(SupplierMember, User.name)
        .join(User, User.id == SupplierMember.user_id)
        .where(SupplierMember.supplier_id == supplier_id)
        .order_by(SupplierMember.user_id)
    )
    return [{**columns_of(member), "name": abbreviated_name(name)} for member, name in rows]
