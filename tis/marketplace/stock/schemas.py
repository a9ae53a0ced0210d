"""Bodies and views of reservations and stock movements, with their examples."""

from datetime import datetime

from pydantic import BaseModel, Field

from tis.marketplace.kit.docs import responses
from tis.marketplace.kit.unknown_fields import StrictBody
from tis.marketplace.stock.service import ReservationStatus


class ReservationRequest(StrictBody):
    quantity: int = Field(ge=1, le=1_000_000)
    seconds: int | None = Field(
        None, ge=1, le=86_400, description="how long the units are reserved; RESERVATION_SECONDS if omitted"
    )


class ReservationView(BaseModel):
    id: str
    product_id: int
    quantity: int
    status: ReservationStatus
    expires_at: datetime
    available_quantity: int  # of the product, for everybody


class StockMovementView(BaseModel):
    id: int
    product_id: int
    delta: int
    kind: str
    reservation_id: str | None
    actor: str | None
    at: datetime


_RESERVATION_EXAMPLE = {
    "id": "0b0e4a2e-6f0c-4d53-9f63-6d0c4b7a5a11",
    "product_id": 1,
    "quantity": 2,
    "status": "held",
    "expires_at": "2026-11-21T10:15:00Z",
    "available_quantity": 3,
}
_MOVEMENT_EXAMPLE = {
    "id": 17,
    "product_id": 1,
    "delta": -2,
    "kind": "sold",
    "reservation_id": "0b0e4a2e-6f0c-4d53-9f63-6d0c4b7a5a11",
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
RESERVATIONS_RESPONSES = responses([_RESERVATION_EXAMPLE])
MOVEMENTS_RESPONSES = responses([_MOVEMENT_EXAMPLE])
