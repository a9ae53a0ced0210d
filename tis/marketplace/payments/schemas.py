"""Views of how an order is paid, and of what was given back, with their examples."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from tis.marketplace.auth.schemas import TOKEN_REQUIRED
from tis.marketplace.kit.docs import KEY_USED, responses, schema_example
from tis.marketplace.kit.fields import Price, Reason
from tis.marketplace.kit.unknown_fields import StrictBody
from tis.marketplace.orders.payment_methods import PaymentMethod
from tis.marketplace.payments.method_schemas import QRIS_EXAMPLE, TransferAccount

Standing = Annotated[
    Literal["not_due", "due", "creating", "pending", "paid", "differs", "expired", "failed"],
    Field(
        description="`not_due`: the order is not accepted, or has ended; `due`: pay as it says; `creating`: the "
        "provider was asked and has not answered, ask again; `pending`: pay on the page; `differs`: another amount "
        "came than that of the order, the shop decides"
    ),
]


class QrisPayment(BaseModel):
    text: str
    svg: str = Field(description="the same as a picture")
    merchant_name: str
    merchant_city: str


class PaymentPage(BaseModel):
    provider: str
    url: str
    expires_at: datetime


class RefundView(BaseModel):
    id: str
    amount: int
    reason: str
    by_hand: bool
    status: Literal["asked", "done", "failed"]
    problem: str | None
    created_at: datetime
    ended_at: datetime | None


class PaymentView(BaseModel):
    order_id: str
    number: str
    method: PaymentMethod
    amount: int
    currency: Literal["IDR"] = "IDR"
    status: Standing
    transfer: TransferAccount | None = None
    qris: QrisPayment | None = None
    page: PaymentPage | None = None
    paid_at: datetime | None = None
    paid_amount: int | None = Field(None, description="what arrived by the provider")
    problem: str | None = Field(None, description="for the shop: what went wrong")
    refund_due: int
    refunds: list[RefundView]


class RefundRequest(StrictBody):
    model_config = schema_example({"amount": 250_000, "reason": "One of two fans was broken"})

    amount: Price
    reason: Reason


_REFUND_EXAMPLE = {
    "id": "0b1e3c7e-5a0e-4d0e-9a3b-3f2b7f0c9f10",
    "amount": 250_000,
    "reason": "One of two fans was broken",
    "by_hand": False,
    "status": "asked",
    "problem": None,
    "created_at": "2026-11-28T03:00:00Z",
    "ended_at": None,
}
_EXAMPLE = {
    "order_id": "7f0c9f10-5a0e-4d0e-9a3b-3f2b0b1e3c7e",
    "number": "K7Q2M9XW",
    "method": "qris",
    "amount": 500_000,
    "currency": "IDR",
    "status": "due",
    "transfer": None,
    "qris": {
        "text": QRIS_EXAMPLE,
        "svg": '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 57 57">...</svg>',
        "merchant_name": "TOKO CONTOH",
        "merchant_city": "PONTIANAK",
    },
    "page": None,
    "paid_at": None,
    "paid_amount": None,
    "problem": None,
    "refund_due": 0,
    "refunds": [],
}
_NO_ORDER = {**TOKEN_REQUIRED, 404: "Order not found"}
SHOWN = responses(_EXAMPLE, _NO_ORDER)
OPENED = responses(
    _EXAMPLE,
    _NO_ORDER,
    {
        403: "Only the buyer pays an order.",
        409: "The shop has not accepted this order yet.",
        503: "The payment provider does not answer. Retry shortly: nothing is paid twice.",
    },
)
REFUNDED = responses(
    _REFUND_EXAMPLE,
    _NO_ORDER,
    KEY_USED,
    {403: "Only the shop gives money back.", 409: "The shop owes 200000 rupiah of this order."},
)
HEARD = responses(
    {"detail": "Heard."},
    {403: "This is not signed by the payment provider of this shop.", 413: "The body is too large."},
)
