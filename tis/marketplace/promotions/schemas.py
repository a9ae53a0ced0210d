"""Bodies, views and answers of the routes of promotions, with their examples."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from tis.marketplace.kit.docs import KEY_USED, responses
from tis.marketplace.kit.fields import MAX_STOCK, Moment, Price
from tis.marketplace.kit.promotion_clock import EndReason
from tis.marketplace.kit.unknown_fields import StrictBody

PromotionState = Literal["scheduled", "running", "sold_out", "ended"]
_EXAMPLE: dict[str, Any] = {
    "price": 13999000,
    "begins_at": "2026-12-12T00:00:00+07:00",
    "ends_at": "2026-12-13T00:00:00+07:00",
    "max_units": 20,
}
_SHOWN: dict[str, Any] = {
    "id": 7,
    "product_id": 1,
    "product_name": "Laptop ASUS ROG Strix G15",
    "price": 13999000,
    "normal_price": 15999000,
    "begins_at": "2026-12-11T17:00:00Z",
    "ends_at": "2026-12-12T17:00:00Z",
    "max_units": 20,
    "units_taken": 3,
    "state": "running",
    "end_reason": None,
    "lowest_price_30d": 15499000,
    "discount_percent": 9,
    "created_at": "2026-12-01T03:00:00Z",
    "ended_at": None,
}
_OTHER_SUPPLIER = {403: "This belongs to another supplier."}
PROMOTION_MADE = responses(
    {**_SHOWN, "state": "scheduled", "units_taken": 0, "lowest_price_30d": None, "discount_percent": None},
    _OTHER_SUPPLIER,
    {404: "Product not found"},
    {409: "Another promotion of this product is in force at that time."},
    KEY_USED,
)
PROMOTIONS_LISTED = responses([_SHOWN], _OTHER_SUPPLIER, {404: "Supplier not found"})
PROMOTION_ENDED = responses(
    {**_SHOWN, "state": "ended", "end_reason": "stopped", "ended_at": "2026-12-12T09:30:00Z"},
    _OTHER_SUPPLIER,
    {404: "Promotion not found"},
)


class PromotionForm(StrictBody):
    model_config = {"json_schema_extra": {"example": _EXAMPLE}}

    price: Price = Field(description="below the normal price")
    begins_at: Moment | None = Field(None, description="left out, or in the past: now")
    ends_at: Moment
    max_units: Annotated[int, Field(ge=1, le=MAX_STOCK)] | None = Field(
        None,
        description="when so many are held or sold, the normal price is in force again; null: as many as there are",
    )


class PromotionView(BaseModel):
    id: int
    product_id: int
    product_name: str
    price: int
    normal_price: int
    begins_at: datetime
    ends_at: datetime
    max_units: int | None
    units_taken: int = Field(description="held or sold at this price")
    state: PromotionState = Field(
        description="`sold_out`: all its units are held or sold; it goes on if one comes back"
    )
    end_reason: EndReason | None = Field(
        description="`not_lower`: at its begin it was not below the normal price, so it never was in force"
    )
    lowest_price_30d: int | None = Field(description="of the 30 days before it began; null before that")
    discount_percent: int | None = Field(description="below `lowest_price_30d`; null: it is no discount")
    created_at: datetime
    ended_at: datetime | None
