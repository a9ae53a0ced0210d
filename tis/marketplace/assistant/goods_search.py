"""`GoodsSearch`: what the assistant asks of the search for a structured query, and of a query that finds little."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from typing import Any

from sqlalchemy.orm import Session

from tis.marketplace.assistant.goods import ProductCard, TriedFilter, card_of
from tis.marketplace.assistant.viewers import Viewer
from tis.marketplace.reading.goods_kinds import GoodsKind, wanted_kind
from tis.marketplace.reading.structured_query import MAX_QUERY_CHARS, MAX_SHOWN, StructuredQuery
from tis.marketplace.search.index_tokens import head_token
from tis.marketplace.search.product_rows import ProductRow
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.search.query import MAX_LOOKED_UP, ProductCount, ProductQuery
from tis.marketplace.search.relaxed_filters import MAX_RELAXED_COUNT, middle_of
from tis.marketplace.search.said_queries import product_query
from tis.marketplace.search.spelling import document_counts
from tis.marketplace.search.sql import run

_MAX_PAIRS, _MAX_PAIRS_TRIED = 2, 10
_Changes = dict[str, Any]
# What is left of a query without one of its filters, nearest to the query first.
_DROPPED: dict[str, _Changes] = {
    "text": {"text": ""},
    "quantity": {"quantity": None},
    "fulfilment": {"fulfilment": None},
    "min_rating": {"min_rating": None},
    "on_promotion": {"on_promotion": False},
    "condition": {"condition": None},
    "max_price": {"max_price": None},
    "city": {"cities": [], "provinces": [], "radius_km": None},
    "brand": {"brands": []},
}
# Other fields that a relaxation of the search may change.
_RELAXED: list[_Changes] = [
    {"radius_km": None},
    {"radius_km": None, "cities": []},
    {"cities": []},
    {"cities": [], "provinces": []},
    {"provinces": []},
    {"in_stock": False},
    {"min_price": None},
    {"category": None},
    *_DROPPED.values(),
]


@dataclass(frozen=True)
class GoodsSearch:
    """The search in one transaction, for one viewer."""

    search: ProductSearch
    session: Session
    viewer: Viewer

    def product_query(self, query: StructuredQuery) -> ProductQuery:
        return product_query(query, self.viewer.measured_from)

    def count(self, query: StructuredQuery, max_count: int = 1) -> ProductCount:
        return self.search.count(self.session, self.product_query(query), max_count)

    def cards(self, ids: Sequence[int]) -> list[ProductCard]:
        """As they are now, in the order of the ids; deleted products and those of suspended shops are left out."""
        known = list(dict.fromkeys(ids))[:MAX_LOOKED_UP]
        return [card_of(hit, self.viewer) for hit in self.search.lookup(self.session, known, self.viewer.measured_from)]

    def cards_for(self, ids: Sequence[int], query: StructuredQuery) -> list[ProductCard]:
        """Distances are from the city that goods should be near, if there is one; then nothing is said of delivery."""
        near = middle_of(query.cities[0]) if query.near_cities and len(query.cities) == 1 else None
        if near is None:
            return self.cards(ids)
        from_there = replace(self, viewer=replace(self.viewer, origin=near))
        return [replace(card, fulfilment=None) for card in from_there.cards(ids)]

    def with_known_category(self, query: StructuredQuery) -> StructuredQuery:
        """Sellers may name categories as they like: a category without goods becomes words to look for."""
        if query.category is None or self.count(StructuredQuery(category=query.category, in_stock=False)).count:
            return query
        kind, noun = self.kind_of(query), query.category.replace("-", " ")
        without = query.model_copy(update={"category": None})
        if kind and kind.phrases:
            return without
        own = self.kind_of(without)
        # The laptop of a `charger laptop` is of a category, a `teko` only of the words.
        if (
            own
            and own.phrases
            and not own.category
            and not self.count(StructuredQuery(text=noun, in_stock=False)).count
        ):
            return without
        return without.model_copy(update={"text": f"{noun} {query.text}".strip()[:MAX_QUERY_CHARS]})

    def kind_of(self, query: StructuredQuery) -> GoodsKind | None:
        return wanted_kind(query.text, query.category, self.search.vocabulary(self.session))

    def category_name(self, slug: str) -> str:
        """In the language of the answer. In Indonesia a mouse is a mouse, if that is how names of products begin."""
        loanword = slug.replace("-", " ")
        rows = run(self.session, "SELECT name_id FROM categories WHERE slug = :slug", {"slug": slug})
        if self.viewer.language == "en" or not rows:
            return loanword
        own = str(rows[0][0]).lower()
        words = [(head_token(one.split()[0]), *one.split()[1:]) for one in (loanword, own)]
        counts = document_counts(self.session, [word for several in words for word in several])
        of_loanword, of_own = (min(counts.get(word, 0) for word in several) for several in words)
        return loanword if of_loanword > of_own else own

    def holds(self, kind: GoodsKind, product: ProductRow) -> bool | None:
        """Whether the product is of this kind; None if its name does not say what it is."""
        return kind.holds(product.name, product.brand, self.search.vocabulary(self.session))

    def tried_relaxations(self, query: StructuredQuery) -> list[TriedFilter]:
        """Those that the fields of the query can say: the search of each is the one that was counted.

        Where no filter alone hides the goods, two are dropped: Bandung has no phones, and no phone elsewhere is used.
        """
        tried = list[TriedFilter]()
        for relaxed in self.search.relaxations(self.session, self.product_query(query)):
            wanted = relaxed.query
            changes: list[_Changes] = [{"max_price": wanted.max_price}, {"radius_km": wanted.radius_km}, *_RELAXED]
            for changed in (query.model_copy(update=one) for one in changes):
                if _is_same_search(self.product_query(changed), wanted):
                    tried.append(TriedFilter(relaxed.without, relaxed.count, relaxed.is_exact, changed))
                    break
        if not tried and not self.count(query).count:
            tried = list(islice(self._dropped_pairs(query), _MAX_PAIRS))
        return tried

    def _dropped_pairs(self, query: StructuredQuery) -> Iterator[TriedFilter]:
        """Nearest to the query first. The words are dropped only where the category says what is wanted."""
        droppable = [
            name
            for name, changes in _DROPPED.items()
            if query.model_copy(update=changes) != query and (name != "text" or query.category is not None)
        ]
        for one, other in islice(combinations(droppable, 2), _MAX_PAIRS_TRIED):
            changed = query.model_copy(update=_DROPPED[one] | _DROPPED[other])
            found = self.count(changed, MAX_RELAXED_COUNT)
            if found.count:
                yield TriedFilter(f"{one} and {other}", found.count, found.is_exact, changed)


def without_unused_radius(query: StructuredQuery, viewer: Viewer) -> StructuredQuery:
    """Without one that filters nothing: around the buyer whose place is not known, and around several places."""
    if query.radius_km is None or product_query(query, viewer.measured_from).radius_km is not None:
        return query
    return query.model_copy(update={"radius_km": None})


def limits_only(query: StructuredQuery, ids: Sequence[int]) -> StructuredQuery:
    """For products that are known by id. Those that the buyer points at may be sold out, and of any category."""
    changes: dict[str, Any] = {"text": "", "sort": None, "product_ids": list(dict.fromkeys(ids))[:MAX_SHOWN]}
    if query.product_ids:
        changes |= {"category": None, "in_stock": query.in_stock or False}
    if query.intent == "stock":
        changes |= {"in_stock": False, "quantity": None}
    return query.model_copy(update=changes)


def _is_same_search(one: ProductQuery, other: ProductQuery) -> bool:
    """Where nothing filters by distance, it does not matter from where that is measured."""
    if one.radius_km is None and other.radius_km is None and one.fulfilment is None:
        one = replace(one, origin=other.origin)
    return one == other
