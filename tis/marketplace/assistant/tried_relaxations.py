"""The relaxations of a query that finds little: searches that were really made, as structured queries."""

from dataclasses import replace
from typing import Any

from sqlalchemy.orm import Session

from tis.marketplace.assistant.goods import TriedRelaxation, Viewer
from tis.marketplace.assistant.wanted_goods import goods_query
from tis.marketplace.query_parser.structured_query import StructuredQuery
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.search.query import ProductQuery
from tis.marketplace.search.relaxed_filters import RelaxedFilter
from tis.marketplace.search.said_filters import with_said_filters


def tried_relaxations(
    search: ProductSearch, session: Session, query: StructuredQuery, viewer: Viewer
) -> list[TriedRelaxation]:
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
