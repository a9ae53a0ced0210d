"""Finds the goods that an answer speaks of, by the same search as REST. Each function reads in one transaction."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from sqlalchemy.orm import Session

from tis.marketplace.assistant.cards import card_of, cards_of
from tis.marketplace.assistant.goods import MAX_CARDS, FoundGoods, ProductCard, Viewer
from tis.marketplace.assistant.measured_goods import in_order, measure_of
from tis.marketplace.assistant.ranking import ranked
from tis.marketplace.assistant.tried_relaxations import tried_relaxations
from tis.marketplace.assistant.wanted_goods import cards_for, goods_query, limits_only, with_known_category
from tis.marketplace.reading.parse import parse_query
from tis.marketplace.reading.structured_query import MAX_SHOWN, AttributeOrder, QueryContext, StructuredQuery
from tis.marketplace.search.product_search import ProductSearch
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
_MAX_NOUN_WORDS = 3


def still_wanted(
    search: ProductSearch, session: Session, ids: Sequence[int], query: StructuredQuery, viewer: Viewer
) -> list[int]:
    """Those of the ids that keep every limit of the query now: prices and stock change while a model speaks, and what
    its tools find need not keep them.
    """
    if query.compare is not None or query.intent in ("compare", "other") or (query.order_by and query.order_by.among):
        return list(ids)  # the buyer names these goods, whatever they cost
    limits = limits_only(with_known_category(search, session, query), ids)
    page = PageRequest(MAX_SHOWN, with_total=False)
    kept = {hit.product.id for hit in search.find(session, goods_query(limits, viewer), page).hits}
    if pointed := [one for one in ids if one in query.product_ids and one not in kept]:
        kept |= _visible(search, session, pointed, viewer)
    return [one for one in ids if one in kept]


def find_goods(
    search: ProductSearch,
    session: Session,
    query: StructuredQuery,
    viewer: Viewer,
    skipped: frozenset[int] = frozenset(),
) -> FoundGoods:
    """`skipped`: products that the buyer has seen and wants others than."""
    if query.intent == "other":
        return FoundGoods([], total=0)
    query = with_known_category(search, session, query)
    if query.compare is not None and (query.compare.items or query.compare.product_ids):
        return _compared(search, session, query, viewer)
    if query.order_by is not None:
        return _by_attribute(search, session, query, query.order_by, viewer)
    if query.product_ids:
        return _pointed_at(search, session, query, viewer)
    found = _found(search, session, query, viewer, skipped)
    if not skipped:
        return found
    # Others that match in part are no others of the same kind.
    return replace(found, cards=found.cards[: found.total], relaxations=(), unverified_words=False, skipped=skipped)


def _found(
    search: ProductSearch,
    session: Session,
    query: StructuredQuery,
    viewer: Viewer,
    skipped: frozenset[int] = frozenset(),
) -> FoundGoods:
    best = best_goods(search, session, query, viewer)
    if not best.total.count and query.intent == "stock" and query.in_stock is not False:
        # "Is it in stock?" of what is sold out gets a no, not silence.
        sold_out = query.model_copy(update={"in_stock": False, "quantity": None})
        if search.count(session, goods_query(sold_out, viewer), 1).count:
            return _found(search, session, sold_out, viewer)
    whole = [one.product.id for one in best.candidates[: best.total.count]]
    num_skipped = sum(one in skipped for one in whole)
    ids = [one.product.id for one in best.candidates if one.product.id not in skipped]
    place, nearest = (None, []) if best.total.count else _nearest_elsewhere(search, session, query, viewer)
    return FoundGoods(
        cards=cards_for(search, session, ids[:MAX_CARDS], query, viewer),
        total=best.total.count - num_skipped,
        total_is_exact=best.total.is_exact,
        corrected=search.find(session, goods_query(query, viewer), _FIRST).corrected if query.text else None,
        unverified_words=best.has_others,
        relaxations=tried_relaxations(search, session, query, viewer),
        nearest_place=place.name if place and nearest else None,
        nearest=nearest,
    )


@dataclass(frozen=True)
class BestGoods:
    """Best first: `total` match all words; behind them are those that match some, then others of the category."""

    candidates: list[Candidate]
    num_matching: int  # all words or some
    total: ProductCount

    @property
    def has_others(self) -> bool:
        return self.total.is_exact and len(self.candidates) > self.total.count


def best_goods(search: ProductSearch, session: Session, query: StructuredQuery, viewer: Viewer) -> BestGoods:
    wanted = goods_query(query, viewer)
    total = search.count(session, wanted, _MAX_COUNTED)
    found = _candidates(search, session, wanted, total.count + _MAX_OTHERS if total.count < FEW else MAX_CANDIDATES)
    whole, others = found[: total.count], ranked(found[total.count :], query, viewer, by_tier=True)
    if wanted.text is not None and wanted.category is not None and len(found) < MAX_CARDS:
        # A laptop "for college" need not say so.
        known = {one.product.id for one in found}
        of_category = _candidates(search, session, replace(wanted, text=None))
        others += ranked((one for one in of_category if one.product.id not in known), query, viewer)
    return BestGoods([*ranked(whole, query, viewer), *others], len(found), total)


def _candidates(
    search: ProductSearch, session: Session, wanted: ProductQuery, limit: int = MAX_CANDIDATES
) -> list[Candidate]:
    """In the order of the search: those that match all words before those that match some."""
    found: dict[int, Candidate] = {}
    for sort in _orders_read(wanted):
        for one in search.candidates(session, replace(wanted, sort=sort), limit):
            found.setdefault(one.product.id, one)
    return list(found.values())


def _orders_read(wanted: ProductQuery) -> Iterator[Sort | None]:
    """Without words nothing says which of thousands are read: those that some part of the score likes best."""
    if wanted.text is not None or wanted.sort not in (None, "relevance"):
        yield wanted.sort
        return
    yield "rating"
    if wanted.origin is not None:
        yield "distance"


def _by_attribute(
    search: ProductSearch, session: Session, query: StructuredQuery, order: AttributeOrder, viewer: Viewer
) -> FoundGoods:
    """Goods that do not say their attribute are left out; where none says it, they come in the usual order."""
    # What is smaller than one of 27 inches need not say 27 inches.
    words = [word for word in query.text.split() if not (order.beyond and word[0].isdecimal())]
    plain = query.model_copy(update={"order_by": None, "intent": "search", "text": " ".join(words)})
    best = best_goods(search, session, plain, viewer)
    ids = order.among or [one.product.id for one in best.candidates[: best.total.count]]
    known = [*dict.fromkeys([*ids, *order.beyond])][:MAX_LOOKED_UP]
    hits = search.lookup(session, known, None)
    measures = {hit.product.id: measure_of(hit.product.attributes, order.attribute) for hit in hits}
    ordered = in_order(measures, order)
    values = {number: one for number, one in measures.items() if one is not None}
    if not values:
        usual = order.among or [*ids, *order.beyond]
        cards = cards_for(search, session, usual[:MAX_CARDS], query, viewer)
        return FoundGoods(cards, total=len(cards), is_unmeasured=True)
    cards = cards_for(search, session, ordered[:MAX_CARDS], query, viewer)
    return FoundGoods(cards, total=len(ordered), values=values)


def _pointed_at(search: ProductSearch, session: Session, query: StructuredQuery, viewer: Viewer) -> FoundGoods:
    """Products that the buyer points at are shown even if they are sold out. The other filters choose among several;
    they may be of the turn before, which found nothing that keeps them, so they never hide all.
    """
    limits = limits_only(query, query.product_ids)
    visible = search.candidates(session, goods_query(limits, viewer), MAX_CANDIDATES)
    found = {one.product.id for one in visible}
    if not found or query.intent == "stock":
        found = _visible(search, session, query.product_ids, viewer)
    ids = [one for one in dict.fromkeys(query.product_ids) if one in found]
    if query.sort not in (None, "relevance"):
        ids = [one.product.id for one in ranked(visible, query, viewer)] or ids
    return FoundGoods(cards_of(search, session, ids[:MAX_CARDS], viewer), total=len(ids))


def _visible(search: ProductSearch, session: Session, ids: Sequence[int], viewer: Viewer) -> set[int]:
    return {card.id for card in cards_of(search, session, ids, viewer)}


def _compared(search: ProductSearch, session: Session, query: StructuredQuery, viewer: Viewer) -> FoundGoods:
    """The products that it points at, then the best match of each phrase."""
    assert query.compare is not None
    ids, missing = list(query.compare.product_ids), list[str]()
    for item in query.compare.items[:_MAX_COMPARED]:
        if matching := _match_ids(search, session, query, item, viewer, ids):
            ids += [one for one in matching if one not in ids][:1]
        else:
            missing.append(item)
    cards = cards_of(search, session, ids, viewer)[:MAX_CARDS]
    return FoundGoods(cards, total=len(cards), missing=missing)


def _match_ids(
    search: ProductSearch, session: Session, query: StructuredQuery, item: str, viewer: Viewer, taken: Sequence[int]
) -> list[int]:
    """Of what matches the whole phrase: another brand or model is not what was named. Some that are not taken yet, if
    there are any; what is sold out only where nothing else is.

    A phrase that names no kind is of the kind of the comparison, else of any.
    """
    said = parse_query(item, QueryContext(), search.vocabulary(session)).query
    own = said.model_dump(include={"category", "text", "brands", "exclude_terms", "exclude_brands", "condition"})
    if said.intent == "other" or not any(own.values()):
        own = {"category": None, "brands": [], "text": item}
    changes = {name: value for name, value in own.items() if value} | {"compare": None, "product_ids": []}
    changes = {"text": "", "brands": [], "intent": "search"} | changes
    kinds = dict.fromkeys((own["category"] or query.category, own["category"]))
    found = list[int]()
    for in_stock, category in product(dict.fromkeys((query.in_stock, False)), kinds):
        changed = query.model_copy(update=changes | {"category": category, "in_stock": in_stock})
        best = best_goods(search, session, with_known_category(search, session, changed), viewer)
        ids = [one.product.id for one in best.candidates[: best.total.count]]
        if not set(ids) <= set(taken):
            return ids
        found = found or ids
    return found


def _nearest_elsewhere(
    search: ProductSearch, session: Session, query: StructuredQuery, viewer: Viewer
) -> tuple[NamedPoint | None, list[ProductCard]]:
    """What matches all words. Without advice on delivery: the distances are from the named place."""
    places = [*query.cities, *query.provinces]
    place = point_of_city(places[0]) if places else None
    if place is None:
        return None, []
    around = replace(query_around(goods_query(query, viewer), place.point), cities=())
    found = search.find(session, around, PageRequest(limit=_MAX_NEAREST, with_total=False))
    hits = [] if found.relaxed else found.hits
    return place, [card_of(hit, viewer, with_advice=False) for hit in hits]
