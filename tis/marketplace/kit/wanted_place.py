"""From which place of a shop a buyer wants goods: a part of the bodies of holds and orders."""

from pydantic import Field

from tis.marketplace.kit.branch_shares import PlaceWish
from tis.marketplace.kit.fields import MAX_ID, Latitude, Longitude
from tis.marketplace.kit.geo import Point, WithPlace


class WantedPlace(WithPlace):
    """Of a shop with one place, it is that one."""

    branch_id: int | None = Field(
        None,
        ge=0,
        le=MAX_ID,
        strict=True,
        description="a place of the shop, 0 being its own address; else the nearest to `latitude` and `longitude` that "
        "has all units, else the one that has most",
    )
    latitude: Latitude | None = Field(None, description="of the buyer, only to choose the place: it is not kept")
    longitude: Longitude | None = None

    @property
    def near(self) -> Point | None:
        if self.latitude is None or self.longitude is None:
            return None
        return Point(self.latitude, self.longitude)

    @property
    def wish(self) -> PlaceWish:
        return PlaceWish(self.branch_id, self.near)
