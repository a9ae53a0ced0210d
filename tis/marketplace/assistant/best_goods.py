"""The goods that fit a query best: those of the kind that was asked for, and which words count where none has all."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tis.marketplace.assistant.goods import MAX_CARDS
from tis.marketplace.assistant.goods_search import GoodsSearch
from tis.marketplace.assistant.measured import keeps_limits
from tis.marketplace.assistant.ranking import ranked
from tis.marketplace.reading.goods_nouns import OR
from tis.marketplace.reading.structured_query import StructuredQuery
from tis.marketplace.search.query import MAX_CANDIDATES, Candidate, ProductCount, ProductQuery, Sort
from tis.marketplace.search.relaxed_filters import FEW

_MAX_COUNTED = 1000
_MAX_OTHERS = 2 * MAX_CARDS  # of those that match some of the words: ranking 200 takes ten times as long
_MAX_ALTERNATIVES = 4
_MAX_WORDS_TRIED = 8
_MIN_OF_OWN_NAME = 2  # so many are called as the buyer says: then goods of the same family are others
_TIER_OF_CATEGORY = 1000  # of goods that match none of the words


@dataclass(frozen=True)
class BestGoods:
    """Best first: `total` match all words; behind them are those that match some, then others of the category."""

    candidates: list[Candidate]
    total: ProductCount

    @property
    def ids(self) -> list[int]:
        return [one.product.id for one in self.candidates]

    @property
    def matching_ids(self) -> list[int]:
        """Of those that match all words."""
        return self.ids[: self.total.count]


def best_goods(goods: GoodsSearch, query: StructuredQuery) -> BestGoods:
    several = [_best_of_words(goods, one) for one in _alternatives(goods, query)]
    if len(several) == 1:
        return several[0]
    counted = sum(one.total.count for one in several)
    whole = {one.product.id: one for best in several for one in best.candidates[: best.total.count]}
    others = {one.product.id: one for best in several for one in best.candidates[best.total.count :]}
    kept = [one for number, one in others.items() if number not in whole]
    total = ProductCount(min(counted, len(whole)), all(one.total.is_exact for one in several))
    return BestGoods([*ranked(whole.values(), query, goods.viewer), *kept], total)


def _alternatives(goods: GoodsSearch, query: StructuredQuery) -> list[StructuredQuery]:
    """A query for each of `kemeja batik atau gamis`; in `sarung merah atau biru` both are of one kind."""
    first, *rest = query.text.split(f" {OR} ")[:_MAX_ALTERNATIVES]
    texts = [first]
    for text in rest:
        kind = goods.kind_of(query.model_copy(update={"text": text, "category": None}))
        words = [] if query.category or (kind and kind.phrases) else texts[0].split()[:-1]
        texts.append(" ".join([*words, text]))
    return [query.model_copy(update={"text": text}) for text in texts]


def _best_of_words(goods: GoodsSearch, query: StructuredQuery) -> BestGoods:
    """A keyboard `buat ngetik` need not say so: where nothing matches all words, the last words that some goods of the
    kind match count, and these goods come nearest.
    """
    best, words, kind = _best_of_kind(goods, query), query.text.split(), goods.kind_of(query)
    if best.total.count or kind is None or kind.words or not 1 < len(words) <= _MAX_WORDS_TRIED:
        return best
    nouns = {word for phrase in kind.phrases for word in phrase}
    near, kept = best, [word for word in words if word in nouns]
    for word in reversed([word for word in words if word not in nouns]):
        tried = [one for one in words if one in kept or one == word]
        found = _best_of_kind(goods, query.model_copy(update={"text": " ".join(tried)}))
        if found.total.count:
            near, kept = BestGoods(found.candidates[: found.total.count], ProductCount(0)), tried
    return near


def _best_of_kind(goods: GoodsSearch, query: StructuredQuery) -> BestGoods:
    """A printer's ink is no printer, whatever its words are: what is of another kind is left out."""
    wanted, total = goods.product_query(query), goods.count(query, _MAX_COUNTED)
    if wanted.text is not None and total.count < FEW:
        wanted = replace(wanted, sort=None)  # of what matches some words, the best first
    found = _candidates(goods, wanted, total.count + _MAX_OTHERS if total.count < FEW else MAX_CANDIDATES)
    whole, others = found[: total.count], found[total.count :]
    if wanted.text is not None and wanted.category is not None and len(found) < MAX_CARDS:
        # A laptop "for college" need not say so.
        known = {one.product.id for one in found}
        of_category = _candidates(goods, replace(wanted, text=None))
        others += [replace(one, tier=_TIER_OF_CATEGORY) for one in of_category if one.product.id not in known]
    kept, near = (
        [one for one in some if keeps_limits(one.product, query.measures)]
        for some in _of_kind(goods, query, whole, others)
    )
    num_left_out = len(whole) - len(kept)
    total = ProductCount(total.count - num_left_out, total.is_exact and (total.count == len(whole) or not num_left_out))
    if not kept and query.sort not in (None, "relevance"):  # the cheapest of those that come nearest
        near = [one for one in near if one.tier == min(other.tier for other in near)]
    near = ranked(near, query, goods.viewer, by_tier=True)
    return BestGoods([*ranked(kept, query, goods.viewer), *near], total)


def _of_kind(
    goods: GoodsSearch, query: StructuredQuery, whole: Sequence[Candidate], others: Sequence[Candidate]
) -> tuple[list[Candidate], list[Candidate]]:
    """A product that does not say what it is may be of the kind of others in its category."""
    kind = goods.kind_of(query)
    if kind is None:
        return list(whole), list(others)
    said = {one.product.id: goods.holds(kind, one.product) for one in (*whole, *others)}
    if kind.is_wide:
        own = replace(kind, phrases=kind.said)
        of_own = {one.product.id: goods.holds(own, one.product) for one in (*whole, *others)}
        if sum(of_own[one.product.id] is True for one in whole) >= _MIN_OF_OWN_NAME:
            said = of_own
    if kind.words:
        return list(whole), [one for one in others if said[one.product.id]]
    sure = {one.product.category for one in (*whole, *others) if said[one.product.id]}

    def is_kept(one: Candidate, *, is_whole: bool) -> bool:
        is_said = said[one.product.id]
        if is_said is None and query.category is not None:
            return True
        return one.product.category in sure or (is_whole and not sure) if is_said is None else is_said

    return [one for one in whole if is_kept(one, is_whole=True)], [
        one for one in others if is_kept(one, is_whole=False)
    ]


def _candidates(goods: GoodsSearch, wanted: ProductQuery, limit: int = MAX_CANDIDATES) -> list[Candidate]:
    """In the order of the search: those that match all words before those that match some.

    Without words nothing says which of thousands are read: those that some part of the score likes best.
    """
    has_order = wanted.text is not None or wanted.sort not in (None, "relevance")
    likely: list[Sort | None] = ["rating"] if wanted.origin is None else ["rating", "distance"]
    found: dict[int, Candidate] = {}
    for sort in [wanted.sort] if has_order else likely:
        for one in goods.search.candidates(goods.session, replace(wanted, sort=sort), limit):
            found.setdefault(one.product.id, one)
    return list(found.values())
