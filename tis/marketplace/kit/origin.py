"""Where a buyer is: query parameters of routes that measure distances."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Query

from tis.errors import Unprocessable
from tis.marketplace.kit.fields import Latitude, Longitude
from tis.marketplace.kit.geo import Point


@dataclass(frozen=True)
class Vicinity:
    """What lies within `radius_km` of the buyer, or anywhere."""

    origin: Point | None = None
    radius_km: float | None = None


async def _origin(
    user_lat: Annotated[Latitude | None, Query(description="where the buyer is")] = None,
    user_lon: Annotated[Longitude | None, Query()] = None,
) -> Point | None:
    if user_lat is None and user_lon is None:
        return None
    if user_lat is None or user_lon is None:
        raise Unprocessable("user_lat and user_lon belong together.")
    return Point(user_lat, user_lon)


OriginDep = Annotated[Point | None, Depends(_origin)]


async def _vicinity(
    origin: OriginDep, radius_km: Annotated[float | None, Query(ge=0, le=20_100, allow_inf_nan=False)] = None
) -> Vicinity:
    if radius_km is not None and origin is None:
        raise Unprocessable("radius_km needs user_lat and user_lon.")
    return Vicinity(origin, radius_km)


VicinityDep = Annotated[Vicinity, Depends(_vicinity)]
