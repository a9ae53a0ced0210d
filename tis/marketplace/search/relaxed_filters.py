"""Which filter keeps a search from finding more: each alone dropped or widened, and how many products that finds.

Where a named place has nothing, the nearest goods of other places are offered. The words of a text are relaxed by
`relaxation.py`; exclusions, ids, SKU and shop are what the buyer insists on.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tis.marketplace.kit.geo import Point, kilometres_between
from tis.marketplace.places.gazetteer import gazetteer
from tis.marketplace.places.place_names import Place
from tis.marketplace.search.query import ProductCount, ProductQuery
from tis.marketplace.tables import MAX_RUPIAH

MAX_RELAXED_COUNT = 100
_MAX_RELAXATIONS = 6
FEW = 5  # a search that finds so many needs none
_PRICES_IN_PERCENT = (125, 150)
_RADII_AROUND_CITY_KM = (40.0, 100.0)
_MAX_RADIUS_KM = 20_000.0
_MAX_KM_OF_ONE_PLACE = 60.0  # of several regencies that one name means, as Jakarta, from their middle

# What is dropped, nearest to the request first: the name of the filter, and its fields.
_DROPPED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("quantity", {"quantity": None}),
    ("fulfilment", {"fulfilment": None}),
    ("verified", {"of_verified_shops": False}),
    ("on_promotion", {"on_promotion": False}),
    ("min_rating", {"min_rating": None}),
    ("condition", {"condition": None}),
    ("attributes", {"attributes": ()}),
    ("max_price", {"max_price": None}),
    ("min_price", {"min_price": None}),
    ("city", {"city": None, "cities": ()}),
    ("province", {"provinces": ()}),
    ("radius_km", {"radius_km": None}),
    ("brand", {"brand": None, "brands": ()}),
    ("available_only", {"available_only": False}),
    ("category", {"category": None}),
)
CountProducts = Callable[[ProductQuery, int], ProductCount]


@dataclass(frozen=True)
class RelaxedFilter:
    """`count` products match `query`, which is the request with one filter changed."""

    without: str
    query: ProductQuery
    count: int
    is_exact: bool


def counted_relaxations(query: ProductQuery, count_products: CountProducts) -> list[RelaxedFilter]:
    """Those that find more than the query itself, and more than a smaller change of the same filter."""
    num_found = count_products(query, MAX_RELAXED_COUNT).count
    if num_found >= FEW:
        return []
    relaxations: list[RelaxedFilter] = []
    best: dict[str, int] = {}
    for without, relaxed in relaxed_queries(query):
        if best.get(without) == MAX_RELAXED_COUNT:
            continue
        found = count_products(relaxed, MAX_RELAXED_COUNT)
        if found.count > best.get(without, num_found):
            best[without] = found.count
            relaxations.append(RelaxedFilter(without, relaxed, found.count, found.is_exact))
        if len(relaxations) == _MAX_RELAXATIONS:
            break
    return relaxations


def relaxed_queries(query: ProductQuery) -> Iterator[tuple[str, ProductQuery]]:
    """Nearest to the request first: widened filters, then dropped ones."""
    if query.max_price is not None:
        for percent in _PRICES_IN_PERCENT:
            yield "max_price", replace(query, max_price=min(-(-query.max_price * percent // 100), MAX_RUPIAH))
    if query.origin and query.radius_km:
        yield "radius_km", replace(query, radius_km=min(2 * query.radius_km, _MAX_RADIUS_KM))
    if middle := _middle_of_city(query):
        for radius_km in _RADII_AROUND_CITY_KM:
            yield "city", replace(query, city=None, cities=(), origin=middle, radius_km=radius_km)
    for without, changed in _DROPPED:
        relaxed = replace(query, **changed)
        if relaxed != query:
            yield without, relaxed


def _middle_of_city(query: ProductQuery) -> Point | None:
    """None if distances are already measured for another filter."""
    if len(query.any_city) != 1 or query.radius_km is not None or (query.origin and query.fulfilment == "delivery"):
        return None
    return middle_of(query.any_city[0])


def middle_of(city: str) -> Point | None:
    """Where a city lies by the gazetteer; None for names that it does not know, and for provinces."""
    places = gazetteer().find(city)
    if not places:
        return None
    middle = _middle(places)
    farthest = max(kilometres_between(middle, Point(place.latitude, place.longitude)) for place in places)
    return middle if farthest <= _MAX_KM_OF_ONE_PLACE else None


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
    return NamedPoint(places[0].name if len(places) == 1 else " ".join(city.split()), _middle(places))


def _middle(places: Sequence[Place]) -> Point:
    count = len(places)
    return Point(sum(place.latitude for place in places) / count, sum(place.longitude for place in places) / count)


def query_around(query: ProductQuery, point: Point) -> ProductQuery:
    """The same without the place and the radius of the buyer: the nearest to the place first."""
    return replace(query, city=None, provinces=(), origin=point, radius_km=None, sort="distance")
