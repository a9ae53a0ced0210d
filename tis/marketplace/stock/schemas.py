"""Bodies and views of reservations and stock movements, with their examples."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field, field_validator

from tis.marketplace.kit.docs import KEY_USED, responses, schema_example
from tis.marketplace.kit.fields import MAX_ID, MAX_STOCK, Reason
from tis.marketplace.kit.unknown_fields import StrictBody
from tis.marketplace.kit.wanted_place import WantedPlace

MovementKind = Literal["initial", "set", "sold", "returned", "import", "correction", "transfer", "carried"]
ReservationStatus = Literal["held", "committed", "released", "refused", "expired", "ordered"]
SHOP_DECIDES = "Only the shop accepts or refuses a reservation."


class ReservationRequest(WantedPlace, StrictBody):
    quantity: int = Field(ge=1, le=1_000_000, strict=True)
    seconds: int | None = Field(
        None,
        ge=1,
        le=3600,
        strict=True,
        description="how long the units are reserved, an hour at most; RESERVATION_SECONDS if omitted",
    )


class ReservationView(BaseModel):
    id: str
    product_id: int
    quantity: int
    branch_id: int = 0  # the place of the shop where the units lie; 0: its own address
    unit_price: int  # of the moment it was reserved
    status: ReservationStatus  # of this moment: one that is due counts as expired before the sweeper ends it
    created_at: datetime
    accepted_at: datetime | None  # by the shop
    expires_at: datetime
    ended_at: datetime | None
    refusal_reason: str | None  # what the shop says to the buyer
    available_quantity: int  # of the product, for everybody


class BuyerView(BaseModel):
    """Before the shop accepts: "Dewi S.", and no contact data."""

    name: str
    email: str | None
    phone: str | None


class ShopReservationView(ReservationView):
    product_name: str
    buyer: BuyerView | None  # null: reserved without a token, in open mode


class ReservationRefusal(StrictBody):
    model_config = schema_example({"reason": "The last one was damaged."})

    reason: Reason | None = Field(None, description="the buyer reads it")


class StockCorrection(StrictBody):
    model_config = schema_example({"delta": -2, "reason": "Two were damaged"})

    delta: int = Field(ge=-MAX_STOCK, le=MAX_STOCK, strict=True, description="units that came or went; not 0")
    reason: Reason
    branch_id: int = Field(
        0, ge=0, le=MAX_ID, strict=True, description="the place of the shop where they came or went; 0: its own address"
    )

    @field_validator("delta")
    @classmethod
    def _is_a_change(cls, delta: int) -> int:
        if delta == 0:
            raise ValueError("must not be 0")
        return delta


class StockView(BaseModel):
    """Of a product, for members of the shop."""

    product_id: int
    on_hand: int
    reserved: int
    available_quantity: int
    version: int  # of the product


class StockMovementView(BaseModel):
    id: int
    product_id: int
    product_name: str
    delta: int
    on_hand: int | None  # after it; null in old rows
    kind: MovementKind
    reason: str | None  # of a correction
    reservation_id: str | None
    branch_id: int = 0  # the place of the shop; 0: its own address
    actor: str | None
    at: datetime


_RESERVATION_EXAMPLE = {
    "id": "0b0e4a2e-6f0c-4d53-9f63-6d0c4b7a5a11",
    "product_id": 1,
    "quantity": 2,
    "branch_id": 0,
    "unit_price": 15999000,
    "status": "held",
    "created_at": "2026-11-21T10:00:00Z",
    "accepted_at": None,
    "expires_at": "2026-11-21T10:15:00Z",
    "ended_at": None,
    "refusal_reason": None,
    "available_quantity": 3,
}
_ACCEPTED_EXAMPLE = {
    **_RESERVATION_EXAMPLE,
    "accepted_at": "2026-11-21T10:02:00Z",
    "expires_at": "2026-11-21T10:17:00Z",
    "product_name": "Laptop Gaming Rinjani G15",
    "buyer": {"name": "Dewi Specimen", "email": "dewi@example.com", "phone": "+6281234567890"},
}
_REFUSED_EXAMPLE = {
    **_ACCEPTED_EXAMPLE,
    "status": "refused",
    "accepted_at": None,
    "ended_at": "2026-11-21T10:02:00Z",
    "refusal_reason": "The last one was damaged.",
    "buyer": {"name": "Dewi S.", "email": None, "phone": None},
}
_MOVEMENT_EXAMPLE = {
    "id": 17,
    "product_id": 1,
    "product_name": "Laptop Gaming Rinjani G15",
    "delta": -2,
    "on_hand": 3,
    "kind": "sold",
    "reason": None,
    "reservation_id": "0b0e4a2e-6f0c-4d53-9f63-6d0c4b7a5a11",
    "branch_id": 0,
    "actor": "user:7",
    "at": "2026-11-21T10:05:00Z",
}
# Answers of the routes, for /docs.
RESERVATION_RESPONSES = responses(_RESERVATION_EXAMPLE, {404: "Product not found", 409: "Only 3 left"})
COMMIT_RESPONSES = responses(
    _RESERVATION_EXAMPLE | {"status": "committed"},
    {403: "Only the shop sells what is held. Who holds it can release it.", 409: "This reservation has expired."},
)
RELEASE_RESPONSES = responses(_RESERVATION_EXAMPLE | {"status": "released"}, {409: "This reservation was committed."})
ACCEPT_RESPONSES = responses(_ACCEPTED_EXAMPLE, {403: SHOP_DECIDES, 409: "This reservation has expired."})
REFUSE_RESPONSES = responses(_REFUSED_EXAMPLE, {403: SHOP_DECIDES, 409: "This reservation was committed."})
CORRECTION_RESPONSES = responses(
    {"product_id": 1, "on_hand": 3, "reserved": 1, "available_quantity": 2, "version": 4},
    {403: "This belongs to another supplier.", 404: "Product not found"},
    {409: "Only 2 of 3 units are not reserved: this would take 3."},
    KEY_USED,
)
SHOP_RESERVATIONS_RESPONSES = responses([_ACCEPTED_EXAMPLE], {403: "This belongs to another supplier."})
RESERVATIONS_RESPONSES = responses([_RESERVATION_EXAMPLE])
MOVEMENTS_RESPONSES = responses([_MOVEMENT_EXAMPLE])
