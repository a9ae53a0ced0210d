"""Counters of a product: units on hand, and how many of them are reserved. Buyers change them only here.

They leave `version` and `updated_at` alone: those follow what the supplier says about the product.
"""

from collections.abc import Mapping
from typing import Any, cast

from sqlalchemy import CursorResult, Update, and_, exists, select, update
from sqlalchemy.orm import Session

from tis.errors import Conflict, NotFound
from tis.marketplace.kit.fields import MAX_STOCK
from tis.marketplace.kit.news import News
from tis.marketplace.kit.notice_outbox import notify
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.tables import NoticePreferences, Product, Supplier

_BY_ACTIVE_SUPPLIER = exists().where(
    Supplier.id == Product.supplier_id, Supplier.status == "active", Supplier.deleted_at.is_(None)
)
_IS_ON_SALE = and_(Product.is_available.is_(True), Product.deleted_at.is_(None), _BY_ACTIVE_SUPPLIER)


def take_units(session: Session, product_id: int, quantity: int) -> int | None:
    """Returns how many are left; None if there are too few. Where it is 0, the caller refreshes the search.

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
    columns = select(Product.on_hand - Product.reserved, Product.supplier_id)
    available, supplier_id = session.execute(columns.where(Product.id == product_id)).one()
    _tell_low_stock(session, product_id, supplier_id, available + quantity, available)
    return int(available)


def _tell_low_stock(session: Session, product_id: int, supplier_id: int, before: int, available: int) -> None:
    """Once per fall: the product is locked, so one transaction takes the unit that is too many."""
    of_shop = NoticePreferences.account == f"supplier:{supplier_id}"
    limit = session.scalar(select(NoticePreferences.low_stock_below).where(of_shop))
    if limit is not None and available < limit <= before:
        data = {"product_id": product_id, "supplier_id": supplier_id, "available": available}
        notify(session, [News("stock.low", data, supplier_id=supplier_id)])


def give_back_units(session: Session, quantities: Mapping[int, int]) -> list[int]:
    """Makes reserved units available. Returns the products that had none before: the caller refreshes the search."""
    is_back = []
    for product_id, quantity in sorted(quantities.items()):
        execute_update(
            session,
            update(Product)
            .where(Product.id == product_id)
            .values(reserved=Product.reserved - quantity, updated_at=Product.updated_at),
        )
        if quantity and available_of(session, product_id) == quantity:
            is_back.append(product_id)
    return is_back


def release_units(session: Session, search: ProductSearch, quantities: Mapping[int, int]) -> None:
    """Of several products: locks them in the order of their ids, and all of them before the search index."""
    search.refresh(session, give_back_units(session, quantities))


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


def put_back_units(session: Session, product_id: int, quantity: int) -> int:
    """Units that were sold are on hand again. Returns how many are. Raises Conflict if that would be too many.

    Where no other is available, the caller refreshes the search.
    """
    num_changed = execute_update(
        session,
        update(Product)
        .where(Product.id == product_id, Product.on_hand <= MAX_STOCK - quantity)
        .values(on_hand=Product.on_hand + quantity, updated_at=Product.updated_at),
    )
    if not num_changed:
        raise Conflict(
            f"A product has at most {MAX_STOCK} units on hand: product {product_id} takes no {quantity} more. "
            "Take them back without `restock`.",
            code="too_much_stock",
        )
    return session.scalars(select(Product.on_hand).where(Product.id == product_id)).one()
