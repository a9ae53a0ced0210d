"""A list in which goods that are near in meaning follow those that match all words, before those that match some.

The ids of the middle part, the *fused* ones, are chosen once and stand in the cursor, so that pages hold.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from tis.marketplace.search.cursor import ListPosition
from tis.marketplace.search.keyset_paging import KeysetPager
from tis.marketplace.search.text_query import MAX_FUSED, TextMatch, match_tiers

_MAX_OF_EACH = MAX_FUSED // 2
_RANK_OFFSET = 60  # of reciprocal rank fusion: how little the first ranks differ


@dataclass(frozen=True)
class FusedPager(KeysetPager):
    """For a query that is sorted by relevance, with few products that match all words."""

    def positions(self) -> list[ListPosition]:
        return list(islice(self._all(), self.skip, self.skip + self.count))

    def total(self, max_count: int) -> int:
        return min(max_count, super().total(max_count) + len(self.beside(self.understood.fused)))

    def beside(self, product_ids: Sequence[int]) -> list[int]:
        """Those that pass the filters and match none of the words that are looked for."""
        passing = [one for one, _ in self.passing(product_ids)]
        query = self.understood.text_query
        if not passing or query is None:
            return passing
        matching = set(self.ids(TextMatch(query), len(passing), passing))
        return [one for one in passing if one not in matching]

    def _all(self) -> Iterator[ListPosition]:
        fused, edge, after = self.understood.fused, self.understood.num_whole_tiers, self.after
        among = set(fused)
        missing = self.count + self.skip + len(fused)
        if after is None or (not after.is_fused and after.tier < edge):
            whole = self.ranked(after, end_tier=edge).positions(missing, 0)
            yield from (one for one in whole if one.product_id not in among)
        if after is None or after.is_fused or after.tier < edge:
            first = int(after.value or 0) + 1 if after and after.is_fused else 0
            passing = {one for one, _ in self.passing(fused[first:])}
            max_product_id = after.max_product_id if after else self.ranked(None).max_product_id
            for place in range(first, len(fused)):
                if fused[place] in passing:
                    yield ListPosition(self.understood, fused[place], place, edge, max_product_id, is_fused=True)
            after = None
        rest = self.ranked(after, first_tier=edge).positions(missing, 0)
        yield from (one for one in rest if one.product_id not in among)


def fused_pager(pager: KeysetPager, ids: Sequence[int], num_whole_tiers: int) -> FusedPager:
    understood = replace(pager.understood, fused=tuple(ids), num_whole_tiers=num_whole_tiers)
    return FusedPager(
        pager.session, pager.index, pager.query, understood, pager.keys, pager.limits, pager.count, pager.skip
    )


def fuse(pager: KeysetPager, near: Sequence[tuple[int, int]], num_whole_tiers: int) -> list[int]:
    """What to put behind the products that match all words, best first: reciprocal ranks of both lists, added.

    `near`: ids with the digests of the words that were compared; a product whose words have changed since is left out.
    """
    first = [*replace(pager, count=_MAX_OF_EACH, skip=0, after=None).positions()]
    whole = {one.product_id for one in first if one.tier < num_whole_tiers}
    by_words = [one.product_id for one in first if one.product_id not in whole]
    digests = dict(near)
    passing = {one for one, digest in pager.passing(list(digests)) if digest == digests[one]}
    by_meaning = [one for one in digests if one in passing and one not in whole][:_MAX_OF_EACH]
    if not by_meaning:
        return []
    scores = dict.fromkeys([*by_words, *by_meaning], 0.0)
    for ids in (by_words, by_meaning):
        for rank, one in enumerate(ids):
            scores[one] += 1 / (_RANK_OFFSET + rank)
    return sorted(scores, key=lambda one: -scores[one])


def whole_tiers(pager: KeysetPager, num_found: int) -> int:
    """The tiers of products that match all words: those of the first stage, where some match all."""
    query = pager.understood.text_query
    if query is None:
        return 0
    if not query.stages:
        return len(match_tiers(query))
    return len(match_tiers(replace(query, stages=query.stages[:1]))) if num_found else 0
