"""Turns a `StructuredQuery` into what the search takes."""

from tis.marketplace.kit.geo import Point
from tis.marketplace.places.gazetteer import gazetteer
from tis.marketplace.reading.structured_query import StructuredQuery
from tis.marketplace.search.query import Names, ProductQuery, Sort


def product_query(query: StructuredQuery, origin: Point | None) -> ProductQuery:
    """`origin` is where the user is. Nothing is measured without one: a radius and the sort by distance are left out.

    A radius around a named place (`5 km dari Bandung`) is left out, too: the place itself filters.
    """
    cities, provinces = ((), ()) if query.near_cities else _places(query)
    is_around_place = bool(cities or provinces) and not query.near_user
    return ProductQuery(
        text=query.text.strip() or None,
        category=query.category,
        brands=tuple(query.brands),
        exclude_brands=tuple(query.exclude_brands),
        # The search names the nearest products elsewhere only of a single `city`.
        city=cities[0] if len(cities) == 1 else None,
        cities=cities if len(cities) > 1 else (),
        provinces=provinces,
        exclude_cities=tuple(query.exclude_cities),
        exclude_terms=tuple(query.exclude_terms),
        product_ids=_product_ids(query),
        sku=query.sku,
        quantity=query.quantity,
        fulfilment=query.fulfilment,
        condition=query.condition,
        min_price=query.min_price,
        max_price=query.max_price,
        min_rating=query.min_rating,
        available_only=query.in_stock is not False,
        origin=origin,
        radius_km=None if origin is None or is_around_place else query.radius_km,
        sort=_sort(query, origin),
    )


def _product_ids(query: StructuredQuery) -> tuple[int, ...] | None:
    """Of a comparison that also names things, the ids are not all that is compared: nothing is filtered by them."""
    compared = query.compare.product_ids if query.compare and not query.compare.items else []
    return tuple(dict.fromkeys(query.product_ids or compared)) or None


def _sort(query: StructuredQuery, origin: Point | None) -> Sort | None:
    return None if query.sort == "distance" and origin is None else query.sort


def _places(query: StructuredQuery) -> tuple[Names, Names]:
    """The search wants a city that lies in one of the provinces; `Bandung atau Bali` means any of the two."""
    cities, provinces = tuple(query.cities), tuple(query.provinces)
    if not cities or not provinces:
        return cities, provinces
    places = gazetteer()
    inside = {code for province in provinces for code in places.province(province)}
    if all(any(codes <= inside for codes in places.code_sets(city)) for city in cities):
        return cities, provinces
    return (*cities, *(f"Provinsi {province}" for province in provinces)), ()
