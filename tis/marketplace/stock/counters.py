"""Counters of a product: units on hand, and how many of them are reserved. Buyers change them only here.

They leave `version` and `updated_at` alone: those follow what the supplier says about the product.
"""

from collections.abc import Mapping
from typing import Any, cast

from sqlalchemy import CursorResult, Update, and_, exists, select, update
from sqlalchemy.orm import Session

from tis.errors import NotFound
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.tables import Product, Supplier

_BY_ACTIVE_SUPPLIER = exists().where(
    Supplier.id == Product.supplier_id, Supplier.status == "active", Supplier.deleted_at.is_(None)
)
_IS_ON_SALE = and_(Product.is_available.is_(True), Product.deleted_at.is_(None), _BY_ACTIVE_SUPPLIER)


def reserve_units(
    session: Session, search: ProductSearch, product_id: int, quantity: int, *, refreshes: bool = True
) -> int | None:
    """Returns how many are left; None if there are too few. Without `refreshes`, the caller refreshes if none is left.

    One UPDATE checks and takes, so that no other transaction can take the units in between.
    """
    num_changed = execute_update(
        session,
        update(Product)
        .where(Product.id == product_id, Product.on_hand - Product.reserved >= quantity, _IS_ON_SALE)
        .values(reserved=Product.reserved + quantity, updated_at=Product.updated_at),
    )
    if not num_changed:
        return None
    available = available_of(session, product_id)
    if available == 0 and refreshes:
        search.refresh(session, [product_id])
    return available


def release_units(session: Session, search: ProductSearch, quantities: Mapping[int, int]) -> None:
    """Of several products: locks them in the order of their ids, and all of them before the search index."""
    is_back = []
    for product_id, quantity in sorted(quantities.items()):
        execute_update(
            session,
            update(Product)
            .where(Product.id == product_id)
            .values(reserved=Product.reserved - quantity, updated_at=Product.updated_at),
        )
        if available_of(session, product_id) == quantity:
            is_back.append(product_id)
    search.refresh(session, is_back)


def sell_units(session: Session, product_id: int, quantity: int) -> int:
    """Sells reserved units: the number of available units stays the same. Returns how many are on hand then."""
    execute_update(
        session,
        update(Product)
        .where(Product.id == product_id)
        .values(
            on_hand=Product.on_hand - quantity,
            reserved=Product.reserved - quantity,
            updated_at=Product.updated_at,
        ),
    )
    return session.scalars(select(Product.on_hand).where(Product.id == product_id)).one()


def available_of(session: Session, product_id: int) -> int:
    return session.scalar(select(Product.on_hand - Product.reserved).where(Product.id == product_id)) or 0


def require_on_sale(session: Session, product_id: int) -> int:
    """Returns how many are available."""
    available = session.scalar(select(Product.on_hand - Product.reserved).where(Product.id == product_id, _IS_ON_SALE))
    if available is None:
        raise NotFound("Product not found")
    return available


def execute_update(session: Session, statement: Update) -> int:
    """Runs an UPDATE and returns how many rows it changed."""
    result = session.execute(statement, execution_options={"synchronize_session": False})
    return cast(CursorResult[Any], result).rowcount
