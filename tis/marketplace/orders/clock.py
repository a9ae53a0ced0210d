"""Moves what is due. Every server does; the row's lock decides which one moves an order."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from sqlalchemy import select
from sqlalchemy.orm import Session

from tis.marketplace.columns import now
from tis.marketplace.context import ServiceRules
from tis.marketplace.orders.moving import move_if_due
from tis.marketplace.reviews.service import lock_buyer
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.tables import Order

_MAX_AT_ONCE = 200  # in one sweep, so that the reservations get their turn
_OpenTransaction = Callable[[], AbstractContextManager[Session]]


class OrderClock:
    """A transaction for each order: it locks the buyer before the order, as everybody does."""

    def __init__(
        self, reading: _OpenTransaction, writing: _OpenTransaction, search: ProductSearch, rules: ServiceRules
    ) -> None:
        self._reading, self._writing, self._search, self._rules = reading, writing, search, rules

    def move_some(self) -> int:
        """Returns how many it moved."""
        due = select(Order.id, Order.buyer).where(Order.due_at <= now(), Order.due_at.is_not(None))
        with self._reading() as session:
            rows = session.execute(due.order_by(Order.due_at).limit(_MAX_AT_ONCE)).all()
        return sum(self._move(order_id, buyer) for order_id, buyer in rows)

    def _move(self, order_id: str, buyer: str | None) -> bool:
        with self._writing() as session:
            lock_buyer(session, buyer)
            locked = select(Order).where(Order.id == order_id).with_for_update(key_share=True, skip_locked=True)
            order = session.scalar(locked)
            return order is not None and move_if_due(session, self._search, order, self._rules)
