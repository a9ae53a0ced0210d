"""The places of a shop as others show them: its own address, number 0, and its branches."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import select
from sqlalchemy.orm import Session

from tis.marketplace.kit.branch_shares import OWN_ADDRESS
from tis.marketplace.kit.geo import Point
from tis.marketplace.kit.opening_hours import TimeZone, zone_of
from tis.marketplace.tables import Branch, Supplier


@dataclass(frozen=True)
class ShopPlace:
    """Exact columns are for those who may know where it is."""

    branch_id: int
    name: str
    city: str
    address: str | None
    latitude: float
    longitude: float
    public_latitude: float
    public_longitude: float
    shows_place: bool
    opening_hours: dict[str, Any] | None
    time_zone: str | None

    @property
    def shown_point(self) -> Point:
        return Point(self.public_latitude, self.public_longitude)

    @property
    def zone(self) -> TimeZone:
        return cast(TimeZone | None, self.time_zone) or zone_of(self.public_longitude)


_COLUMNS = (
    "city",
    "address",
    "latitude",
    "longitude",
    "public_latitude",
    "public_longitude",
    "shows_place",
    "opening_hours",
    "time_zone",
)


def places_of(session: Session, supplier_id: int, branch_ids: Collection[int]) -> dict[int, ShopPlace]:
    """By their numbers, the own address always among them."""
    supplier = session.get_one(Supplier, supplier_id)
    found = {OWN_ADDRESS: _place(OWN_ADDRESS, supplier.business_name, supplier)}
    if any(branch_ids):
        rows = select(Branch).where(Branch.supplier_id == supplier_id, Branch.id.in_(branch_ids))
        found |= {branch.id: _place(branch.id, branch.name, branch) for branch in session.scalars(rows)}
    return found


def _place(branch_id: int, name: str, row: Supplier | Branch) -> ShopPlace:
    return ShopPlace(branch_id, name, **{column: getattr(row, column) for column in _COLUMNS})
