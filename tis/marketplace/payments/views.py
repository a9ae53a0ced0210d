"""What a buyer and a shop see of the payment of an order."""

from typing import cast

from sqlalchemy import select
from sqlalchemy.orm import Session

from tis.marketplace.kit.principal import Principal
from tis.marketplace.orders.payment_methods import PaymentMethod
from tis.marketplace.orders.reading import find_order, roles_in, state_of
from tis.marketplace.payments.methods import transfer_account
from tis.marketplace.payments.opening import current_payment
from tis.marketplace.payments.paid_orders import is_suspended
from tis.marketplace.payments.qr_drawing import qr_svg
from tis.marketplace.payments.qris import read_static_qris
from tis.marketplace.payments.schemas import PaymentPage, PaymentView, QrisPayment, RefundView, Standing
from tis.marketplace.tables import Order, Payment, PaymentRefund, ShopPaymentMethods

_MAX_REFUNDS = 50


def shown_payment(session: Session, principal: Principal, order_id: str) -> PaymentView:
    order = find_order(session, principal, order_id)
    is_shop = principal.is_admin or "shop" in roles_in(principal, order)
    payment = current_payment(session, order_id) if order.payment_method == "provider" else None
    view = PaymentView(
        order_id=order.id,
        number=order.number,
        method=cast(PaymentMethod, order.payment_method),
        amount=order.total,
        status=_standing(order, payment),
        paid_at=order.paid_at,
        paid_amount=payment.paid_amount if payment is not None and payment.paid_at else None,
        problem=payment.problem if payment is not None and is_shop else None,
        refund_due=order.refund_due,
        refunds=_refunds(session, order_id),
    )
    # What buyers need to know, they learn from acceptance on.
    if state_of(order) == "accepted" and not is_suspended(session, order.supplier_id):
        _add_way(session, view, order, payment)
    return view


def _standing(order: Order, payment: Payment | None) -> Standing:
    if order.paid_at is not None:
        return "paid"
    if payment is not None:
        return cast(Standing, payment.status)
    return "due" if state_of(order) == "accepted" else "not_due"


def _add_way(session: Session, view: PaymentView, order: Order, payment: Payment | None) -> None:
    methods = session.get(ShopPaymentMethods, order.supplier_id)
    if order.payment_method == "transfer":
        view.transfer = transfer_account(methods)
    elif order.payment_method == "qris" and methods is not None and methods.qris_text and order.total > 0:
        code = read_static_qris(methods.qris_text).with_amount(order.total)
        view.qris = QrisPayment(
            text=code.text, svg=qr_svg(code.text), merchant_name=code.merchant_name, merchant_city=code.merchant_city
        )
    elif payment is not None and payment.status == "pending" and payment.url:
        view.page = PaymentPage(provider=payment.provider, url=payment.url, expires_at=payment.expires_at)


def _refunds(session: Session, order_id: str) -> list[RefundView]:
    rows = select(PaymentRefund).where(PaymentRefund.order_id == order_id)
    newest = rows.order_by(PaymentRefund.created_at.desc(), PaymentRefund.id.desc()).limit(_MAX_REFUNDS)
    return [refund_view(row) for row in session.scalars(newest)]


def refund_view(row: PaymentRefund) -> RefundView:
    return RefundView.model_validate(
        {
            "id": row.id,
            "amount": row.amount,
            "reason": row.reason,
            "by_hand": row.payment_id is None,
            "status": row.status,
            "problem": row.problem,
            "created_at": row.created_at,
            "ended_at": row.ended_at,
        }
    )
