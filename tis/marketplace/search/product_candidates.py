"""Products for the assistant: candidates with how well each fits, and products by their ids."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from tis.marketplace.kit.geo import Point, kilometres_between
from tis.marketplace.kit.ratings import rating_rank_of, weighted_stars
from tis.marketplace.search.keyset_paging import KeysetPager
from tis.marketplace.search.product_rows import ProductRow, load_products
from tis.marketplace.search.query import ProductQuery, SearchHit
from tis.marketplace.search.sql import id_list, run
from tis.marketplace.search.text_query import match_tiers

MAX_CANDIDATES = 200
_COMFORTABLE_SHARE = 0.2  # of a limit: a price that far from it fits well


@dataclass(frozen=True)
class Candidate:
    """A product that keeps every filter of the query.

    `tier` is 0 for the best match of the words. `price_fit` is None if the query has no price: 1 for a price a fifth
    or more below the highest (above the lowest), falling to 0 at the limit itself. `rating` is the Bayesian mean that
    lists are sorted by; None without reviews.
    """

    product: ProductRow
    tier: int
    distance_km: float | None
    price_fit: float | None
    rating: float | None
    available_quantity: int


def candidate_of(hit: SearchHit, query: ProductQuery, tier: int) -> Candidate:
    product = hit.product
    stars, weight = weighted_stars(product)
    is_rated = bool(weight) or product.granted_rating is not None
    return Candidate(
        product=product,
        tier=tier,
        distance_km=hit.distance_km,
        price_fit=price_fit(product.price, query.min_price, query.max_price),
        rating=rating_rank_of(product.granted_rating, stars, weight) if is_rated else None,
        available_quantity=product.on_hand - product.reserved,
    )


def price_fit(price: int, least: int | None, most: int | None) -> float | None:
    """Between two limits that are near each other, the middle fits best."""
    if least is None and most is None:
        return None
    half = (most - least) / 2 if least is not None and most is not None else None
    fits = [
        _distance_from_limit(price - least, _COMFORTABLE_SHARE * least, half) if least is not None else 1.0,
        _distance_from_limit(most - price, _COMFORTABLE_SHARE * most, half) if most is not None else 1.0,
    ]
    return min(fits)


def _distance_from_limit(distance: float, comfortable: float, half: float | None) -> float:
    comfortable = comfortable if half is None else min(comfortable, half)
    return 1.0 if distance >= comfortable else max(distance, 0.0) / comfortable


def tiers_of(pager: KeysetPager, product_ids: Sequence[int]) -> dict[int, int]:
    """The tier of each product, in a list that is not sorted by it."""
    tiers: dict[int, int] = {}
    rest = set(product_ids)
    text_query = pager.resolved.text_query
    for tier, match in enumerate(match_tiers(text_query) if text_query and rest else ()):
        found = rest.intersection(pager.ids(match, len(rest), sorted(rest)))
        tiers.update(dict.fromkeys(found, tier))
        rest -= found
        if not rest:
            break
    return tiers


MAX_LOOKED_UP = 100


def look_up(session: Session, product_ids: Sequence[int], origin: Point | None) -> list[SearchHit]:
    """In the order of the ids, each once. Deleted products, and those of closed or suspended shops, do not exist."""
    ids = list(dict.fromkeys(product_ids))
    if len(ids) > MAX_LOOKED_UP:
        raise ValueError(f"at most {MAX_LOOKED_UP} products are looked up at once")
    if not ids:
        return []
    sql = f"SELECT product_id FROM product_search WHERE sellable >= 0 AND product_id IN {id_list(ids)}"
    visible = {product_id for [product_id] in run(session, sql)}
    products = load_products(session, [one for one in ids if one in visible])
    return [SearchHit(product, distance_to(product, origin)) for product in products]


def distance_to(product: ProductRow, origin: Point | None) -> float | None:
    """To the public place of the shop."""
    if origin is None:
        return None
    return kilometres_between(origin, Point(product.shop_public_latitude, product.shop_public_longitude))
