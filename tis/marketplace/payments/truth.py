"""Applies what a provider says of a payment or a refund: once, whoever brings it, in whatever order it comes."""

from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from tis.marketplace.columns import now
from tis.marketplace.context import ServiceRules
from tis.marketplace.orders.money import settle
from tis.marketplace.payment_providers.provider import RUPIAH, CreatedPayment, PaymentStanding, RefundAnswer
from tis.marketplace.payments.paid_orders import locked_order, take_money, tell
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.tables import Payment, PaymentRefund

_FIRST_PAUSE, _LONGEST_PAUSE = timedelta(seconds=30), timedelta(minutes=30)
_AFTER_EXPIRY = timedelta(days=1)  # how long money may be on its way
_MAX_REFUND_CHECKS = 60


def next_check(num_checks: int, moment: datetime) -> datetime:
    return moment + min(_LONGEST_PAUSE, _FIRST_PAUSE * (1 << min(num_checks, 10)))


def apply_created(session: Session, payment_id: str, created: CreatedPayment) -> None:
    """The page is there. Whoever of two callers comes second changes nothing."""
    payment = _locked_payment(session, payment_id)
    if payment is not None and payment.status == "creating":
        payment.status, payment.url, payment.busy_until = "pending", created.url, None
        payment.external_id = created.external_id or payment.external_id


def apply_refused(session: Session, payment_id: str, problem: str) -> None:
    """It is looked at once more: an answer before this one may have been lost."""
    payment = _locked_payment(session, payment_id)
    if payment is not None and payment.status == "creating":
        payment.status, payment.problem, payment.busy_until = "failed", problem, None
        payment.check_at = next_check(0, now())


def end_wait(session: Session, payment_id: str) -> None:
    """The provider did not answer: the buyer may try again at once."""
    payment = _locked_payment(session, payment_id)
    if payment is not None:
        payment.busy_until = None


def apply_standing(
    session: Session, search: ProductSearch, payment_id: str, standing: PaymentStanding, rules: ServiceRules
) -> None:
    """Money that came counts whatever was thought before; nothing else changes what has ended."""
    unlocked = session.get(Payment, payment_id)
    order = locked_order(session, unlocked.order_id) if unlocked is not None else None
    payment = _locked_payment(session, payment_id)
    if order is None or payment is None or payment.status == "paid":
        return
    moment = now()
    payment.external_id = standing.external_id or payment.external_id
    if standing.state == "paid":
        is_rupiah = standing.currency == RUPIAH
        payment.paid_at, payment.check_at = moment, None
        payment.paid_amount = max(payment.refunded, (standing.amount or 0) if is_rupiah else 0)
        if is_rupiah and standing.amount == payment.amount:
            payment.status, payment.problem = "paid", None
            take_money(session, search, order, payment.amount, rules)
            return
        settle(session, order)
        if payment.status != "differs":
            payment.status = "differs"
            payment.problem = f"{standing.amount} {standing.currency} came, not {payment.amount} {RUPIAH}"[:200]
            tell(session, "payment.differs", order)
        return
    if payment.status not in ("creating", "pending"):
        payment.check_at = None
    elif standing.state in ("expired", "failed"):
        payment.status, payment.check_at = standing.state, None
    elif standing.state == "unknown" and moment > payment.expires_at:
        payment.status, payment.check_at = "expired", None
    elif standing.state == "pending" and payment.status == "creating" and standing.url:
        payment.status, payment.url = "pending", standing.url
    if moment > payment.expires_at + _AFTER_EXPIRY:
        payment.check_at = None
        if payment.status in ("creating", "pending"):
            payment.status = "expired"


def apply_refund(session: Session, refund_id: str, answer: RefundAnswer) -> None:
    """What is given back is owed no more."""
    unlocked = session.get(PaymentRefund, refund_id)
    order = locked_order(session, unlocked.order_id) if unlocked is not None else None
    refund = session.get(PaymentRefund, refund_id, with_for_update=True, populate_existing=True)
    if order is None or refund is None or refund.status != "asked":
        return
    if answer.state == "asked":
        if refund.num_checks >= _MAX_REFUND_CHECKS:
            refund.check_at, refund.problem = None, "the provider has not said what became of it"
        return
    refund.status, refund.problem = answer.state, answer.problem
    refund.ended_at, refund.check_at = now(), None
    if answer.state == "done":
        payment = _locked_payment(session, refund.payment_id) if refund.payment_id else None
        if payment is not None:
            payment.refunded = min(payment.paid_amount, payment.refunded + refund.amount)
        settle(session, order)
    tell(session, "payment.refunded" if answer.state == "done" else "payment.refund_failed", order)


def _locked_payment(session: Session, payment_id: str) -> Payment | None:
    return session.get(Payment, payment_id, with_for_update=True, populate_existing=True)
