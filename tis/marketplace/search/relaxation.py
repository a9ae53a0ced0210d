"""What is shown when no product matches all words: those that match the rarest words first.

A word that few products have says more than one that many have: its weight is the logarithm of that. Sets of words are
tried in the order of their weight, so that of two products the one whose matching words weigh more is first.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlalchemy.orm import Session

from tis.marketplace.search.spelling import document_counts
from tis.marketplace.search.sql import run
from tis.marketplace.search.text_query import MAX_STAGES, TermGroup, TextMatch, TextQuery

_MAX_GROUPS = 6  # of a longer text, the heaviest; there are 63 sets of six
_LEAST_SHARE = 0.34  # of the weight of all, that a set must have
_ENOUGH_PRODUCTS = 20

# How many products match, at most the number given.
Count = Callable[[TextMatch, int], int]


def relaxed_query(session: Session, query: TextQuery, count: Count) -> TextQuery | None:
    """None if no product matches any word."""
    weights = _weights(session, query.groups)
    heaviest = sorted(weights, key=lambda number: (-weights[number], number))[:_MAX_GROUPS]
    kept = sorted(heaviest)
    candidate = replace(query, groups=tuple(query.groups[number] for number in kept))
    kept_weights = [weights[number] for number in kept]
    stages, num_products = list[int](), 0
    for stage in _stages(kept_weights):
        found = count(TextMatch(candidate, stage=stage), _ENOUGH_PRODUCTS)
        if found:
            stages.append(stage)
            num_products += found
        if num_products >= _ENOUGH_PRODUCTS or len(stages) == MAX_STAGES:
            break
    return replace(candidate, stages=tuple(stages)) if stages else None


def _stages(weights: Sequence[int]) -> list[int]:
    least = _LEAST_SHARE * sum(weights)
    weight_of = {
        stage: sum(weight for number, weight in enumerate(weights) if stage >> number & 1)
        for stage in range(1, 2 ** len(weights))
    }
    return sorted((one for one, weight in weight_of.items() if weight >= least), key=lambda one: (-weight_of[one], one))


def _weights(session: Session, groups: Sequence[TermGroup]) -> dict[int, int]:
    """Of the groups that some product matches."""
    counts = document_counts(session, [word for group in groups for term in group.terms for word in term.words])
    [(num_products,)] = run(session, "SELECT max(product_id) FROM product_search")
    weights: dict[int, int] = {}
    for number, group in enumerate(groups):
        most = max(min(counts.get(word, 0) for word in term.words) for term in group.terms)
        if most or group.category_tokens or group.terms[0].is_prefix:
            weights[number] = round(100 * math.log1p((num_products or 0) / max(most, 1))) + 1
    return weights
