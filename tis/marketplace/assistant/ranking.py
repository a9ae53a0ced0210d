"""In which order the assistant offers products: by one score of relevance, distance, price, stock and rating.

    score = sum(weight * value) / sum(weights)        each value from 0 to 1

The filters of the query are applied by the search, in SQL: a score never lets in what they keep out. A query that asks
for an order (cheapest, nearest, best rated, newest) gets that order; the score decides among equals.
Preferences of the buyer count only where two scores are equal to `TIE_PLACES` places.
"""

import math
from collections.abc import Iterable

from tis.marketplace.assistant.viewers import Viewer
from tis.marketplace.reading.structured_query import StructuredQuery
from tis.marketplace.search.query import Candidate
from tis.marketplace.tables import UNRATED

TIE_PLACES = 2
_TIER_STEP = 0.8  # what is left of the relevance in each further tier of the search
_KM_OF_HALF = 25.0  # at this distance a product is worth half of one next door
_ENOUGH_STOCK = 2  # times the quantity that is wanted: the last piece may be gone before it is bought


def score(candidate: Candidate, query: StructuredQuery) -> float:
    """From 0 to 1. What is not known (no place, no limit of the price) is worth the same for all."""
    is_near = query.near_user or query.radius_km is not None or query.fulfilment == "pickup"
    has_price = query.min_price is not None or query.max_price is not None
    counts_stock = query.quantity is not None or query.intent == "stock"
    counts_rating = query.min_rating is not None or query.intent == "recommend"
    distance, enough = candidate.distance_km, _ENOUGH_STOCK * (query.quantity or 1)
    # What the buyer speaks of weighs more than what it does not.
    parts = (
        (5.0, _TIER_STEP**candidate.tier),
        (4.0 if is_near else 1.5, 0.0 if distance is None else math.exp2(-distance / _KM_OF_HALF)),
        (3.0 if has_price else 1.0, 1.0 if candidate.price_fit is None else candidate.price_fit),
        (1.0 if counts_stock else 0.5, max(0.0, min(1.0, candidate.available_quantity / enough))),
        (3.0 if counts_rating else 1.0, _rating_of(candidate) / 5),
    )
    return sum(weight * value for weight, value in parts) / sum(weight for weight, _ in parts)


def ranked(
    candidates: Iterable[Candidate], query: StructuredQuery, viewer: Viewer, *, by_tier: bool = False
) -> list[Candidate]:
    """Best first. `by_tier`: for goods that match only some of the words, since nothing makes up for missing words."""

    def place(candidate: Candidate) -> tuple[float, ...]:
        product, own = candidate.product, score(candidate, query)
        met = viewer.preferences.met_by(product.brand, product.price, product.shop_city, product.condition)
        tier = candidate.tier if by_tier else 0
        return (*_asked_order(candidate, query), tier, -round(own, TIE_PLACES), -len(met), -own, product.id)

    return sorted(candidates, key=place)


def _asked_order(candidate: Candidate, query: StructuredQuery) -> tuple[float, ...]:
    match query.sort:
        case "price_asc":
            return (candidate.product.price,)
        case "price_desc":
            return (-candidate.product.price,)
        case "rating":
            return (-_rating_of(candidate),)
        case "newest":
            return (-candidate.product.created_at.timestamp(),)
        case "distance":
            return (math.inf if candidate.distance_km is None else candidate.distance_km,)
        case _:
            return ()


def _rating_of(candidate: Candidate) -> float:
    return UNRATED if candidate.rating is None else candidate.rating
