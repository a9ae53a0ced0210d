"""Bodies and views of orders, and of a shop's rules for them."""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field, field_validator, model_validator

from tis.marketplace.kit.docs import schema_example
from tis.marketplace.kit.fields import (
    MAX_ID,
    Address,
    City,
    Fee,
    Latitude,
    Longitude,
    Name,
    PhoneNumber,
    Reason,
    ShortName,
    text_up_to,
)
from tis.marketplace.kit.geo import WithPlace
from tis.marketplace.kit.opening_hours import TimeZone
from tis.marketplace.kit.unknown_fields import StrictBody
from tis.marketplace.kit.wanted_place import WantedPlace
from tis.marketplace.orders.payment_methods import PaymentMethod
from tis.marketplace.orders.states import Mover, Only, OrderState, Stock
from tis.marketplace.stock.schemas import BuyerView

MAX_LINES = 50
_MAX_BANDS = 20
_MAX_UNITS = 1_000_000
Delivery = Literal["pickup", "courier", "expedition"]
Version = Annotated[int, Field(ge=1, le=2**31 - 1, strict=True)]
Quantity = Annotated[int, Field(ge=0, le=_MAX_UNITS, strict=True)]
Position = Annotated[int, Field(ge=1, le=MAX_LINES, strict=True)]


class AddressForm(StrictBody, WithPlace):
    name: Name
    phone: PhoneNumber
    street: Address
    city: City
    postal_code: text_up_to(10) | None = None  # type: ignore[valid-type]
    latitude: Latitude | None = Field(None, description="the shop's courier needs to know how far it is")
    longitude: Longitude | None = None


class PlacingForm(StrictBody):
    model_config = schema_example({"delivery": "pickup", "payment_method": "cash"})

    delivery: Delivery = "pickup"
    address: AddressForm | None = Field(None, description="needed by the courier and by an expedition")
    payment_method: PaymentMethod = "cash"
    note: text_up_to(500) | None = Field(None, description="of the buyer to the shop")  # type: ignore[valid-type]
    version: Version | None = None

    @model_validator(mode="after")
    def _address_fits(self) -> Self:
        if self.delivery == "pickup" and self.address is not None:
            raise ValueError("leave `address` out: what is picked up goes nowhere")
        if self.delivery != "pickup" and self.address is None:
            raise ValueError("`address` is needed")
        return self


class ItemForm(StrictBody):
    product_id: int = Field(ge=1, le=MAX_ID)
    quantity: int = Field(ge=1, le=_MAX_UNITS, strict=True)


class OrderForm(WantedPlace, StrictBody):
    model_config = schema_example({"items": [{"product_id": 1, "quantity": 2}], "place": {"delivery": "pickup"}})

    reservations: list[Annotated[str, Field(pattern="^[0-9a-f-]{36}$")]] = Field(
        [], max_length=MAX_LINES, description="ids of the caller's holds, whose prices stay"
    )
    items: list[ItemForm] = Field([], max_length=MAX_LINES, description="goods that are not held yet")
    place: PlacingForm | None = Field(None, description="place it at once; else it is a draft")

    @model_validator(mode="after")
    def _has_lines(self) -> Self:
        number = len(self.reservations) + len(self.items)
        if not 1 <= number <= MAX_LINES:
            raise ValueError(f"an order has 1 to {MAX_LINES} lines")
        products = {item.product_id for item in self.items}
        if len(products) < len(self.items) or len(set(self.reservations)) < len(self.reservations):
            raise ValueError("each hold and each product stands in one line")
        return self


class MoveForm(StrictBody):
    version: Version | None = None


class ReasonedMoveForm(MoveForm):
    model_config = schema_example({"reason": "The last one was damaged."})

    reason: Reason | None = Field(None, description="the other side reads it; the shop must say why")


class LineQuantity(StrictBody):
    position: Position
    quantity: Quantity


class AcceptanceForm(MoveForm):
    model_config = schema_example({"lines": [{"position": 1, "quantity": 1}]})

    lines: list[LineQuantity] = Field(
        [], max_length=MAX_LINES, description="lines of which the shop gives fewer units than were ordered"
    )


class ShippingForm(MoveForm):
    model_config = schema_example({"carrier": "JNE", "tracking": "JP1234567890"})

    carrier: ShortName | None = None
    tracking: ShortName | None = None


class ReturnedLine(StrictBody):
    position: Position
    quantity: int = Field(ge=1, le=_MAX_UNITS, strict=True)
    restock: bool = Field(True, description="false: it cannot be sold again")


class ReturnForm(MoveForm):
    model_config = schema_example({"reason": "Wrong size", "lines": [{"position": 1, "quantity": 1, "restock": True}]})

    reason: Reason
    lines: list[ReturnedLine] = Field(min_length=1, max_length=MAX_LINES)


class RequiredReasonForm(MoveForm):
    model_config = schema_example({"reason": "It is too small."})

    reason: Reason


class BandForm(StrictBody):
    up_to_km: int = Field(ge=1, le=1000, strict=True)
    fee: Fee


