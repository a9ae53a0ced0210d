"""Finds the goods that an answer speaks of, by the same search as REST. Each function reads in one transaction."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy.orm import Session

from tis.marketplace.assistant.cards import card_of, cards_of, origin_of
from tis.marketplace.assistant.goods import MAX_CARDS, FoundGoods, ProductCard, TriedRelaxation, Viewer
from tis.marketplace.assistant.ranking import ranked
from tis.marketplace.kit.geo import Point
from tis.marketplace.query_parser.structured_query import StructuredQuery
from tis.marketplace.query_parser.to_product_query import product_query
from tis.marketplace.search.nearest import NamedPoint, point_of_city, query_around
from tis.marketplace.search.product_candidates import MAX_CANDIDATES, Candidate
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.search.query import PageRequest, ProductQuery, Sort
from tis.marketplace.search.relaxed_filters import RelaxedFilter, middle_of
from tis.marketplace.search.said_filters import with_said_filters

_MAX_COUNTED = 1000
_MAX_NEAREST = 3
_MAX_COMPARED = 4  # phrases; each is a search of its own
_FIRST = PageRequest(limit=1)
_OTHER_KIND: tuple[dict[str, Any], ...] = ({}, {"category": None, "brands": []})  # what is tried in turn


def find_goods(search: ProductSearch, session: Session, query: StructuredQuery, viewer: Viewer) -> FoundGoods:
    if query.intent == "other":
        return FoundGoods([], total=0)
    query = with_known_category(search, session, query)
    if query.compare is not None and (query.compare.items or query.compare.product_ids):
        return _compared(search, session, query, viewer)
    if query.product_ids:
        return _pointed_at(search, session, query, viewer)
    return _found(search, session, query, viewer)


def with_known_category(search: ProductSearch, session: Session, query: StructuredQuery) -> StructuredQuery:
    """Sellers may name categories as they like: a category without goods becomes words to look for."""
    if query.category is None:
        return query
    in_category = ProductQuery(category=query.category, available_only=False)
    if search.count(session, in_category, 1).count:
        return query
    words = query.category.replace("-", " ")
    return query.model_copy(update={"category": None, "text": query.text if query.text.strip() else words})


def _found(search: ProductSearch, session: Session, query: StructuredQuery, viewer: Viewer) -> FoundGoods:
    wanted = goods_query(query, viewer)
    total = search.count(session, wanted, _MAX_COUNTED)
    if not total.count and query.intent == "stock" and query.in_stock is not False:
        # "Is it in stock?" of what is sold out gets a no, not silence.
        sold_out = query.model_copy(update={"in_stock": False, "quantity": None})
        if search.count(session, goods_query(sold_out, viewer), 1).count:
            return _found(search, session, sold_out, viewer)
    summary = search.find(session, wanted, _FIRST)
    num_whole = total.count if summary.relaxed else MAX_CANDIDATES
    best = best_candidates(search, session, query, viewer, num_whole)
    place, nearest = (None, []) if best else _nearest_elsewhere(search, session, query, wanted)
    return FoundGoods(
        cards=_cards(search, session, best, viewer),
        total=total.count,
        total_is_exact=total.is_exact,
        corrected=summary.corrected,
        unverified_words=summary.relaxed,
        relaxations=_tried(search, session, query, viewer),
        nearest_place=place.name if place and nearest else None,
        nearest=nearest,
    )


def goods_query(query: StructuredQuery, viewer: Viewer) -> ProductQuery:
    """A radius around a named city counts from that city, wherever the buyer is."""
    if query.radius_km is not None and not query.near_user and (middle := _middle(query)):
        around = product_query(query.model_copy(update={"cities": []}), middle)
        return replace(around, radius_km=query.radius_km)
    return product_query(query, origin_of(viewer))


def _middle(query: StructuredQuery) -> Point | None:
    return middle_of(query.cities[0]) if len(query.cities) == 1 else None


def best_candidates(
    search: ProductSearch, session: Session, query: StructuredQuery, viewer: Viewer, num_whole: int = MAX_CANDIDATES
) -> list[Candidate]:
    """Best first; the first `num_whole` of the search, which match all words, before the others."""
    found = _candidates(search, session, goods_query(query, viewer))
    return [*ranked(found[:num_whole], query, viewer), *ranked(found[num_whole:], query, viewer, by_tier=True)]


def _candidates(search: ProductSearch, session: Session, wanted: ProductQuery) -> list[Candidate]:
    """In the order of the search: those that match all words before those that match some."""
    found: dict[int, Candidate] = {}
    for sort in _orders_read(wanted):
        for one in search.candidates(session, replace(wanted, sort=sort), MAX_CANDIDATES):
            found.setdefault(one.product.id, one)
    return list(found.values())


def _orders_read(wanted: ProductQuery) -> Iterator[Sort | None]:
    """Without words nothing says which of thousands are read: those that some part of the score likes best."""
    if wanted.text is not None or wanted.sort not in (None, "relevance"):
        yield wanted.sort
        return
    yield "rating"
    if wanted.origin is not None:
        yield "distance"


def _cards(
    search: ProductSearch, session: Session, candidates: Sequence[Candidate], viewer: Viewer
) -> list[ProductCard]:
    return cards_of(search, session, [one.product.id for one in candidates[:MAX_CARDS]], viewer)


def _pointed_at(search: ProductSearch, session: Session, query: StructuredQuery, viewer: Viewer) -> FoundGoods:
    """Products that the buyer points at are shown even if they are sold out; the other filters of the query hold."""
    shown = query.model_copy(update={"in_stock": query.in_stock or False, "text": "", "category": None})
    if query.intent == "stock":
        shown = shown.model_copy(update={"in_stock": False, "quantity": None})
    visible = search.candidates(session, goods_query(shown, viewer), MAX_CANDIDATES)
    found = {one.product.id for one in visible}
    ids = [one for one in dict.fromkeys(query.product_ids) if one in found]
    if query.sort not in (None, "relevance"):
        ids = [one.product.id for one in ranked(visible, query, viewer)]
    return FoundGoods(cards_of(search, session, ids[:MAX_CARDS], viewer), total=len(ids))


def _compared(search: ProductSearch, session: Session, query: StructuredQuery, viewer: Viewer) -> FoundGoods:
    """The products that it points at, then the best match of each phrase."""
    assert query.compare is not None
    ids = list(query.compare.product_ids)
    is_verified = True
    for item in query.compare.items[:_MAX_COMPARED]:
        own = _match_ids(search, session, query, item, viewer, ids)
        ids += own[:1]
        is_verified = is_verified and bool(own)
    cards = cards_of(search, session, ids, viewer)[:MAX_CARDS]
    return FoundGoods(cards, total=len(cards), unverified_words=not is_verified)


def _match_ids(
    search: ProductSearch, session: Session, query: StructuredQuery, item: str, viewer: Viewer, taken: Sequence[int]
) -> list[int]:
    """With all filters of the query, then without category and brands: the phrase may be of another kind."""
    for dropped in _OTHER_KIND:
        changes: dict[str, Any] = {"text": item, "compare": None, "product_ids": [], **dropped}
        found = best_candidates(search, session, query.model_copy(update=changes), viewer)
        if ids := [one.product.id for one in found if one.product.id not in taken]:
            return ids
    return []


def _nearest_elsewhere(
    search: ProductSearch, session: Session, query: StructuredQuery, wanted: ProductQuery
) -> tuple[NamedPoint | None, list[ProductCard]]:
    """Without advice on delivery: the distances are from the named place."""
    places = [*query.cities, *query.provinces]
    place = point_of_city(places[0]) if places else None
    if place is None:
        return None, []
    around = replace(query_around(wanted, place.point), cities=())
    hits = search.find(session, around, PageRequest(limit=_MAX_NEAREST, with_total=False)).hits
    return place, [card_of(hit, Viewer(), with_advice=False) for hit in hits]


def _tried(search: ProductSearch, session: Session, query: StructuredQuery, viewer: Viewer) -> list[TriedRelaxation]:
    """Those that the fields of the query can say: the search of each is the one that was counted."""
    tried = list[TriedRelaxation]()
    for relaxed in search.relaxations(session, goods_query(query, viewer)):
        changed = query.model_copy(update=_changes(query, relaxed))
        if _same_goods(with_said_filters(goods_query(changed, viewer)), relaxed.query):
            tried.append(TriedRelaxation(relaxed.without, changed, relaxed.count, relaxed.is_exact))
    return tried


def _changes(query: StructuredQuery, relaxed: RelaxedFilter) -> dict[str, Any]:
    match relaxed.without:
        case "max_price":
            return {"max_price": relaxed.query.max_price}
        case "radius_km" if relaxed.query.radius_km is not None:
            return {"radius_km": relaxed.query.radius_km}
        case "radius_km" if query.near_user:
            return {"radius_km": None}
        case "radius_km":
            return {"radius_km": None, "cities": []}
        case "city" if relaxed.query.radius_km is not None and not query.near_user:
            return {"radius_km": relaxed.query.radius_km}
        case "city" if relaxed.query.provinces:
            return {"cities": []}
        case "city":
            return {"cities": [], "provinces": []}
        case "province":
            return {"provinces": []}
        case "brand":
            return {"brands": []}
        case "available_only":
            return {"in_stock": False}
        case "quantity" | "fulfilment" | "min_rating" | "condition" | "min_price" | "category":
            return {relaxed.without: None}
        case _:
            return {}


def _same_goods(one: ProductQuery, other: ProductQuery) -> bool:
    """Where nothing filters by distance, it does not matter from where that is measured."""
    if one.radius_km is None and other.radius_km is None and one.fulfilment is None:
        one = replace(one, origin=other.origin)
    return one == other
