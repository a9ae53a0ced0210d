"""What a payment does to its order: it pays it, or the shop owes the money back."""

from sqlalchemy.orm import Session

from tis.marketplace.columns import now
from tis.marketplace.kit.news import News
from tis.marketplace.kit.notice_outbox import notify
from tis.marketplace.tables import Order, OrderMove


def locked_order(session: Session, order_id: str) -> Order | None:
    return session.get(Order, order_id, with_for_update=True, populate_existing=True)


def take_money(session: Session, order: Order, amount: int) -> None:
    """Of an order that is locked: it is paid, or it cannot be any more and the money goes back."""
    if order.state == "accepted" and amount == order.total:
        _mark_paid(session, order)
        return
    order.refund_due = min(order.total, order.refund_due + amount)
    tell(session, "payment.late", order)


def _mark_paid(session: Session, order: Order) -> None:
    order.state, order.paid_at, order.due_at = "paid", now(), None
    order.version += 1
    session.add(OrderMove(order_id=order.id, number=order.version, state="paid", mover="payment"))
    tell(session, "order.paid", order)


def tell(session: Session, kind: str, order: Order) -> None:
    data = {"order_id": order.id, "number": order.number}
    notify(session, [News(kind, data, buyer=order.buyer, supplier_id=order.supplier_id)])
