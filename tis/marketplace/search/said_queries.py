"""What a text and a `StructuredQuery` ask the search for: filters, an order, and the words that are left."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tis.marketplace.kit.geo import Point
from tis.marketplace.places.gazetteer import gazetteer
from tis.marketplace.reading.parse import parse_sentence
from tis.marketplace.reading.prices import said_prices
from tis.marketplace.reading.sentence import Sentence
from tis.marketplace.reading.structured_query import QueryContext, StructuredQuery
from tis.marketplace.reading.vocabulary import Vocabulary
from tis.marketplace.search.city_filter import city_test
from tis.marketplace.search.query import Names, ProductQuery, Sort
from tis.marketplace.tables import MAX_RUPIAH

_MAX_WORDS = 25  # a pasted text names prices and places for other reasons
# What a text may say, by the names of the query that it becomes, and the filters that go before it.
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "min_price": ("min_price", "max_price"),
    "max_price": ("min_price", "max_price"),
    "cities": ("city", "cities", "provinces"),
    "provinces": ("city", "cities", "provinces"),
    "exclude_cities": ("exclude_cities",),
    "exclude_brands": ("exclude_brands", "brand", "brands"),
    "exclude_terms": ("exclude_terms",),
    "condition": ("condition",),
    "min_rating": ("min_rating",),
    "quantity": ("quantity",),
    "radius_km": ("radius_km",),
    "near_user": ("radius_km",),
    "sort": ("sort",),
}
_NO_ORDERS = ("relevance", None)


@dataclass(frozen=True)
class BoxReading:
    """`said`: what was read, by the names of `StructuredQuery`, and brands that no product has."""

    query: ProductQuery
    said: Mapping[str, Any] = field(default_factory=dict)


def read_box(query: ProductQuery, vocabulary: Vocabulary) -> BoxReading:
    """A filter that the query has goes before what its text says; those words are looked for then."""
    text = query.text
    if text is None or len(text.split()) > _MAX_WORDS:
        return BoxReading(query)
    sentence = Sentence(text)
    parsed = parse_sentence(sentence, QueryContext(), vocabulary)
    said = parsed.query
    if said.intent in ("other", "compare"):
        return BoxReading(query)
    names = {name for name in _FIELDS if _is_said(said, name) and _is_free(query, name)}
    if said.sort in _NO_ORDERS or (said.sort == "distance" and query.origin is None):
        names -= {"sort", "near_user", "radius_km"}
    shown: dict[str, Any] = {}
    if unknown := [brand for brand in said.brands if brand not in vocabulary.brands]:
        shown["no_goods_of"] = unknown
    rest = _rest(sentence, names)
    has_words = any(map(str.isalnum, rest))
    if not names or not (has_words or "sort" in names):  # `palu` alone is a hammer's name, or a shop's
        return BoxReading(query, shown)
    wanted = product_query(said, query.origin)
    changes = {name: getattr(wanted, name) for name in _of_query(names)} | {"text": rest if has_words else None}
    if has_words and "sort" in changes:
        changes["tie_order"] = changes.pop("sort")  # the cheapest of the phones, not of all that has to do with phones
    shown = {name: getattr(said, name) for name in sorted(names) if name != "near_user"} | shown
    return BoxReading(replace(query, **changes), shown)


def _is_said(said: StructuredQuery, name: str) -> bool:
    return getattr(said, name) not in (None, [], False)


def _is_free(query: ProductQuery, name: str) -> bool:
    return not any(getattr(query, one) for one in _FIELDS[name])


def _of_query(names: set[str]) -> set[str]:
    found = names - {"near_user", "cities"}
    return found | {"city", "cities", "provinces"} if names & {"cities", "provinces"} else found


def _rest(sentence: Sentence, names: set[str]) -> str:
    """The text without the words of these fields."""
    letters = list(sentence.said)
    for fields, start, end in sentence.taken:
        if fields & names:
            letters[start:end] = [" "] * (end - start)
    return " ".join("".join(letters).split())


def with_said_filters(query: ProductQuery) -> ProductQuery:
    """A filter that the query has already goes before what its text says."""
    return _with_said_place(_with_said_prices(query))


def _with_said_prices(query: ProductQuery) -> ProductQuery:
    if query.text is None or (query.min_price, query.max_price) != (None, None):
        return query
    said = said_prices(query.text)
    if said.least is None and said.most is None:
        return query
    least, most = (None if one is None else min(one, MAX_RUPIAH) for one in (said.least, said.most))
    return replace(query, text=said.text if said.text.strip() else None, min_price=least, max_price=most)


def _with_said_place(query: ProductQuery) -> ProductQuery:
    """Not if the text is nothing but a name: it may be that of a shop, or a hammer's (`palu`)."""
    if query.text is None or query.any_city or query.provinces:
        return query
    words = query.text.split()
    if len(words) > _MAX_WORDS:  # a pasted text names places for other reasons
        return query
    named = [place for place in gazetteer().named_in(words) if place.is_certain]
    if len(named) != 1:
        return query
    [place] = named
    rest = [*words[: place.start], *words[place.end :]]
    if not any(map(str.isalnum, "".join(rest))):
        return query
    said, own = " ".join(words[place.start : place.end]), place.places[0].name
    # A slip, or a city with its province: the filter knows the city alone.
    city = said if city_test(said) else own if len(place.places) == 1 else None
    return query if city is None else replace(query, text=" ".join(rest), city=city)


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
