"""In which order the assistant offers products: one score of relevance, distance, price, stock and rating.

    score = sum(weight * value) / sum(weights)        each value from 0 to 1, the weights are `WEIGHTS`

The filters of the query are applied by the search, in SQL: a score never lets in what they keep out. A query that asks
for an order (cheapest, nearest, best rated, newest) gets that order; the score decides among equals.
Preferences of the buyer count only where two scores are equal to `TIE_PLACES` places.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from tis.marketplace.assistant.goods import Preferences, Viewer
from tis.marketplace.kit.fields import key_of
from tis.marketplace.reading.structured_query import StructuredQuery
from tis.marketplace.search.city_filter import city_test
from tis.marketplace.search.product_rows import ProductRow
from tis.marketplace.search.query import Candidate
from tis.marketplace.tables import UNRATED

TIE_PLACES = 2
_TIER_STEP = 0.8  # what is left of the relevance in each further tier of the search
_KM_OF_HALF = 25.0  # at this distance a product is worth half of one next door
_ENOUGH_STOCK = 2  # times the quantity that is wanted: the last piece may be gone before it is bought


@dataclass(frozen=True)
class Weights:
    relevance: float
    distance: float
    price: float
    stock: float
    rating: float


# What the buyer speaks of weighs more than what it does not.
UNSAID = Weights(relevance=5.0, distance=1.5, price=1.0, stock=0.5, rating=1.0)
SAID = Weights(relevance=5.0, distance=4.0, price=3.0, stock=1.0, rating=3.0)


def score(candidate: Candidate, query: StructuredQuery, viewer: Viewer) -> float:
    """From 0 to 1. What is not known (no place, no limit of the price) is worth the same for all."""
    weights = weights_of(query)
    distance = candidate.distance_km
    parts = (
        (weights.relevance, _TIER_STEP**candidate.tier),
        (weights.distance, 0.0 if distance is None else math.exp2(-distance / _KM_OF_HALF)),
        (weights.price, 1.0 if candidate.price_fit is None else candidate.price_fit),
        (weights.stock, _stock_value(candidate.available_quantity, query.quantity or 1)),
        (weights.rating, (UNRATED if candidate.rating is None else candidate.rating) / 5),
    )
    return sum(weight * value for weight, value in parts) / sum(weight for weight, _ in parts)


def weights_of(query: StructuredQuery) -> Weights:
    said, unsaid = SAID, UNSAID
    is_near = query.near_user or query.radius_km is not None or query.fulfilment == "pickup"
    has_price = query.min_price is not None or query.max_price is not None
    return Weights(
        relevance=said.relevance,
        distance=said.distance if is_near else unsaid.distance,
        price=said.price if has_price else unsaid.price,
        stock=said.stock if query.quantity is not None or query.intent == "stock" else unsaid.stock,
        rating=said.rating if query.min_rating is not None or query.intent == "recommend" else unsaid.rating,
    )


def ranked(
    candidates: Iterable[Candidate], query: StructuredQuery, viewer: Viewer, *, by_tier: bool = False
) -> list[Candidate]:
    """Best first. `by_tier`: for goods that match only some of the words, since nothing makes up for missing words."""
    found = list(candidates)
    scores = {one.product.id: score(one, query, viewer) for one in found}

    def place(candidate: Candidate) -> tuple[float, ...]:
        own = scores[candidate.product.id]
        liking = preferred(candidate.product, viewer.preferences)
        tier = candidate.tier if by_tier else 0
        return (*_asked_order(candidate, query), tier, -round(own, TIE_PLACES), -liking, -own, candidate.product.id)

    return sorted(found, key=place)


def preferred(product: ProductRow, preferences: Preferences) -> int:
    """How many of the buyer's preferences the product meets."""
    met = met_preferences(
        preferences,
        brand=product.brand,
        price=product.price,
        city_key=key_of(product.shop_city),
        condition=product.condition,
    )
    return len(met)


def met_preferences(
    preferences: Preferences, *, brand: str | None, price: int, city_key: str, condition: str
) -> list[str]:
    """The names of those that are met."""
    is_in_city = city_test(preferences.city) if preferences.city else None
    met = {
        "brand": bool(brand) and key_of(brand or "") in {key_of(one) for one in preferences.brands},
        "max_price": preferences.max_price is not None and price <= preferences.max_price,
        "city": is_in_city is not None and is_in_city(city_key),
        "condition": preferences.condition == condition,
    }
    return [name for name, is_met in met.items() if is_met]


def _asked_order(candidate: Candidate, query: StructuredQuery) -> tuple[float, ...]:
    match query.sort:
        case "price_asc":
            return (candidate.product.price,)
        case "price_desc":
            return (-candidate.product.price,)
        case "rating":
            return (-(UNRATED if candidate.rating is None else candidate.rating),)
        case "newest":
            return (-candidate.product.created_at.timestamp(),)
        case "distance":
            return (math.inf if candidate.distance_km is None else candidate.distance_km,)
        case _:
            return ()


def _stock_value(available: int, wanted: int) -> float:
    return max(0.0, min(1.0, available / (_ENOUGH_STOCK * wanted)))
