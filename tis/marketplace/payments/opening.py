"""A buyer begins to pay: a row first, then the provider, then what it answered. None of it is done twice."""

from dataclasses import dataclass
from datetime import timedelta
from uuid import uuid4

from sqlalchemy import select
from sqlalchemy.orm import Session

from tis.errors import Conflict, Forbidden, Unavailable
from tis.marketplace.columns import now
from tis.marketplace.context import RequestContext
from tis.marketplace.kit.principal import Principal
from tis.marketplace.orders.reading import find_order, roles_in
from tis.marketplace.payment_providers.payment_desk import StoredKeys, stored_keys
from tis.marketplace.payment_providers.provider import NewPayment, PaymentProvider, ProviderRefused, ProviderSilent
from tis.marketplace.payments.paid_orders import is_suspended, locked_order
from tis.marketplace.payments.truth import apply_created, apply_refused, end_wait, next_check
from tis.marketplace.tables import Order, Payment, ShopPaymentMethods

_LEAST_TIME, _USUAL_TIME = timedelta(minutes=1), timedelta(days=1)
_MAX_WAIT = timedelta(seconds=30)  # for the provider; then whoever waited was killed
_MAX_PAYMENTS = 20  # of an order: each that failed or expired lets the buyer begin another


@dataclass(frozen=True)
class Opening:
    """Who is asked for what."""

    provider: PaymentProvider
    payment: NewPayment


def open_payment(context: RequestContext, order_id: str) -> None:
    """In a thread: it waits for the provider. Afterwards the order has a page, or an error says why not."""
    market = context.market
    with market.payments.client.turn():
        with context.writing() as (session, principal):
            opening = _begun(session, principal, context, order_id)
        if opening is None:
            return
        try:
            created = opening.provider.create(opening.payment)
        except ProviderRefused as refused:
            with market.writing() as session:
                apply_refused(session, opening.payment.id, refused.problem)
            raise Conflict(
                "The shop's payment provider refused this payment. Ask the shop.", code="provider_refused"
            ) from None
        except ProviderSilent:
            with market.writing() as session:
                end_wait(session, opening.payment.id)
            raise Unavailable(
                "The payment provider does not answer. Retry shortly: nothing is paid twice.", retry_after=10
            ) from None
        with market.writing() as session:
            apply_created(session, opening.payment.id, created)


def _begun(session: Session, principal: Principal, context: RequestContext, order_id: str) -> Opening | None:
    """None: the page is there already, or the order is paid without a provider."""
    if "buyer" not in roles_in(principal, find_order(session, principal, order_id)):
        raise Forbidden("Only the buyer pays an order.")
    order = locked_order(session, order_id)
    assert order is not None
    _require_payable(order)
    if is_suspended(session, order.supplier_id):
        raise Conflict("This shop is suspended: nothing is to be paid to it.", code="not_payable")
    if order.payment_method != "provider":
        return None
    keys = stored_keys(session.get(ShopPaymentMethods, order.supplier_id))
    if keys is None:
        raise Conflict("The shop takes no payments by a provider any more. Ask the shop.", code="method_gone")
    payment, moment = current_payment(session, order_id), now()
    if payment is not None and payment.status in ("paid", "differs"):
        raise Conflict("A payment of this order has arrived already. Ask the shop.", code="paid_already")
    if payment is None or payment.status in ("failed", "expired") or payment.expires_at <= moment:
        payment = _new_payment(session, order, keys)
        is_repeat = False
    elif payment.status == "pending":
        return None
    elif payment.busy_until is not None and payment.busy_until > moment:
        raise Conflict("This payment is just being made. Retry shortly.", code="payment_begins", retry_after=2)
    elif (payment.provider, payment.environment) != (keys.provider, keys.environment):
        raise Conflict("The shop has changed its payment provider. Ask the shop.", code="method_gone")
    else:
        is_repeat = True
    payment.busy_until = moment + _MAX_WAIT
    desk = context.market.payments
    new = NewPayment(
        id=payment.id,
        order_number=order.number,
        amount=payment.amount,
        begins_at=payment.created_at,
        expires_at=payment.expires_at,
        callback_url=desk.callback_url(payment.provider, order.supplier_id),
        return_url=desk.return_url(order.id),
        is_repeat=is_repeat,
    )
    return Opening(desk.opened(context.market.signer, keys), new)


def _require_payable(order: Order) -> None:
    if order.state == "accepted" and (order.due_at is None or order.due_at > now() + _LEAST_TIME):
        return
    early = order.state in ("draft", "placed")
    raise Conflict(
        "The shop has not accepted this order yet." if early else "This order is not to be paid any more.",
        code="not_payable",
    )


def _new_payment(session: Session, order: Order, keys: StoredKeys) -> Payment:
    ids = session.scalars(select(Payment.id).where(Payment.order_id == order.id).limit(_MAX_PAYMENTS)).all()
    if len(ids) >= _MAX_PAYMENTS:
        raise Forbidden("Too many payments of this order were begun. Ask the shop.")
    if order.total == 0:
        raise Conflict("This order costs nothing.", code="not_payable")
    moment = now()
    payment = Payment(
        id=str(uuid4()),
        order_id=order.id,
        supplier_id=order.supplier_id,
        provider=keys.provider,
        environment=keys.environment,
        amount=order.total,
        created_at=moment,
        expires_at=order.due_at or moment + _USUAL_TIME,
        check_at=next_check(0, moment),
    )
    session.add(payment)
    session.flush()
    return payment


def current_payment(session: Session, order_id: str) -> Payment | None:
    """The newest, unless one before it was paid."""
    newest = select(Payment).where(Payment.order_id == order_id)
    rows = session.scalars(newest.order_by(Payment.created_at.desc(), Payment.id.desc()).limit(_MAX_PAYMENTS)).all()
    paid = [row for row in rows if row.status in ("paid", "differs")]
    return next(iter([*paid, *rows]), None)
