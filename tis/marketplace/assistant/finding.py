"""Finds the goods that an answer speaks of, by the same search as REST."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from tis.marketplace.assistant.best_goods import best_goods
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
from tis.marketplace.assistant.measured import in_order, measure_of
from tis.marketplace.assistant.ranking import ranked
from tis.marketplace.reading.parse import parse_query
from tis.marketplace.reading.structured_query import MAX_SHOWN, AttributeOrder, QueryContext, StructuredQuery
from tis.marketplace.search.query import (
    MAX_CANDIDATES,
    MAX_LOOKED_UP,
    PageRequest,
)
from tis.marketplace.search.relaxed_filters import NamedPoint, point_of_city, query_around

_MAX_NEAREST = 3
_MAX_COMPARED = 4  # phrases; each is a search of its own
_FIRST = PageRequest(limit=1)
_NOTHING_SKIPPED = frozenset[int]()


def find_goods(goods: GoodsSearch, query: StructuredQuery, skipped: frozenset[int] = _NOTHING_SKIPPED) -> FoundGoods:
    """`skipped`: products that the buyer has seen and wants others than."""
    if query.intent == "other":
        return FoundGoods([], total=0)
    name = goods.category_name(query.category) if query.category else ""
    return replace(_found_goods(goods, query, skipped), category_name=name)


def _found_goods(goods: GoodsSearch, query: StructuredQuery, skipped: frozenset[int]) -> FoundGoods:
    if query.compare is not None and (query.compare.items or query.compare.product_ids):
        return _compared(goods, query)
    query = goods.with_known_category(query)
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
