"""A list with goods that are near in meaning: of a text that names goods behind all that its words find.

A text that names none ("something to warm my coffee") says little by its words: what matches all of them comes first,
and then what is near and what matches some, mixed. The ids of that middle part, the *fused* ones, are chosen once and
stand in the cursor, so that pages hold.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from tis.marketplace.reading.tokens import tokenize
from tis.marketplace.reading.word_lists import word_list
from tis.marketplace.search.cursor import ListPosition
from tis.marketplace.search.keyset_paging import KeysetPager
from tis.marketplace.search.list_order import PlaceInList
from tis.marketplace.search.text_query import MAX_FUSED, TextMatch, match_tiers
from tis.marketplace.search.variant_groups import groups_of, members_of, one_of_each

_MAX_OF_EACH = MAX_FUSED // 2
_MAX_WORDS_BEFORE = 4  # `I need something`
_RANK_OFFSET = 60  # of reciprocal rank fusion: how little the first ranks differ


@dataclass(frozen=True)
class FusedPager(KeysetPager):
    """For a query that is sorted by relevance, with few products that match all words."""

    def rows(self) -> list[ListPosition]:
        return list(islice(self._all(), self.skip, self.skip + self.count))

    def places(self, product_ids: Sequence[int]) -> dict[int, PlaceInList]:
        edge, fused = self.understood.num_tiers_before, self.understood.fused
        places = {one: (0 if place[0] < edge else 2, *place) for one, place in super().places(product_ids).items()}
        among = [one for one in product_ids if one in fused]
        return places | {one: (1, fused.index(one)) for one, _ in self.passing(among)}

    def total(self, max_count: int) -> int:
        beside = self.beside(self.understood.fused)
        if self.is_grouped:
            groups = groups_of(self.session, beside)
            members = members_of(self.session, set(groups.values()))
            known = {members[one] for one in super().places(sorted(members))}
            beside = [one for one in one_of_each(self.session, beside) if groups.get(one) not in known]
        return min(max_count, super().total(max_count) + len(beside))

    def beside(self, product_ids: Sequence[int]) -> list[int]:
        """Those that pass the filters and match none of the words that are looked for."""
        passing = [one for one, _ in self.passing(product_ids)]
        query = self.understood.text_query
        if not passing or query is None:
            return passing
        matching = set(self.ids(TextMatch(query), len(passing), passing))
        return [one for one in passing if one not in matching]

    def _all(self) -> Iterator[ListPosition]:
        fused, edge, after = self.understood.fused, self.understood.num_tiers_before, self.after
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


def fused_pager(pager: KeysetPager, ids: Sequence[int], num_tiers_before: int) -> FusedPager:
    understood = replace(pager.understood, fused=tuple(ids), num_tiers_before=num_tiers_before)
    return FusedPager(
        pager.session, pager.index, pager.query, understood, pager.keys, pager.limits, pager.count, pager.skip
    )


def fuse(pager: KeysetPager, near: Sequence[tuple[int, int]], num_tiers_before: int) -> list[int]:
    """What to put behind the first tiers, best first: reciprocal ranks of both lists, added.

    `near`: ids with the digests of the words that were compared; a product whose words have changed since is left out.
    """
    first = replace(pager, count=_MAX_OF_EACH, skip=0, after=None).positions()
    by_words = [one.product_id for one in first if one.tier >= num_tiers_before]
    digests, query = dict(near), pager.understood.text_query
    passing = {one for one, digest in pager.passing(list(digests)) if digest == digests[one]}
    before = {one.product_id for one in first if one.tier < num_tiers_before}
    if passing and query and num_tiers_before == len(match_tiers(query)):
        before |= set(pager.ids(TextMatch(query), len(passing), sorted(passing)))
    by_meaning = [one for one in digests if one in passing and one not in before]
    if pager.is_grouped:
        by_meaning = one_of_each(pager.session, by_meaning)  # variants mean the same
    by_meaning = by_meaning[:_MAX_OF_EACH]
    if not by_meaning:
        return []
    scores = dict.fromkeys([*by_words, *by_meaning], 0.0)
    for ids in (by_words, by_meaning):
        for rank, one in enumerate(ids):
            scores[one] += 1 / (_RANK_OFFSET + rank)
    return sorted(scores, key=lambda one: -scores[one])


def tiers_before(pager: KeysetPager, num_found: int) -> int:
    """How many tiers go before what is near in meaning. `num_found`: products that match all words."""
    query = pager.understood.text_query
    if query is None:
        return 0
    if not query.stages or _names_goods(pager):
        return len(match_tiers(query))
    return len(match_tiers(replace(query, stages=query.stages[:1]))) if num_found else 0


def _names_goods(pager: KeysetPager) -> bool:
    """By a noun that names of products begin with, unless a word such as `something` stands for the goods."""
    query, words = pager.understood.text_query, tokenize(pager.query.text)
    return bool(query and query.heads) and word_list("unnamed goods").isdisjoint(words[:_MAX_WORDS_BEFORE])
