"""Whether a talk goes on: not about goods that are gone, nor with a shop that closed or is suspended, but for orders
that are open there. What was written can be read all the same."""

from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.orm import Session

from tis.errors import Conflict
from tis.marketplace.columns import now
from tis.marketplace.kit.fields import ClosedReason
from tis.marketplace.orders.reading import needed_until
from tis.marketplace.tables import Order, Product, ShopTalk, Supplier

WHY_CLOSED: dict[ClosedReason, str] = {
    "product_gone": "These goods are not offered any more: this talk can be read, not continued.",
    "shop_closed": "This shop has closed: only talks about open orders go on.",
    "shop_suspended": "This shop is suspended: only talks about open orders go on.",
}


def require_open_talk(session: Session, talk: ShopTalk) -> None:
    for reason in closed_reasons(session, [talk]).values():
        raise Conflict(WHY_CLOSED[reason], code=reason)


def closed_reasons(session: Session, talks: Iterable[ShopTalk]) -> dict[int, ClosedReason]:
    """By the ids of those talks that do not go on."""
    by_id = {talk.id: talk for talk in talks}
    shops = select(Supplier).where(Supplier.id.in_({talk.supplier_id for talk in by_id.values()}))
    closed_shops: dict[int, ClosedReason] = {
        shop.id: "shop_closed" if shop.deleted_at is not None else "shop_suspended"
        for shop in session.scalars(shops)
        if not shop.is_active
    }
    gone = select(Product.id).where(
        Product.id.in_({talk.product_id for talk in by_id.values()}), Product.deleted_at.is_not(None)
    )
    gone_goods = set(session.scalars(gone))
    orders = {talk.order_id for talk in by_id.values() if talk.supplier_id in closed_shops}
    rows = select(Order).where(Order.id.in_(orders), Order.placed_at.is_not(None))
    open_orders = {order.id for order in session.scalars(rows) if _is_open(order)} if orders else set[str]()
    reasons: dict[int, ClosedReason] = {}
    for talk in by_id.values():
        if talk.supplier_id in closed_shops and talk.order_id not in open_orders:
            reasons[talk.id] = closed_shops[talk.supplier_id]
        elif talk.product_id in gone_goods:
            reasons[talk.id] = "product_gone"
    return reasons


def _is_open(order: Order) -> bool:
    """Also while what was received may be returned, and money is owed."""
    until = needed_until(order)
    return until is None or now() < until
