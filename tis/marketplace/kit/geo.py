"""Places on the earth and the distance between them."""

from dataclasses import dataclass
from math import asin, cos, radians, sin, sqrt
from typing import Self

from pydantic import BaseModel, model_validator

EARTH_RADIUS_KM = 6371.0


@dataclass(frozen=True)
class Point:
    latitude: float
    longitude: float


class WithPlace(BaseModel):
    """A body with an optional `latitude` and `longitude`: both or neither. 0 is a coordinate."""

    @model_validator(mode="after")
    def _place_is_complete(self) -> Self:
        sent = {name for name in ("latitude", "longitude") if getattr(self, name, None) is not None}
        if len(sent) == 1:
            raise ValueError("latitude and longitude come together")
        return self


class WithPlaceChange(WithPlace):
    """A change that sends one coordinate must send the other, too, even if it is `null`."""

    @model_validator(mode="after")
    def _place_is_sent_whole(self) -> Self:
        if len(self.model_fields_set & {"latitude", "longitude"}) == 1:
            raise ValueError("latitude and longitude come together")
        return self


def shown_distance(kilometres: float, *, shows_place: bool) -> float:
    """To 1 km where a shop hides its place, which is itself rounded to 1 km: more digits would mean nothing."""
    return round(kilometres, 1) if shows_place else float(round(kilometres))


def kilometres_between(one: Point, other: Point) -> float:
    """Great-circle distance (Haversine)."""
    north, east = radians(other.latitude - one.latitude), radians(other.longitude - one.longitude)
    squared = sin(north / 2) ** 2 + cos(radians(one.latitude)) * cos(radians(other.latitude)) * sin(east / 2) ** 2
    # Rounding may lift it over 1 for opposite ends of the earth.
    return 2 * EARTH_RADIUS_KM * asin(sqrt(min(1.0, squared)))
