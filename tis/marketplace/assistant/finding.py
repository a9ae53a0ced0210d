"""Finds the goods that an answer speaks of, by the same search as REST."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from tis.marketplace.assistant.goods import (
    FACTS_OF_LINES,
    MAX_CARDS,
    FoundGoods,
    ProductCard,
    TriedFilter,
    card_of,
    told_facts,
)
from tis.marketplace.assistant.goods_search import GoodsSearch, limits_only
from tis.marketplace.assistant.measured import in_order, keeps_limits, measure_of
from tis.marketplace.assistant.ranking import ranked
from tis.marketplace.reading.goods_nouns import OR
from tis.marketplace.reading.parse import parse_query
from tis.marketplace.reading.structured_query import MAX_SHOWN, AttributeOrder, QueryContext, StructuredQuery
from tis.marketplace.search.query import (
    MAX_CANDIDATES,
    MAX_LOOKED_UP,
    Candidate,
    PageRequest,
    ProductCount,
    ProductQuery,
    Sort,
)
from tis.marketplace.search.relaxed_filters import FEW, NamedPoint, point_of_city, query_around

_MAX_COUNTED = 1000
_MAX_NEAREST = 3
_MAX_COMPARED = 4  # phrases; each is a search of its own
_FIRST = PageRequest(limit=1)
_MAX_OTHERS = 2 * MAX_CARDS  # of those that match some of the words: ranking 200 takes ten times as long
_MAX_ALTERNATIVES = 4
_MAX_WORDS_TRIED = 8
_MIN_OF_OWN_NAME = 2  # so many are called as the buyer says: then goods of the same family are others
_TIER_OF_CATEGORY = 1000  # of goods that match none of the words
_NOTHING_SKIPPED = frozenset[int]()


def find_goods(goods: GoodsSearch, query: StructuredQuery, skipped: frozenset[int] = _NOTHING_SKIPPED) -> FoundGoods:
    """`skipped`: products that the buyer has seen and wants others than."""
    if query.intent == "other":
        return FoundGoods([], total=0)
    name = goods.category_name(query.category) if query.category else ""
    return replace(_found_goods(goods, goods.with_known_category(query), skipped), category_name=name)


def _found_goods(goods: GoodsSearch, query: StructuredQuery, skipped: frozenset[int]) -> FoundGoods:
    if query.compare is not None and (query.compare.items or query.compare.product_ids):
        return _compared(goods, query)
    if query.order_by is not None:
        return _by_attribute(goods, query, query.order_by)
    if query.product_ids:
        return _pointed_at(goods, query)
    found = _found(goods, query, skipped)
    if not skipped:
        return found
    # Others that match in part are no others of the same kind.
    return replace(found, cards=found.cards[: found.total], relaxations=(), unverified_words=False, skipped=skipped)


def find_for_talk(goods: GoodsSearch, query: StructuredQuery, skipped: frozenset[int]) -> FoundGoods:
    """Where nothing fits, goods that are sold out, too few, or not near are named: silence would say that nobody sells
    them.
    """
    found = find_goods(goods, query, skipped)
    is_list = query.intent in ("search", "recommend") and not (query.compare or query.order_by or query.product_ids)
    if found.total or skipped or not is_list:
        return found
    kind = goods.kind_of(query)
    if query.category is not None and kind is not None and kind.phrases:  # sellers may put a `meja laptop` elsewhere
        elsewhere = find_goods(goods, query.model_copy(update={"category": None}))
        if elsewhere.total:
            return replace(_of_whole_matches(elsewhere), category_name=found.category_name)
    if query.near_cities and query.sort not in (None, "distance"):
        anywhere = find_goods(goods, query.model_copy(update={"near_cities": False, "cities": []}))
        if anywhere.total:
            return replace(_of_whole_matches(anywhere), lacks_near=True)
    if query.in_stock is not False:
        in_any_stock = find_goods(goods, query.model_copy(update={"in_stock": False, "quantity": None}))
        if in_any_stock.total:
            return replace(_of_whole_matches(in_any_stock), lacks_stock=True, relaxations=found.relaxations)
    return found


def _of_whole_matches(found: FoundGoods) -> FoundGoods:
    return replace(found, cards=found.cards[: found.total], unverified_words=False)


def still_wanted(goods: GoodsSearch, ids: Sequence[int], query: StructuredQuery) -> list[int]:
    """Those of the ids that keep every limit of the query now: prices and stock change while a model speaks, and what
    its tools find need not keep them.
    """
    names_goods = query.compare is not None or query.intent in ("compare", "other")
    if not ids or names_goods or (query.order_by and query.order_by.among):
        return list(ids)  # the buyer names these goods, whatever they cost
    limits = goods.product_query(limits_only(goods.with_known_category(query), ids))
    hits = goods.search.find(goods.session, limits, PageRequest(MAX_SHOWN, with_total=False)).hits
    kept = {hit.product.id for hit in hits}
    if pointed := [one for one in ids if one in query.product_ids and one not in kept]:
        kept |= {card.id for card in goods.cards(pointed)}
    return [one for one in ids if one in kept]


def _found(goods: GoodsSearch, query: StructuredQuery, skipped: frozenset[int] = _NOTHING_SKIPPED) -> FoundGoods:
    best = best_goods(goods, query)
    if not best.total.count and query.intent == "stock" and query.in_stock is not False:
        # "Is it in stock?" of what is sold out gets a no, not silence.
        sold_out = query.model_copy(update={"in_stock": False, "quantity": None})
        if goods.count(sold_out).count:
            return _found(goods, sold_out)
    corrected = None
    if query.text:
        corrected = goods.search.find(goods.session, goods.product_query(query), _FIRST).corrected
    place, nearest = (None, []) if best.total.count else _nearest_elsewhere(goods, query)
    ids = [one for one in best.ids if one not in skipped]
    return FoundGoods(
        cards=goods.cards_for(ids[:MAX_CARDS], query),
        total=best.total.count - len(skipped.intersection(best.matching_ids)),
        total_is_exact=best.total.is_exact,
        corrected=corrected,
        unverified_words=best.total.is_exact and len(best.candidates) > best.total.count,
        relaxations=list(_tried(goods, query)),
        nearest_place=place.name if place and nearest else None,
        nearest=nearest,
    )


def _tried(goods: GoodsSearch, query: StructuredQuery) -> Iterator[TriedFilter]:
    """Counted as they would be found."""
    for tried in goods.tried_relaxations(query):
        total = best_goods(goods, tried.query).total
        if total.count:
            yield replace(tried, count=total.count, count_is_exact=total.is_exact)


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


def _by_attribute(goods: GoodsSearch, query: StructuredQuery, order: AttributeOrder) -> FoundGoods:
    """Goods that do not say their attribute are left out; where none says it, they come in the usual order."""
    # What is smaller than one of 27 inches need not say 27 inches.
    words = [word for word in query.text.split() if not (order.beyond and word[0].isdecimal())]
    plain = query.model_copy(update={"order_by": None, "intent": "search", "text": " ".join(words)})
    ids = [*dict.fromkeys([*(order.among or best_goods(goods, plain).matching_ids), *order.beyond])]
    hits = goods.search.lookup(goods.session, ids[:MAX_LOOKED_UP], None)
    measures = {hit.product.id: measure_of(hit.product, order.attribute) for hit in hits}
    values = {number: one for number, one in measures.items() if one is not None}
    if not values:
        cards = goods.cards_for((order.among or ids)[:MAX_CARDS], query)
        return FoundGoods(cards, total=len(cards), is_unmeasured=True)
    ordered = in_order(values, order)
    if not ordered and order.beyond:  # the best of them was shown already
        known = in_order(values, order.model_copy(update={"beyond": []}))
        cards = goods.cards_for([one for one in known if one in order.beyond][:MAX_CARDS], query)
        return FoundGoods(cards, total=len(cards), values=values, is_beaten=False)
    return FoundGoods(goods.cards_for(ordered[:MAX_CARDS], query), total=len(ordered), values=values)


def _pointed_at(goods: GoodsSearch, query: StructuredQuery) -> FoundGoods:
    """Products that the buyer points at are shown even if they are sold out. The other filters choose among several;
    they may be of the turn before, which found nothing that keeps them, so they never hide all.
    """
    limits = goods.product_query(limits_only(query, query.product_ids))
    visible = goods.search.candidates(goods.session, limits, MAX_CANDIDATES)
    found = {one.product.id for one in visible}
    if not found or query.intent == "stock":
        found = {card.id for card in goods.cards(query.product_ids)}
    ids = [one for one in dict.fromkeys(query.product_ids) if one in found]
    if query.sort not in (None, "relevance"):
        ids = [one.product.id for one in ranked(visible, query, goods.viewer)] or ids
    told = _told(goods, ids[:MAX_CARDS], query.asked)
    return FoundGoods(goods.cards_for(ids[:MAX_CARDS], query), total=len(ids), told=told)


def _told(goods: GoodsSearch, ids: Sequence[int], facts: Sequence[str]) -> dict[int, list[str]]:
    """What sellers say of the facts that no line of an answer has anyway."""
    further = [fact for fact in facts if fact not in FACTS_OF_LINES]
    hits = goods.search.lookup(goods.session, ids, None) if further else []
    return {hit.product.id: told_facts(hit.product, further, goods.viewer.language) for hit in hits}


def _compared(goods: GoodsSearch, query: StructuredQuery) -> FoundGoods:
    """The products that it points at, then the best match of each phrase."""
    assert query.compare is not None
    ids, missing = list(query.compare.product_ids), list[str]()
    for item in query.compare.items[:_MAX_COMPARED]:
        if matching := _match_ids(goods, query, item, ids):
            ids += [one for one in matching if one not in ids][:1]
        else:
            missing.append(item)
    cards = goods.cards(ids)[:MAX_CARDS]
    return FoundGoods(cards, total=len(cards), missing=missing)


def _match_ids(goods: GoodsSearch, query: StructuredQuery, item: str, taken: Sequence[int]) -> list[int]:
    """Of what matches the whole phrase: another brand or model is not what was named. Some that are not taken yet, if
    there are any; what is sold out only where nothing else is.

    A phrase that names no kind is of the kind of the comparison, else of any.
    """
    said = parse_query(item, QueryContext(), goods.search.vocabulary(goods.session)).query
    own = said.model_dump(include={"category", "text", "brands", "exclude_terms", "exclude_brands", "condition"})
    if said.intent == "other" or not any(own.values()):
        own = {"category": None, "brands": [], "text": item}
    changes = {name: value for name, value in own.items() if value} | {"compare": None, "product_ids": []}
    changes = {"text": "", "brands": [], "intent": "search"} | changes
    kinds = dict.fromkeys((own["category"] or query.category, own["category"]))
    found = list[int]()
    for in_stock, category in product(dict.fromkeys((query.in_stock, False)), kinds):
        changed = query.model_copy(update=changes | {"category": category, "in_stock": in_stock})
        ids = best_goods(goods, goods.with_known_category(changed)).matching_ids
        if not set(ids) <= set(taken):
            return ids
        found = found or ids
    return found


def _nearest_elsewhere(goods: GoodsSearch, query: StructuredQuery) -> tuple[NamedPoint | None, list[ProductCard]]:
    """What matches all words. Without advice on delivery: the distances are from the named place."""
    places = [*query.cities, *query.provinces]
    place = point_of_city(places[0]) if places else None
    if place is None:
        return None, []
    around = replace(query_around(goods.product_query(query), place.point), cities=())
    found = goods.search.find(goods.session, around, PageRequest(limit=MAX_CARDS, with_total=False))
    kind = goods.kind_of(query)
    hits = (
        [] if found.relaxed else [one for one in found.hits if not kind or goods.holds(kind, one.product) is not False]
    )
    return place, [card_of(hit, goods.viewer, with_advice=False) for hit in hits[:_MAX_NEAREST]]
