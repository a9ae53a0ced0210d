"""What a text and a `StructuredQuery` ask the search for: filters, an order, and the words that are left."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy.orm import Session

from tis.marketplace.kit.geo import Point
from tis.marketplace.places.gazetteer import gazetteer
from tis.marketplace.reading.amounts import respell_amounts, take_prices
from tis.marketplace.reading.parse import parse_sentence
from tis.marketplace.reading.sentence import Sentence
from tis.marketplace.reading.structured_query import QueryContext, StructuredQuery
from tis.marketplace.reading.tokens import tokenize
from tis.marketplace.reading.vocabulary import Vocabulary
from tis.marketplace.search.backends.text_index import TextIndex
from tis.marketplace.search.query import Names, ProductQuery
from tis.marketplace.search.relaxed_filters import middle_of
from tis.marketplace.search.sql import run
from tis.marketplace.search.text_query import MAX_WORDS, TextMatch, TextQuery

_MAX_WORDS = 25  # a pasted text names places and brands for other reasons
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
    "on_promotion": ("on_promotion",),
    "min_rating": ("min_rating",),
    "quantity": ("quantity",),
    "radius_km": ("radius_km",),
    "near_user": ("radius_km",),
    "sort": ("sort",),
}
_PLACES = {"cities", "provinces", "exclude_cities"}
_NEAR_KM = 40.0
_MAX_NAMES = 100
_NO_ORDERS = ("relevance", None)


@dataclass(frozen=True)
class BoxReading:
    """`said`: what was read, by the names of `StructuredQuery`, and brands that no product has."""

    query: ProductQuery
    said: Mapping[str, Any] = field(default_factory=dict)


def read_box(query: ProductQuery, vocabulary: Vocabulary) -> BoxReading:
    """A filter that the query has goes before what its text says."""
    text = query.text
    if text is None:
        return BoxReading(query)
    sentence = Sentence(text)
    if len(text.split()) > _MAX_WORDS:
        respell_amounts(sentence)
        said = StructuredQuery.model_validate(take_prices(sentence, is_sentence=False))
    else:
        said = parse_sentence(sentence, QueryContext(), vocabulary).query
    if said.intent in ("other", "compare"):
        return BoxReading(query)
    shown: dict[str, Any] = {}
    if unknown := [brand for brand in said.brands if brand not in vocabulary.brands]:
        shown["no_goods_of"] = unknown
    names = {name for name in _FIELDS if getattr(said, name) not in (None, [], False)}
    wanted = product_query(_from_here(said) if query.origin else said, query.origin)
    free = {name for name in names if not any(getattr(query, one) for one in _FIELDS[name])}
    if wanted.sort in _NO_ORDERS:  # what is nearest nobody knows without a place
        free -= {"sort", "near_user", *(() if wanted.origin else ("radius_km",))}
    rest = _rest(sentence, names)
    has_words = any(map(str.isalnum, rest))
    if not names or (not has_words and names <= _PLACES):  # `palu` alone is a hammer's name, or a shop's
        return BoxReading(query, shown)
    fields = free - {"near_user"} | ({"city", "cities", "provinces"} if free & {"cities", "provinces"} else set())
    changes = {name: getattr(wanted, name) for name in fields} | {"text": rest if has_words else None}
    if "cities" in free and query.origin is None:
        changes |= {"origin": wanted.origin, "radius_km": wanted.radius_km}  # around that city, if there is one
    if has_words and "sort" in changes:
        changes["tie_order"] = changes.pop("sort")  # the cheapest of the phones, not of all that has to do with phones
    names = {*free, *(("near_cities",) if said.near_cities and "origin" in changes else ())} - {"near_user"}
    return BoxReading(replace(query, **changes), {name: getattr(said, name) for name in sorted(names)} | shown)


def _from_here(said: StructuredQuery) -> StructuredQuery:
    """Distances are from the buyer: a named city filters, whether goods should be in it or near it."""
    return said.model_copy(update={"near_cities": False} | ({"radius_km": None} if said.cities else {}))


def _rest(sentence: Sentence, names: set[str]) -> str:
    """The text without the words of these fields."""
    letters = list(sentence.said)
    for fields, start, end in sentence.taken:
        if fields & names:
            letters[start:end] = [" "] * (end - start)
    return " ".join("".join(letters).split())


def names_a_product(session: Session, index: TextIndex, text: str) -> bool:
    """`Kemeja Murah Jaya`, whatever its words say elsewhere."""
    words = tokenize(text)
    if not 0 < len(set(words)) <= MAX_WORDS:
        return False
    source = index.match_source(TextMatch(TextQuery.of_words(*dict.fromkeys(words)), "name"))
    source = replace(source, tables=f"{source.tables} JOIN products q ON q.id = p.product_id")
    sql = source.select("q.name", f"LIMIT {_MAX_NAMES}", "p.sellable >= 0")
    return any(tokenize(name) == words for [name] in run(session, sql, source.values))


def product_query(query: StructuredQuery, origin: Point | None) -> ProductQuery:
    """`origin` is where the user is. Nothing is measured without one: a radius and the sort by distance are left out.

    A radius around a named city counts from that city, wherever the user is. What is near one is ordered by the
    distance; another order decides among what is really near. A radius around other places is left out: they filter.
    """
    city = query.cities[0] if len(query.cities) == 1 and not query.near_user else None
    middle = middle_of(city) if city and (query.near_cities or query.radius_km is not None) else None
    if middle is not None:
        query, origin = query.model_copy(update={"cities": [], "near_cities": False}), middle
        if query.radius_km is None and query.sort not in (None, "distance", "relevance"):
            query = query.model_copy(update={"radius_km": _NEAR_KM})
    cities, provinces = _places(query)
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
        on_promotion=query.on_promotion,
        min_price=query.min_price,
        max_price=query.max_price,
        min_rating=query.min_rating,
        available_only=query.in_stock is not False,
        origin=origin,
        radius_km=None if origin is None or is_around_place else query.radius_km,
        sort=None if query.sort == "distance" and origin is None else query.sort,
    )


def _product_ids(query: StructuredQuery) -> tuple[int, ...] | None:
    """Of a comparison that also names things, the ids are not all that is compared: nothing is filtered by them."""
    compared = query.compare.product_ids if query.compare and not query.compare.items else []
    return tuple(dict.fromkeys(query.product_ids or compared)) or None


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
