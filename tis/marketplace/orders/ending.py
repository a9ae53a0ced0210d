"""Ends the orders of accounts and shops that are deleted, and tells whether a shop has open ones."""

from collections import Counter
from collections.abc import Collection
from typing import cast

from sqlalchemy import delete, exists, or_, select, update
from sqlalchemy.orm import Session

from tis.marketplace.auth.accounts import split_account
from tis.marketplace.columns import now
from tis.marketplace.kit.branch_shares import UnitsAt
from tis.marketplace.orders.money import settle
from tis.marketplace.orders.moving import note_move
from tis.marketplace.orders.reading import lines_of
from tis.marketplace.orders.states import HOLDS_UNITS, Mover, OrderState, find_move
from tis.marketplace.tables import CourierFee, Order, OrderAddress, OrderMove, ShopOrderRules

_WAITING = sorted(HOLDS_UNITS - {"draft"})
_MAX_PARAMETERS = 500  # databases limit those of a statement
_BUYER_GONE, _SHOP_GONE = "The account of the buyer was deleted.", "The shop was deleted."


def has_waiting_orders(session: Session, supplier_id: int) -> bool:
    """Placed, accepted or paid: buyers wait for the shop. A draft does not count, as the shop does not know it."""
    waiting = exists().where(Order.supplier_id == supplier_id, Order.state.in_(_WAITING))
    return bool(session.scalar(select(waiting)))


def end_orders_of(session: Session, accounts: Collection[str]) -> Counter[UnitsAt]:
    """Returns the units by product and place, which the caller gives back. Locks the orders in the order of their ids.

    Orders that the buyer has paid stay when the buyer goes: the shop owes goods or money. Where the shop goes, it
    refuses what is placed, cancels the rest, and owes what was paid.
    """
    supplier_ids = [number for kind, number in map(split_account, accounts) if kind == "supplier"]
    is_bought = Order.buyer.in_(accounts) & Order.state.in_(HOLDS_UNITS - {"paid"})
    is_of_shop = Order.supplier_id.in_(supplier_ids) & Order.state.in_(HOLDS_UNITS)
    locked = select(Order).where(or_(is_bought, is_of_shop)).order_by(Order.id).with_for_update(key_share=True)
    orders = session.scalars(locked.execution_options(populate_existing=True)).all()
    units: Counter[UnitsAt] = Counter()
    places = {order.id: order.branch_id for order in orders}
    for first in range(0, len(orders), _MAX_PARAMETERS):
        for line in lines_of(session, [order.id for order in orders[first : first + _MAX_PARAMETERS]]):
            units[UnitsAt(line.product_id, places[line.order_id])] += line.quantity
    for order in orders:
        _end(session, order, is_by_shop=order.supplier_id in supplier_ids)
    session.flush()
    _forget(session, accounts, supplier_ids)
    return +units


def _end(session: Session, order: Order, *, is_by_shop: bool) -> None:
    """As the table of moves says it, too: a draft, of which the shop knows nothing, expires."""
    target, mover, reason = "cancelled", "buyer", _BUYER_GONE
    if is_by_shop:
        target, mover = {"draft": ("expired", "clock"), "placed": ("refused", "shop")}.get(
            order.state, ("cancelled", "shop")
        )
        reason = _SHOP_GONE
    assert find_move(order.state, cast(OrderState, target), cast(Mover, mover), order.payment_method)
    order.state, order.due_at, order.ended_at = target, None, now()
    order.version += 1
    note_move(session, order, cast(Mover, mover), None, reason, order.ended_at)
    if order.paid_at:
        settle(session, order)


def _forget(session: Session, accounts: Collection[str], supplier_ids: Collection[int]) -> None:
    own = select(Order.id).where(Order.buyer.in_(accounts))
    session.execute(delete(OrderAddress).where(OrderAddress.order_id.in_(own)))
    said = update(OrderMove).where(OrderMove.order_id.in_(own), OrderMove.actor.in_(accounts))
    session.execute(said.values(reason=None))
    texts = {Order.note: None, Order.return_reason: None}
    session.execute(update(Order).where(Order.buyer.in_(accounts)).values(texts))
    for table in (CourierFee, ShopOrderRules):
        session.execute(delete(table).where(table.supplier_id.in_(supplier_ids)))
