"""What is shown when few products match all words: behind them those whose matching words weigh most.

A word that few products have says more than one that many have: its weight is the logarithm of that. The products of
the rarest words are read with the words that each has; each set of words that occurs is a stage of the relaxed query.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlalchemy.orm import Session

from tis.marketplace.search.spelling import document_counts
from tis.marketplace.search.sql import run
from tis.marketplace.search.text_query import MAX_STAGES, TermGroup, TextMatch, TextQuery

_LEAST_SHARE = 0.3  # of the weight of all words, that a product must match
_MAX_READ_PER_GROUP = 2000  # a more common word finds no products, and is only looked for in those of the others
_MAX_READ = 6000
_MAX_COMPARED = 500  # products in which common words are looked for

# The ids of products that match, at most the number given; among some ids, or among all.
FindIds = Callable[[TextMatch, int, Sequence[int] | None], Sequence[int]]


def relaxed_query(session: Session, query: TextQuery, find_ids: FindIds) -> TextQuery | None:
    """None if no product matches any word."""
    counts = _counts(session, query.groups)
    groups = [group for group in query.groups if counts[group]]
    if not groups:
        return None
    [(num_products,)] = run(session, "SELECT max(product_id) FROM product_search")
    weights = [_rarity(group, counts[group], num_products or 1) for group in groups]
    sets = _sets_that_occur(groups, [counts[group] for group in groups], weights, find_ids)
    weight_of = {one: _weight(one, weights) for one in sets}
    heavy = [one for one in sets if weight_of[one] >= _LEAST_SHARE * sum(weights)] or sets
    stages = sorted(heavy, key=lambda one: (-weight_of[one], one))[:MAX_STAGES]
    return replace(query, groups=tuple(groups), stages=tuple(stages)) if stages else None


def _sets_that_occur(
    groups: Sequence[TermGroup], counts: Sequence[int], weights: Sequence[int], find_ids: FindIds
) -> list[int]:
    found: Counter[int] = Counter()  # the set of each product
    num_read = 0
    common = list[int]()
    for number in sorted(range(len(groups)), key=lambda one: (counts[one], one)):
        if found and (counts[number] > _MAX_READ_PER_GROUP or num_read > _MAX_READ):
            common.append(number)
            continue
        ids = find_ids(TextMatch(TextQuery((groups[number],))), _MAX_READ_PER_GROUP, None)
        num_read += len(ids)
        for one in ids:
            found[one] |= 1 << number
    if common and found:
        best = sorted(found, key=lambda one: (-_weight(found[one], weights), one))[:_MAX_COMPARED]
        for number in common:
            for one in find_ids(TextMatch(TextQuery((groups[number],))), _MAX_COMPARED, sorted(best)):
                found[one] |= 1 << number
    return sorted(set(found.values()))


def _rarity(group: TermGroup, count: int, num_products: int) -> int:
    """A measure says less than its rarity: who asks for a lamp of 10 W rather takes one of 9 W than oil."""
    is_measure = group.terms[0].words[0][0].isdecimal()
    return round(100 * math.log1p(num_products / count) * (0.5 if is_measure else 1)) + 1


def _weight(groups: int, weights: Sequence[int]) -> int:
    return sum(weight for number, weight in enumerate(weights) if groups >> number & 1)


def _counts(session: Session, groups: Sequence[TermGroup]) -> dict[TermGroup, int]:
    """How many products match each group, or a number near it; 0 only if none does."""
    counts = document_counts(session, [word for group in groups for term in group.terms for word in term.words])

    def count(group: TermGroup) -> int:
        most = max(min(counts.get(word, 0) for word in term.words) for term in group.terms)
        return most or int(bool(group.category_tokens) or group.terms[0].is_prefix)

    return {group: count(group) for group in groups}
