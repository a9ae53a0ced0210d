"""Paying an order, giving money back, and what providers say of it."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse
from sqlalchemy.orm import Session
from starlette.requests import ClientDisconnect

from tis.errors import BadRequest, TooLarge
from tis.marketplace.context import ContextDep
from tis.marketplace.kit.fields import Id
from tis.marketplace.kit.idempotency import IdempotencyKeyDep
from tis.marketplace.kit.responses import Message, json_response, no_store
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.payment_providers.provider import ProviderName
from tis.marketplace.payments.callbacks import hear_callback
from tis.marketplace.payments.checks import asked_refund
from tis.marketplace.payments.opening import open_payment
from tis.marketplace.payments.refunds import BegunRefund, begin_refund
from tis.marketplace.payments.schemas import (
    HEARD,
    OPENED,
    REFUNDED,
    SHOWN,
    PaymentView,
    RefundRequest,
    RefundView,
)
from tis.marketplace.payments.truth import apply_refund
from tis.marketplace.payments.views import refund_view, shown_payment
from tis.marketplace.rates import limited
from tis.marketplace.tables import PaymentRefund

router = APIRouter(tags=["payments"], route_class=CheckedRoute, dependencies=[Depends(no_store)])
_MAX_CALLBACK_BYTES = 64 * 1024


@router.post("/orders/{order_id}/payment", responses=OPENED, dependencies=[limited("payments")])
def pay(order_id: UUID, context: ContextDep) -> PaymentView:
    """Begin to pay an accepted order, for its buyer: the answer says how: by transfer, QRIS or on a provider's page.

    Called again it answers the same: a payment is made once.
    """
    open_payment(context, str(order_id))
    with context.reading() as (session, principal):
        return shown_payment(session, principal, str(order_id))


@router.get("/orders/{order_id}/payment", responses=SHOWN)
def show(order_id: UUID, context: ContextDep) -> PaymentView:
    """Read how an order is paid and what was given back, for its buyer and its shop."""
    with context.reading() as (session, principal):
        return shown_payment(session, principal, str(order_id))


@router.post(
    "/orders/{order_id}/refunds",
    response_model=RefundView,
    responses=REFUNDED,
    dependencies=[limited("payments")],
)
def refund(
    order_id: UUID, body: RefundRequest, context: ContextDep, idempotency_key: IdempotencyKeyDep
) -> JSONResponse:
    """Give money back, for the shop: by the provider that took it; what came by hand goes back by hand, and is noted.

    `refund_due` goes down by what was given back. `asked`: the provider has not said yet what became of it.
    """
    begun: list[BegunRefund] = []
    market = context.market
    with market.payments.client.turn():
        with context.writing() as (session, principal):

            def begin() -> JSONResponse:
                begun.append(begin_refund(session, principal, str(order_id), body.amount, body.reason))
                return _view(session, begun[0].id)

            response = idempotency_key.answer(session, principal, begin)
        if not begun or begun[0].by_provider is None:
            return response
        new, keys = begun[0].by_provider
        answer = asked_refund(market.payments, market.signer, keys, new)
        with market.writing() as session:
            apply_refund(session, new.id, answer)
    with market.reading() as session:
        return _view(session, new.id)


def _view(session: Session, refund_id: str) -> JSONResponse:
    return json_response(refund_view(session.get_one(PaymentRefund, refund_id)))


async def _callback_body(request: Request) -> bytes:
    data = bytearray()
    try:
        async for chunk in request.stream():
            data += chunk
            if len(data) > _MAX_CALLBACK_BYTES:
                raise TooLarge("The body is too large.")
    except ClientDisconnect:
        raise BadRequest("The body ended before it was complete.") from None
    return bytes(data)


@router.post(
    "/payments/callbacks/{provider}/{supplier_id}",
    responses=HEARD,
    dependencies=[limited("payment_callbacks", by_address=True)],
)
def hear(
    provider: ProviderName,
    supplier_id: Id,
    request: Request,
    context: ContextDep,
    body: Annotated[bytes, Depends(_callback_body)],
) -> Message:
    """For payment providers: something happened to a payment. It must be signed as the provider of the shop signs.

    What it says is not believed: the server asks the provider how the payment stands.
    """
    is_news = hear_callback(context.market, provider, supplier_id, request.headers, body)
    return Message(detail="Heard." if is_news else "Nothing new.")
