"""What is offered where a named place has nothing: the nearest products of other places."""

from dataclasses import dataclass, replace

from tis.marketplace.kit.geo import Point
from tis.marketplace.places.gazetteer import gazetteer
from tis.marketplace.search.query import PageRequest, ProductQuery

NEAREST_PAGE = PageRequest(limit=5, with_total=False)


@dataclass(frozen=True)
class NamedPoint:
    """A place by its official name, or as it was said if the name means several (Jabodetabek), and its centre."""

    name: str
    point: Point


def point_of_city(city: str) -> NamedPoint | None:
    """None if no place has the name. Of a province it is the capital, of several places the middle."""
    places = gazetteer().meaning(city)
    if not places:
        return None
    latitude, longitude = (
        sum(getattr(place, axis) for place in places) / len(places) for axis in ("latitude", "longitude")
    )
    name = places[0].name if len(places) == 1 else " ".join(city.split())
    return NamedPoint(name, Point(latitude, longitude))


def query_around(query: ProductQuery, point: Point) -> ProductQuery:
    """The same without the place and the radius of the buyer: the nearest to the place first."""
    return replace(query, city=None, provinces=(), origin=point, radius_km=None, sort="distance")
