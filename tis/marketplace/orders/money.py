"""The money of an order: integer rupiah that always equal its lines."""

from collections.abc import Iterable

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from tis.errors import Unprocessable
from tis.marketplace.tables import MAX_RUPIAH, Order, OrderLine, Payment, PaymentRefund

_WHOLE = 10_000  # hundredths of a percent
_BOUGHT = ("paid", "handed_over", "shipped", "received", "returned")  # the shop keeps the price, but of what came back


def included_tax(total: int, rate: int) -> int:
    """What of a price is tax, rounded half up; `rate` in hundredths of a percent."""
    return (2 * total * rate + _WHOLE + rate) // (2 * (_WHOLE + rate))


def add_up(order: Order, lines: Iterable[OrderLine]) -> None:
    """Sets the totals of an order by its lines, its fee and its tax rate."""
    items = 0
    for line in lines:
        line.total = line.quantity * line.unit_price
        items += line.total
    if items + order.delivery_fee > MAX_RUPIAH:
        raise Unprocessable(f"An order costs at most {MAX_RUPIAH} rupiah: order less.")
    order.items_total, order.total = items, items + order.delivery_fee
    order.tax_included = included_tax(order.total, order.tax_rate)


def settle(session: Session, order: Order) -> None:
    """Sets what the shop owes: what came in, less what went back, less the price of what the buyer gets or has.

    For whoever has locked the order and changed its state, a payment or a refund.
    """
    order.refund_due = max(0, money_left(session, order) - (_price(session, order) if order.state in _BOUGHT else 0))


def still_to_pay(session: Session, order: Order) -> int:
    """What a shop has got by hand that says that an order is paid: the rest of what a provider took and keeps."""
    asked = PaymentRefund.order_id == order.id, PaymentRefund.status == "asked"
    on_its_way = session.scalar(select(func.coalesce(func.sum(PaymentRefund.amount), 0)).where(*asked)) or 0
    return min(order.total, max(0, order.total - money_left(session, order) + int(on_its_way)))


def money_left(session: Session, order: Order) -> int:
    """What came in, by hand and by providers, less what went back."""
    left = func.coalesce(func.sum(Payment.paid_amount - Payment.refunded), 0)
    by_providers = session.scalar(select(left).where(Payment.order_id == order.id)) or 0
    return hand_money_left(session, order) + int(by_providers)


def hand_money_left(session: Session, order: Order) -> int:
    by_hand = PaymentRefund.order_id == order.id, PaymentRefund.payment_id.is_(None), PaymentRefund.status == "done"
    given = session.scalar(select(func.coalesce(func.sum(PaymentRefund.amount), 0)).where(*by_hand)) or 0
    return order.paid_by_hand - int(given)


def _price(session: Session, order: Order) -> int:
    """Without what came back, the delivery included."""
    back = select(func.coalesce(func.sum(OrderLine.returned * OrderLine.unit_price), 0))
    return order.total - int(session.scalar(back.where(OrderLine.order_id == order.id)) or 0)
