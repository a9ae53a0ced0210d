"""Where goods of a shop with several places are, as buyers see it."""

from typing import Self

from pydantic import BaseModel, Field
from sqlalchemy.orm import Session

from tis.marketplace.columns import now
from tis.marketplace.kit.branch_places import ShopPlace, places_of
from tis.marketplace.kit.branch_shares import Share, is_any_spread, shares_of
from tis.marketplace.kit.geo import Point, kilometres_between, shown_distance
from tis.marketplace.kit.opening_hours import TimeZone, hours_in_order, is_open_now
from tis.marketplace.tables import Product


class PlaceOfGoods(BaseModel):
    """A place of the shop with what can be bought there."""

    branch_id: int = Field(description="0: the shop's own address")
    name: str
    city: str
    available_quantity: int
    distance_km: float | None = Field(description="to 1 km if it is hidden where it is")
    opening_hours: dict[str, list[list[str]]] | None
    time_zone: TimeZone
    open_now: bool | None

    @classmethod
    def of(cls, place: ShopPlace, available: int, origin: Point | None) -> Self:
        km = None
        if origin is not None:
            km = shown_distance(kilometres_between(origin, place.shown_point), shows_place=place.shows_place)
        return cls(
            branch_id=place.branch_id,
            name=place.name,
            city=place.city,
            available_quantity=available,
            distance_km=km,
            opening_hours=hours_in_order(place.opening_hours),
            time_zone=place.zone,
            open_now=is_open_now(place.opening_hours, place.zone, now()),
        )


def places_with_goods(session: Session, product: Product, origin: Point | None) -> list[PlaceOfGoods] | None:
    """The nearest first, or those with most. None of a product that lies at one place."""
    if not is_any_spread(session, [product.id]):
        return None
    shares = [share for share in shares_of(session, [product.id])[product.id] if share.is_open]
    places = places_of(session, product.supplier_id, [share.branch_id for share in shares])

    def rank(share: Share) -> tuple[float, int]:
        near = -share.available if origin is None else kilometres_between(origin, share.place)
        return near, share.branch_id

    can_be_had = product.is_available
    return [
        PlaceOfGoods.of(places[share.branch_id], share.available if can_be_had else 0, origin)
        for share in sorted(shares, key=rank)
    ]
