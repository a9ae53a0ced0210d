"""Bodies and views of the places of a shop, with their examples."""

from typing import Annotated, Self

from pydantic import BaseModel, Field, model_validator

from tis.marketplace.kit.docs import KEY_USED, STALE_VERSION, responses, schema_example
from tis.marketplace.kit.fields import MAX_ID, MAX_STOCK, Address, City, Latitude, Longitude, Name, Reason
from tis.marketplace.kit.geo import WithPlaceChange
from tis.marketplace.kit.opening_hours import OpeningHours, TimeZone
from tis.marketplace.kit.unknown_fields import StrictBody
from tis.marketplace.kit.versions import VersionedChange

_NEW_BRANCH = {
    "name": "Toko Rinjani Kemang",
    "address": "Jl. Kemang Raya 8",
    "city": "Jakarta Selatan",
    "province": "DKI Jakarta",
    "latitude": -6.2607,
    "longitude": 106.8137,
    "shows_place": True,
    "opening_hours": {"monday": [["09:00", "17:00"]]},
}
_BRANCH = {
    "id": 3,
    "supplier_id": 1,
    **_NEW_BRANCH,
    "time_zone": "WIB",
    "open_now": False,
    "place_code": "3174",
    "is_active": True,
    "version": 1,
}
_Place = Annotated[int, Field(ge=0, le=MAX_ID)]


class BranchForm(StrictBody):
    model_config = schema_example(_NEW_BRANCH)

    name: Name
    address: Address | None = None
    city: City
    province: City | None = None
    latitude: Latitude
    longitude: Longitude
    shows_place: bool = Field(False, description="show strangers where it is, to about 100 m")
    opening_hours: OpeningHours | None = None
    time_zone: TimeZone | None = Field(None, description="if it is not the one of its longitude")


class BranchChange(WithPlaceChange, VersionedChange):
    # Defaults are never used: only the fields that were sent are changed.
    model_config = schema_example({"name": "Toko Rinjani Kemang", "is_active": False})

    name: Name = ""
    address: Address | None = None
    city: City = ""
    province: City | None = None
    latitude: Latitude = 0
    longitude: Longitude = 0
    shows_place: bool = False
    opening_hours: OpeningHours | None = None
    time_zone: TimeZone | None = None
    is_active: bool = Field(True, description="false: closed, which it can be while no units lie there")


class BranchView(BaseModel):
    """Strangers see its address not at all, and its coordinates rounded, if it shows its place."""

    id: int
    supplier_id: int
    name: str
    address: str | None
    city: str
    province: str | None
    latitude: float | None
    longitude: float | None
    shows_place: bool
    opening_hours: dict[str, list[list[str]]] | None
    time_zone: TimeZone
    open_now: bool | None  # null if it has no opening hours
    place_code: str | None
    is_active: bool
    version: int


class TransferForm(StrictBody):
    model_config = schema_example({"quantity": 2, "from_branch_id": 0, "to_branch_id": 3, "reason": "Sold out there"})

    quantity: int = Field(ge=1, le=MAX_STOCK, strict=True)
    from_branch_id: _Place = Field(description="0: the shop's own address")
    to_branch_id: _Place = Field(description="0: the shop's own address")
    reason: Reason | None = None

    @model_validator(mode="after")
    def _goes_elsewhere(self) -> Self:
        if self.from_branch_id == self.to_branch_id:
            raise ValueError("from_branch_id and to_branch_id are the same place")
        return self


class PlaceStock(BaseModel):
    branch_id: int  # 0: the shop's own address
    name: str
    on_hand: int
    reserved: int
    available_quantity: int


class StockByPlace(BaseModel):
    """Of a product, for members of the shop. The places add up to the product's own numbers."""

    product_id: int
    on_hand: int
    reserved: int
    available_quantity: int
    places: list[PlaceStock]


_STOCK = {
    "product_id": 1,
    "on_hand": 5,
    "reserved": 1,
    "available_quantity": 4,
    "places": [
        {"branch_id": 0, "name": "Toko Rinjani", "on_hand": 3, "reserved": 1, "available_quantity": 2},
        {"branch_id": 3, "name": "Toko Rinjani Kemang", "on_hand": 2, "reserved": 0, "available_quantity": 2},
    ],
}
_OWNERS = {403: "Only an owner of this supplier may do that."}
# Answers of the routes, for /docs.
BRANCHES_LISTED = responses([_BRANCH], {404: "Supplier not found"})
BRANCH_MADE = responses(
    _BRANCH,
    _OWNERS,
    {404: "Supplier not found", 409: "A supplier has at most 20 places: change a closed one."},
    KEY_USED,
)
BRANCH_CHANGED = responses(
    _BRANCH,
    _OWNERS,
    {404: "Branch not found", 409: "4 units of 2 products lie here, 1 of them reserved: move or sell them first."},
    STALE_VERSION,
)
_MEMBERS = {403: "This belongs to another supplier."}
STOCK_BY_PLACE = responses(_STOCK, _MEMBERS, {404: "Product not found"})
TRANSFERRED = responses(
    _STOCK,
    _MEMBERS,
    {404: "Branch not found", 409: "Only 1 of 3 units at this place are not reserved: this would take 2."},
    KEY_USED,
)
