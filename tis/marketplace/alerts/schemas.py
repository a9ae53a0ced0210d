"""Bodies, views and answers of the routes of alerts and saved searches, with their examples."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field, model_validator

from tis.marketplace.kit.docs import responses, schema_example
from tis.marketplace.kit.fields import ClosedReason, Price, ShortName
from tis.marketplace.kit.unknown_fields import StrictBody

AlertKind = Literal["below", "fall", "stock"]
_ONLY_USERS = {403: "Only a user may do that, not a supplier."}
_ALERT: dict[str, Any] = {
    "id": 3,
    "product_id": 1,
    "product_name": "Laptop ASUS ROG Strix G15",
    "kind": "below",
    "max_price": 14500000,
    "price": 15999000,
    "closed_reason": None,
    "created_at": "2026-12-01T03:00:00Z",
    "told_at": None,
}
_SAVED: dict[str, Any] = {
    "id": 5,
    "name": "Laptop gaming di Jakarta",
    "parameters": [["q", "laptop gaming"], ["city", "Jakarta"], ["max_price", "15000000"]],
    "path": "/api/products/search?q=laptop+gaming&city=Jakarta&max_price=15000000",
    "tells": True,
    "created_at": "2026-12-01T03:00:00Z",
    "told_at": None,
}
ALERT_MADE = responses(_ALERT, _ONLY_USERS, {404: "Product not found"}, {409: "It can be bought for 13999000 already."})
ALERTS_LISTED = responses([_ALERT], _ONLY_USERS)
ALERT_DELETED = responses(_ALERT, _ONLY_USERS, {404: "Alert not found"})
SEARCH_SAVED = responses(_SAVED, _ONLY_USERS, {409: "A user saves at most 20 searches: delete one first."})
SEARCHES_LISTED = responses([_SAVED], _ONLY_USERS)
SEARCH_CHANGED = responses(_SAVED, _ONLY_USERS, {404: "Saved search not found"})


class AlertForm(StrictBody):
    model_config = schema_example({"kind": "below", "max_price": 14500000})

    kind: AlertKind = Field(
        description="`below`: it costs `max_price` or less; `fall`: it costs less than before, each time; `stock`: it "
        "is back, once"
    )
    max_price: Price | None = Field(None, description="of `below`")

    @model_validator(mode="after")
    def _require_price(self) -> "AlertForm":
        if (self.kind == "below") != (self.max_price is not None):
            raise ValueError("max_price belongs to the kind below, and to no other")
        return self


class AlertView(BaseModel):
    id: int
    product_id: int
    product_name: str
    kind: AlertKind
    max_price: int | None
    price: int | None = Field(description="in force now; null while the product is not offered")
    closed_reason: ClosedReason | None = Field(
        description="why the product is not offered, and the alert tells nothing: deleted, or of a shop that closed or "
        "is suspended"
    )
    created_at: datetime
    told_at: datetime | None = Field(description="when it last told something")


class SavedSearchForm(StrictBody):
    model_config = schema_example({"name": "Laptop gaming di Jakarta", "tells": True})

    name: ShortName
    tells: bool = Field(True, description="whether what it finds anew is news")


class SavedSearchChange(StrictBody):
    """A field that is left out stays unchanged."""

    model_config = schema_example({"tells": False})

    name: ShortName | None = None
    tells: bool | None = None


class SavedSearchView(BaseModel):
    id: int
    name: str
    parameters: list[tuple[str, str]]
    path: str = Field(description="runs it")
    tells: bool
    created_at: datetime
    told_at: datetime | None
