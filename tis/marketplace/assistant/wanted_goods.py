"""What the assistant asks of the search for a structured query."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy.orm import Session

from tis.marketplace.assistant.cards import cards_of, origin_of
from tis.marketplace.assistant.goods import ProductCard, Viewer
from tis.marketplace.kit.geo import Point
from tis.marketplace.reading.structured_query import MAX_QUERY_CHARS, MAX_SHOWN, StructuredQuery
from tis.marketplace.reading.tokens import tokenize
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.search.query import ProductQuery
from tis.marketplace.search.relaxed_filters import middle_of
from tis.marketplace.search.said_queries import product_query

_MAX_NOUN_WORDS = 3


def goods_query(query: StructuredQuery, viewer: Viewer) -> ProductQuery:
    return product_query(query, origin_of(viewer))


def cards_for(
    search: ProductSearch, session: Session, ids: Sequence[int], query: StructuredQuery, viewer: Viewer
) -> list[ProductCard]:
    """Distances are from the city that goods should be near, if there is one; then nothing is said of delivery."""
    near = _middle(query) if query.near_cities else None
    if near is None:
        return cards_of(search, session, ids, viewer)
    return [replace(card, fulfilment=None) for card in cards_of(search, session, ids, replace(viewer, origin=near))]


def without_unused_radius(query: StructuredQuery, viewer: Viewer) -> StructuredQuery:
    """Without one that filters nothing: around the buyer whose place is not known, and around several places."""
    if query.radius_km is None or goods_query(query, viewer).radius_km is not None:
        return query
    return query.model_copy(update={"radius_km": None})


def _middle(query: StructuredQuery) -> Point | None:
    return middle_of(query.cities[0]) if len(query.cities) == 1 else None


def limits_only(query: StructuredQuery, ids: Sequence[int]) -> StructuredQuery:
    """For products that are known by id. Those that the buyer points at may be sold out, and of any category."""
    changes: dict[str, Any] = {"text": "", "sort": None, "product_ids": list(dict.fromkeys(ids))[:MAX_SHOWN]}
    if query.product_ids:
        changes |= {"category": None, "in_stock": query.in_stock or False}
    if query.intent == "stock":
        changes |= {"in_stock": False, "quantity": None}
    return query.model_copy(update=changes)


def with_known_category(search: ProductSearch, session: Session, query: StructuredQuery) -> StructuredQuery:
    """Sellers may name categories as they like: a category without goods becomes words to look for."""
    if query.category is None:
        return query
    in_category = ProductQuery(category=query.category, available_only=False)
    if search.count(session, in_category, 1).count:
        return query
    without = query.model_copy(update={"category": None})
    if _names_category(search, session, query.text, query.category):
        return without
    noun = query.category.replace("-", " ")
    with_noun = without.model_copy(update={"text": f"{noun} {query.text}".strip()[:MAX_QUERY_CHARS]})
    is_found = not query.text.strip() or search.count(session, product_query(with_noun, None), 1).count
    return with_noun if is_found else without


def _names_category(search: ProductSearch, session: Session, text: str, category: str) -> bool:
    phrases, words = search.vocabulary(session).phrases, tokenize(text)
    return any(
        category in phrases.get(tuple(words[start:end]), ())
        for start in range(len(words))
        for end in range(start + 1, min(start + _MAX_NOUN_WORDS, len(words)) + 1)
    )
