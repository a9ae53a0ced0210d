"""Counters of a product: units on hand, and how many of them are reserved. Buyers change them only here.

Where a shop has several places, the share of the place changes in the same breath (`kit/branch_shares.py`). They leave
`version` and `updated_at` alone: those follow what the supplier says about the product.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from sqlalchemy import CursorResult, Update, and_, exists, select, update
from sqlalchemy.orm import Session

from tis.errors import Conflict, NotFound
from tis.marketplace.kit.branch_shares import ANYWHERE, OWN_ADDRESS, PlaceWish, UnitsAt, add_to_share, shares_of
from tis.marketplace.kit.fields import MAX_STOCK
from tis.marketplace.kit.news import News
from tis.marketplace.kit.notice_outbox import notify
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.tables import BranchStock, NoticePreferences, Product, Supplier

_BY_ACTIVE_SUPPLIER = exists().where(
    Supplier.id == Product.supplier_id, Supplier.status == "active", Supplier.deleted_at.is_(None)
)
IS_SPREAD = exists().where(BranchStock.product_id == Product.id)  # over several places
_IS_ON_SALE = and_(Product.is_available.is_(True), Product.deleted_at.is_(None), _BY_ACTIVE_SUPPLIER)


class Taken(NamedTuple):
    available: int  # what is left, everywhere
    branch_id: int
    is_emptied: bool  # the place, or the shop: the caller refreshes the search


def take_units(session: Session, product_id: int, quantity: int, wish: PlaceWish = ANYWHERE) -> Taken | None:
    """None if there are too few, or too few at one place that the buyer wants them from.

    One UPDATE checks and takes, so that no other transaction can take the units in between. It locks the product, and
    its shares with it.
    """
    num_changed = execute_update(
        session,
        update(Product)
        .where(Product.id == product_id, Product.on_hand - Product.reserved >= quantity, _IS_ON_SALE)
        .values(reserved=Product.reserved + quantity, updated_at=Product.updated_at),
    )
    if not num_changed:
        return None
    columns = select(Product.on_hand - Product.reserved, Product.supplier_id, IS_SPREAD)
    available, supplier_id, is_spread = session.execute(columns.where(Product.id == product_id)).one()
    branch_id, is_emptied = OWN_ADDRESS, not available
    if is_spread:
        own, *others = shares_of(session, [product_id])[product_id]
        before = own._replace(reserved=own.reserved - quantity)
        if (share := wish.first_of([before, *others], quantity)) is None:
            execute_update(session, _reserve_more(product_id, -quantity))
            return None
        branch_id, is_emptied = share.branch_id, share.available == quantity
        add_to_share(session, UnitsAt(product_id, branch_id), reserved=quantity)
    elif wish.branch_id not in (None, OWN_ADDRESS):
        execute_update(session, _reserve_more(product_id, -quantity))
        return None
    _tell_low_stock(session, product_id, supplier_id, available + quantity, available)
    return Taken(int(available), branch_id, is_emptied)


def _reserve_more(product_id: int, quantity: int) -> Update:
    changed = {"reserved": Product.reserved + quantity, "updated_at": Product.updated_at}
    return update(Product).where(Product.id == product_id).values(changed)


def _tell_low_stock(session: Session, product_id: int, supplier_id: int, before: int, available: int) -> None:
    """Once per fall: the product is locked, so one transaction takes the unit that is too many."""
    of_shop = NoticePreferences.account == f"supplier:{supplier_id}"
    limit = session.scalar(select(NoticePreferences.low_stock_below).where(of_shop))
    if limit is not None and available < limit <= before:
        data = {"product_id": product_id, "supplier_id": supplier_id, "available": available}
        notify(session, [News("stock.low", data, supplier_id=supplier_id)])


def give_back_units(session: Session, quantities: Mapping[UnitsAt, int]) -> list[int]:
    """Makes reserved units available where they lie. Returns the products of which there, or anywhere, was none: the
    caller refreshes the search."""
    is_back = []
    for units, quantity in sorted(quantities.items()):
        execute_update(session, _reserve_more(units.product_id, -quantity))
        add_to_share(session, units, reserved=-quantity)
        if quantity and is_first_back(session, units, quantity):
            is_back.append(units.product_id)
    return is_back


def is_first_back(session: Session, units: UnitsAt, quantity: int) -> bool:
    """Whether these units alone are available at their place."""
    columns = select(Product.on_hand - Product.reserved, IS_SPREAD).where(Product.id == units.product_id)
    available, is_spread = session.execute(columns).one()
    if not is_spread:
        return bool(available == quantity)
    shares = shares_of(session, [units.product_id])[units.product_id]
    return any(share.branch_id == units.branch_id and share.available == quantity for share in shares)


def release_units(session: Session, search: ProductSearch, quantities: Mapping[UnitsAt, int]) -> None:
    """Of several products: locks them in the order of their ids, and all of them before the search index."""
    search.refresh(session, give_back_units(session, quantities))


def sell_units(session: Session, units: UnitsAt, quantity: int) -> int:
    """Sells reserved units: the number of available units stays the same. Returns how many are on hand then."""
    execute_update(
        session,
        update(Product)
        .where(Product.id == units.product_id)
        .values(
            on_hand=Product.on_hand - quantity,
            reserved=Product.reserved - quantity,
            updated_at=Product.updated_at,
        ),
    )
    add_to_share(session, units, on_hand=-quantity, reserved=-quantity)
    return session.scalars(select(Product.on_hand).where(Product.id == units.product_id)).one()


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


def put_back_units(session: Session, units: UnitsAt, quantity: int) -> int:
    """Units that were sold are on hand again. Returns how many are. Raises Conflict if that would be too many.

    The caller has locked the branch, and refreshes the search where no other unit is available (`is_first_back`).
    """
    num_changed = execute_update(
        session,
        update(Product)
        .where(Product.id == units.product_id, Product.on_hand <= MAX_STOCK - quantity)
        .values(on_hand=Product.on_hand + quantity, updated_at=Product.updated_at),
    )
    if not num_changed:
        raise Conflict(
            f"A product has at most {MAX_STOCK} units on hand: product {units.product_id} takes no {quantity} more. "
            "Take them back without `restock`.",
            code="too_much_stock",
        )
    add_to_share(session, units, on_hand=quantity)
    return session.scalars(select(Product.on_hand).where(Product.id == units.product_id)).one()
