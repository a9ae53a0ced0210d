"""What a payment does to its order: it pays it, or the shop owes the money back."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from tis.marketplace.context import ServiceRules
from tis.marketplace.kit.news import News
from tis.marketplace.kit.notice_outbox import notify
from tis.marketplace.orders.money import settle
from tis.marketplace.orders.moving import mark_paid
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.tables import Order, Supplier


def locked_order(session: Session, order_id: str) -> Order | None:
    """As it is now, until the transaction ends."""
    locked = select(Order).where(Order.id == order_id).with_for_update(key_share=True)
    return session.scalar(locked.execution_options(populate_existing=True))


def is_suspended(session: Session, supplier_id: int) -> bool:
    """Nobody shall pay a shop that an admin has stopped, and see its account."""
    return session.scalar(select(Supplier.status).where(Supplier.id == supplier_id)) == "suspended"


def take_money(session: Session, search: ProductSearch, order: Order, amount: int, rules: ServiceRules) -> None:
    """Of an order that is locked: it is paid, or it cannot be any more and the money goes back."""
    may_pay = order.state == "accepted" and amount == order.total
    if may_pay and mark_paid(session, search, order.id, rules) == "paid":
        return
    settle(session, order)
    tell(session, "payment.late", order)


def tell(session: Session, kind: str, order: Order) -> None:
    data: dict[str, str | int] = {"order_id": order.id, "number": order.number, "supplier_id": order.supplier_id}
    notify(session, [News(kind, data, order.buyer, order.supplier_id)])
