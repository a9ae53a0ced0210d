"""How reviews make the rating of a product: a review by a buyer of a completed sale counts like three others.

`rating_sum` and `rating_count` are of all published reviews, `verified_sum` and `verified_count` of those by buyers.
"""

from typing import Any

from tis.marketplace.tables import UNRATED

# The Bayesian prior of a rating counts like this many reviews, so that one five does not beat forty times 4.8.
PRIOR_COUNT = 5
COUNTERS = ("rating_sum", "rating_count", "verified_sum", "verified_count")
_EXTRA_WEIGHT = 2  # of a review by a buyer, beside the 1 of every review


def weighted_stars(product: Any) -> tuple[Any, Any]:
    """Sum and weight. `product` has the counters of a `Product`; with `Product` itself the two are SQL expressions."""
    stars = product.rating_sum + _EXTRA_WEIGHT * product.verified_sum
    return stars, product.rating_count + _EXTRA_WEIGHT * product.verified_count


def mean_rating(product: Any, counters: Any = None) -> float | None:
    """What is shown: the weighted mean of the reviews; without any, the rating that an admin granted.

    `counters` are those of the group of a variant: the reviews of all its variants count.
    """
    stars, weight = weighted_stars(counters or product)
    granted: float | None = product.granted_rating
    return stars / weight if weight else granted


def rating_rank_of(granted_rating: float | None, stars: int = 0, weight: int = 0) -> float:
    """What products are sorted by: the Bayesian mean, whose prior is the rating that an admin granted."""
    prior = UNRATED if granted_rating is None else granted_rating
    return (PRIOR_COUNT * prior + stars) / (PRIOR_COUNT + weight)