class OrderRulesForm(StrictBody):
    """What is left out gets its default."""

    takes_orders: bool = Field(False, strict=True)
    accept_hours: int = Field(
        24, ge=1, le=168, strict=True, description="an order that waits longer for the shop expires"
    )
    pay_hours: int = Field(
        24, ge=1, le=168, strict=True, description="from acceptance to the money; with cash, to the pick-up"
    )
    handover_hours: int = Field(
        72, ge=1, le=720, strict=True, description="from the money to the goods; then the buyer may cancel a paid order"
    )
    return_days: int = Field(
        7, ge=0, le=30, strict=True, description="in which the buyer may ask to return goods; 0: none"
    )
    courier_bands: list[BandForm] = Field([], max_length=_MAX_BANDS, description="what the shop's courier costs")
    expedition_fee: Fee | None = Field(None, description="null: the shop sends nothing by expedition")
    tax_rate: int = Field(
        0, ge=0, le=10_000, strict=True, description="in hundredths of a percent: 1100 = 11%; prices include it"
    )
    tax_number: text_up_to(32) | None = Field(None, description="NPWP")  # type: ignore[valid-type]
    version: Version | None = None

    @field_validator("courier_bands")
    @classmethod
    def _sorted_once(cls, bands: list[BandForm]) -> list[BandForm]:
        ordered = sorted(bands, key=lambda band: band.up_to_km)
        if len({band.up_to_km for band in ordered}) < len(ordered):
            raise ValueError("two bands end at the same distance")
        return ordered


class BandView(BaseModel):
    up_to_km: int
    fee: int


class OrderRulesView(BaseModel):
    takes_orders: bool
    accept_hours: int
    pay_hours: int
    handover_hours: int
    return_days: int
    courier_bands: list[BandView]
    expedition_fee: int | None
    tax_rate: int
    tax_number: str | None
    payment_methods: list[PaymentMethod]
    version: int  # 0: the shop has not said yet how it takes orders


class DeliveryOffer(BaseModel):
    """`fee` in rupiah, or why the shop does not offer it."""

    delivery: Delivery
    fee: int | None
    distance_km: float | None
    reason: str | None


class QuoteView(BaseModel):
    supplier_id: int
    takes_orders: bool
    deliveries: list[DeliveryOffer]
    payment_methods: list[PaymentMethod]  # cash: not with an expedition
    accept_hours: int
    pay_hours: int
    handover_hours: int
    return_days: int
    tax_rate: int


class OrderLineView(BaseModel):
    position: int
    product_id: int
    reservation_id: str | None
    name: str
    sku: str | None
    unit_price: int
    ordered: int
    quantity: int  # what the shop gives of it
    returned: int
    total: int


class OrderView(BaseModel):
    id: str
    number: str
    supplier_id: int
    branch_id: int = Field(description="the place of the shop that has the goods; 0: its own address")
    shop_name: str
    state: OrderState  # of this moment: what is due has moved, before the sweeper writes it
    may_become: list[OrderState]  # where the caller may move it now; a program, with the scopes of its token
    lines: list[OrderLineView]
    delivery: Delivery
    payment_method: PaymentMethod
    note: str | None  # of the buyer; the shop sees it when it sees the address
    items_total: int
    delivery_fee: int
    total: int
    tax_rate: int
    tax_included: int  # of the total
    tax_number: str | None
    refund_due: int
    return_days: int
    return_asked_at: datetime | None
    return_reason: str | None
    return_refused_at: datetime | None
    return_refusal: str | None
    carrier: str | None
    tracking: str | None
    version: int
    due_at: datetime | None  # when the clock moves it on; of a paid order, when the shop is late
    overdue_at: datetime | None  # since then the buyer of a paid order may cancel it
    created_at: datetime
    placed_at: datetime | None
    accepted_at: datetime | None
    paid_at: datetime | None
    ended_at: datetime | None
    buyer: BuyerView | None  # for the shop


class OrderMoveView(BaseModel):
    state: OrderState
    mover: Mover
    reason: str | None
    at: datetime


class AddressView(BaseModel):
    name: str
    phone: str
    street: str
    city: str
    postal_code: str | None
    latitude: float | None
    longitude: float | None


class HandoverPlace(BaseModel):
    """Where a shop with several places hands the goods over. The buyer reads its address once the shop accepted, while
    the goods may be fetched or brought back."""

    branch_id: int
    name: str
    city: str
    address: str | None
    latitude: float | None
    longitude: float | None
    opening_hours: dict[str, list[list[str]]] | None
    time_zone: TimeZone


class OrderDetail(OrderView):
    handover: HandoverPlace | None = Field(None, description="of a pick-up, if the shop has several places")
    address: AddressView | None  # the buyer's; the shop sees it from acceptance on, while it needs it
    moves: list[OrderMoveView]


class MoveView(BaseModel):
    source: OrderState
    target: OrderState
    movers: list[Mover]
    stock: Stock
    needs_reason: bool
    only: Only | None  # `late`: from `overdue_at` on


class StatesView(BaseModel):
    states: list[OrderState]
    ends: list[OrderState]
    holds_units: list[OrderState]
    moves: list[MoveView]
