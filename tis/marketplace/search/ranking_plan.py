"""How a tier of the order by relevance is read: sorted whole, or by a look at the best rated products. An estimate."""

from dataclasses import dataclass
from functools import cached_property
from math import prod

from sqlalchemy.orm import Session

from tis.marketplace.reading.tokens import head_token
from tis.marketplace.search.backends.text_index import TextIndex
from tis.marketplace.search.spelling import document_counts
from tis.marketplace.search.text_query import TermGroup, TextMatch, TextQuery

_LIKELY = 3  # a tier is read if no more than this many times `max_sorted` are expected to match
_SHARE_OF_UNKNOWN = 0.1  # of all products, that match a word whose products are not counted
_MAX_LOOKED_AT = 16  # for each that is wanted, if nothing tells how many match
_MAX_COUNT = 250  # for a longer page, or one far behind the first, all are sorted


@dataclass(frozen=True)
class RankingLimits:
    max_sorted: int = 2000  # matches of a tier; of more, the best rated are looked for; 0: always
    max_walked: int = 8000  # rows of the index of ratings, in search of products that pass the filters


@dataclass
class RankingPlanner:
    session: Session
    index: TextIndex
    text_query: TextQuery
    limits: RankingLimits
    max_product_id: int

    def is_likely_small(self, match: TextMatch, count: int) -> bool:
        """Whether it pays to read `max_sorted` matches: these may be all."""
        return count <= _MAX_COUNT and self._guess(match) < self.limits.max_sorted * _LIKELY

    def max_looked_at(self, match: TextMatch, count: int) -> int:
        """Of how many of the best rated it pays to ask whether they match; 0: sorting all matches is faster."""
        if not self.limits.max_sorted:
            return count * _MAX_LOOKED_AT
        if count > _MAX_COUNT:
            return 0
        num_matches = self.index.estimate(self.session, match, self.limits.max_sorted + 1)
        if num_matches is None:
            return count * _MAX_LOOKED_AT
        if num_matches <= self.limits.max_sorted:
            return 0
        max_looked_at = num_matches // self.index.rows_per_look
        return max_looked_at if count * self.max_product_id < max_looked_at * num_matches else 0

    def _guess(self, match: TextMatch) -> float:
        """How many products may match, as if words met by chance."""
        num_products = max(1, self.max_product_id)
        guess = sum(
            num_products * prod(min(1.0, self._most(group) / num_products) for group in groups)
            for groups in match.alternatives
        )
        return min(guess, sum(self._counts.get(head, 0) for head in match.head_tokens)) if match.is_head else guess

    def _most(self, group: TermGroup) -> float:
        """About so many products match a group, or fewer."""
        counted = sum(min(self._counts.get(word, 0) for word in term.words) for term in group.terms)
        is_unknown = group.category_tokens or any(term.is_prefix for term in group.terms)
        return counted + _SHARE_OF_UNKNOWN * self.max_product_id if is_unknown else counted

    @cached_property
    def _counts(self) -> dict[str, int]:
        """How many products have each word, and how many names begin with it."""
        words = {word for group in self.text_query.groups for term in group.terms for word in term.words}
        return document_counts(self.session, [*words, *map(head_token, words)])
