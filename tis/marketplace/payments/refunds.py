"""A shop gives money back: by the provider that took it, or by hand, which it then says here."""

from dataclasses import dataclass
from uuid import uuid4

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from tis.errors import Conflict, Forbidden
from tis.marketplace.columns import now
from tis.marketplace.kit import audit
from tis.marketplace.kit.principal import Principal
from tis.marketplace.orders.money import hand_money_left
from tis.marketplace.orders.reading import find_order, roles_in
from tis.marketplace.payment_providers.payment_desk import StoredKeys, stored_keys
from tis.marketplace.payment_providers.provider import NewRefund, RefundAnswer
from tis.marketplace.payments.checks import refund_of
from tis.marketplace.payments.paid_orders import locked_order
from tis.marketplace.payments.truth import apply_refund, next_check
from tis.marketplace.tables import Order, Payment, PaymentRefund, ShopPaymentMethods

_MAX_REFUNDS = 50  # of an order


@dataclass(frozen=True)
class BegunRefund:
    id: str
    by_provider: tuple[NewRefund, StoredKeys] | None  # None: given back by hand, and done


def begin_refund(session: Session, principal: Principal, order_id: str, amount: int, reason: str) -> BegunRefund:
    """Its row is there before the provider is asked."""
    if "shop" not in roles_in(principal, find_order(session, principal, order_id)):
        raise Forbidden("Only the shop gives money back.")
    order = locked_order(session, order_id)
    assert order is not None
    num_refunds = select(func.count()).select_from(PaymentRefund).where(PaymentRefund.order_id == order_id)
    if (session.scalar(num_refunds) or 0) >= _MAX_REFUNDS:
        raise Conflict("This order has too many refunds.", code="too_many_refunds")
    payment = _payment_to_refund(session, order, amount)
    moment = now()
    refund = PaymentRefund(
        id=str(uuid4()),
        order_id=order.id,
        payment_id=payment and payment.id,
        amount=amount,
        reason=reason,
        created_at=moment,
        created_by=principal.account,
        check_at=payment and next_check(0, moment),
    )
    session.add(refund)
    session.flush()
    audit.note(session, principal, "order.refund", "order", order.id, amount=amount)
    if payment is None:
        apply_refund(session, refund.id, RefundAnswer("done"))
        return BegunRefund(refund.id, None)
    keys = stored_keys(session.get(ShopPaymentMethods, order.supplier_id))
    if keys is None or (keys.provider, keys.environment) != (payment.provider, payment.environment):
        raise Conflict("The shop has changed its payment provider: give this back there.", code="method_gone")
    return BegunRefund(refund.id, (refund_of(refund, payment, is_repeat=False), keys))


def _payment_to_refund(session: Session, order: Order, amount: int) -> Payment | None:
    """None for money that came by hand. Raises Conflict if so much is not owed."""
    asked = select(PaymentRefund.payment_id, func.sum(PaymentRefund.amount)).where(
        PaymentRefund.order_id == order.id, PaymentRefund.status == "asked"
    )
    on_its_way = {row[0]: int(row[1]) for row in session.execute(asked.group_by(PaymentRefund.payment_id))}
    owed = order.refund_due - sum(on_its_way.values())
    if amount > owed:
        raise Conflict(f"The shop owes {max(0, owed)} rupiah of this order.", code="not_owed")
    payments = session.scalars(
        select(Payment).where(Payment.order_id == order.id, Payment.paid_amount > 0).order_by(Payment.created_at)
    )
    for payment in sorted(payments, key=lambda one: one.status != "differs"):
        if payment.paid_amount - payment.refunded - on_its_way.get(payment.id, 0) >= amount:
            return payment
    if hand_money_left(session, order) >= amount:
        return None
    raise Conflict("No payment of this order has so much left: give it back in parts.", code="not_owed")
