"""The relaxations of a query that finds little: searches that were really made, as structured queries.

Where no filter alone hides the goods, two are dropped: Bandung has no phones, and no phone elsewhere is used.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations, islice
from typing import Any

from sqlalchemy.orm import Session

from tis.marketplace.assistant.goods import TriedRelaxation, Viewer
from tis.marketplace.assistant.wanted_goods import goods_query
from tis.marketplace.reading.structured_query import StructuredQuery
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.search.query import ProductQuery
from tis.marketplace.search.relaxed_filters import MAX_RELAXED_COUNT, RelaxedFilter

_MAX_PAIRS, _MAX_PAIRS_TRIED = 2, 10
_DROPPED: dict[str, dict[str, Any]] = {
    "text": {"text": ""},
    "quantity": {"quantity": None},
    "fulfilment": {"fulfilment": None},
    "min_rating": {"min_rating": None},
    "condition": {"condition": None},
    "max_price": {"max_price": None},
    "city": {"cities": [], "provinces": [], "radius_km": None},
    "brand": {"brands": []},
}


def tried_relaxations(
    search: ProductSearch, session: Session, query: StructuredQuery, viewer: Viewer
) -> list[TriedRelaxation]:
    """Those that the fields of the query can say: the search of each is the one that was counted."""
    tried = list[TriedRelaxation]()
    wanted = goods_query(query, viewer)
    for relaxed in search.relaxations(session, wanted):
        changed = query.model_copy(update=_changes(query, relaxed))
        if _same_goods(goods_query(changed, viewer), relaxed.query):
            tried.append(TriedRelaxation(relaxed.without, changed, relaxed.count, relaxed.is_exact))
    if not tried and not search.count(session, wanted, 1).count:
        tried = list(_pairs(search, session, query, viewer))
    return tried


def _pairs(
    search: ProductSearch, session: Session, query: StructuredQuery, viewer: Viewer
) -> Iterator[TriedRelaxation]:
    """Few, nearest to the query first. The words are dropped only where the category says what is wanted."""
    set_fields = [changes for name, changes in _DROPPED.items() if _drops(query, changes) and _may_drop(query, name)]
    num_found = 0
    for pair in islice(combinations(set_fields, 2), _MAX_PAIRS_TRIED):
        names = " and ".join(name for name, changes in _DROPPED.items() if changes in pair)
        changed = query.model_copy(update={**pair[0], **pair[1]})
        found = search.count(session, goods_query(changed, viewer), MAX_RELAXED_COUNT)
        if found.count:
            yield TriedRelaxation(names, changed, found.count, found.is_exact)
            num_found += 1
        if num_found == _MAX_PAIRS:
            return


def _drops(query: StructuredQuery, changes: Mapping[str, Any]) -> bool:
    return any(getattr(query, field) != value for field, value in changes.items())


def _may_drop(query: StructuredQuery, name: str) -> bool:
    return name != "text" or query.category is not None


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
