"""The search of the marketplace: finds products, counts facets and updates the search index."""

from collections.abc import Collection, Iterable, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Self

from sqlalchemy import insert, literal, select
from sqlalchemy.orm import Session

from tis.marketplace.kit.cursor_key import CursorKey
from tis.marketplace.kit.feed_marks import mark_products, mark_supplier
from tis.marketplace.kit.geo import Point, kilometres_between
from tis.marketplace.reading.vocabulary import Vocabulary
from tis.marketplace.search.backends.text_index import TextIndex
from tis.marketplace.search.cursor import ListPosition, decode_cursor, encode_cursor
from tis.marketplace.search.facets import FacetCounter
from tis.marketplace.search.filter_keys import (
    FilterKeys,
    category_counts,
    category_keys,
    filter_keys,
    unknown_attributes,
)
from tis.marketplace.search.fused_list import FusedPager, fuse, fused_pager, tiers_before
from tis.marketplace.search.goods_places import nearest_places
from tis.marketplace.search.index import index_products, rebuild_index
from tis.marketplace.search.keyset_paging import KeysetPager
from tis.marketplace.search.product_rows import load_products
from tis.marketplace.search.query import (
    MAX_CANDIDATES,
    MAX_LOOKED_UP,
    Candidate,
    FacetCounts,
    FacetName,
    NearestElsewhere,
    PageRequest,
    ProductCount,
    ProductQuery,
    SearchHit,
    SearchLimits,
    SearchResults,
)
from tis.marketplace.search.relaxation import relaxed_query
from tis.marketplace.search.relaxed_filters import RelaxedFilter, counted_relaxations, point_of_city, query_around
from tis.marketplace.search.said_queries import BoxReading, names_a_product, read_box
from tis.marketplace.search.sql import id_list, read_memo, run
from tis.marketplace.search.supplier_index import index_new_suppliers, index_supplier
from tis.marketplace.search.text_query import TextMatch, UnderstoodText
from tis.marketplace.search.understanding import understand
from tis.marketplace.search.variant_groups import summaries
from tis.marketplace.search.vocabulary_cache import FixedVocabulary, VocabularyCache, load_vocabulary
from tis.marketplace.tables import ProductFacts, UnwatchedChange

_NEAREST_PAGE = PageRequest(limit=5, with_total=False)  # of other places, where a named one has nothing
_FEW = 5  # if fewer products match all words, those that match some follow


class ProductSearch:
    """All methods run in the transaction of the caller, so a search sees what the transaction sees."""

    def __init__(self, index: TextIndex, limits: SearchLimits | None = None) -> None:
        self.index = index
        self.cursor_key = CursorKey()  # `Market` sets that of its secret, once it has one
        self._vocabulary: VocabularyCache | FixedVocabulary = VocabularyCache()
        self._limits = limits or SearchLimits()

    def with_words_of(self, session: Session) -> Self:
        """A search by the categories and synonyms that this transaction sees, also after it was rolled back."""
        fixed = copy(self)
        fixed._vocabulary = FixedVocabulary(load_vocabulary(session), self._vocabulary.brands(session))
        return fixed

    def read(self, session: Session, query: ProductQuery) -> BoxReading:
        """Makes filters and an order of what the text says. The name of a product is looked for as it is."""
        reading = read_box(query, self.vocabulary(session))
        is_name = reading.query is not query and names_a_product(session, self.index, query.text or "")
        return BoxReading(query) if is_name else reading

    def find(
        self, session: Session, query: ProductQuery, page: PageRequest, fused: Sequence[int] = ()
    ) -> SearchResults:
        """`fused`: what follows the products that match all words, as `fused` has made it of the same query."""
        results = self._find(session, query, page, fused)
        named = query.city or (query.provinces[0] if len(query.provinces) == 1 else None)
        place = point_of_city(named) if named else None
        if results.hits or page.skip or page.cursor or place is None:
            return results
        nearest = self._find(session, query_around(query, place.point), _NEAREST_PAGE).hits
        return replace(results, nearest=NearestElsewhere(place.name, nearest)) if nearest else results

    def fused(self, session: Session, query: ProductQuery, near: Sequence[tuple[int, int]]) -> list[int]:
        """`near`: products that are near to the query in meaning, best first, with the digests of their words.

        Those that pass the filters, mixed with those that match some of the words. Empty if none passes.
        """
        query = query.with_default_sort()
        pager = self._pager(session, query, self._understand(session, query))
        if pager.understood.has_no_words:
            return []
        num_found = pager.num_matching_all(_FEW)
        relaxed = self._relaxed(pager, num_found)
        return fuse(relaxed, near, tiers_before(relaxed, num_found))

    def _find(
        self, session: Session, query: ProductQuery, page: PageRequest, fused: Sequence[int] = ()
    ) -> SearchResults:
        query = query.with_default_sort()
        pager, positions = self._read(session, query, page, fused)
        if pager is None:
            return SearchResults([], total=0 if page.with_total else None)
        understood, on_page = pager.understood, positions[: page.limit]
        max_counted = self._limits.max_counted
        total = pager.total(max_counted + 1) if page.with_total else None
        return SearchResults(
            hits=_hits(session, [position.product_id for position in on_page], query.origin),
            total=None if total is None else min(total, max_counted),
            total_is_exact=total is None or total <= max_counted,
            next_cursor=encode_cursor(on_page[-1], query, self.cursor_key) if len(positions) > page.limit else None,
            corrected=understood.corrected,
            did_you_mean=understood.did_you_mean,
            relaxed=understood.relaxed,
            has_few_matches=pager.has_few_matches,
            by_meaning=tuple(pager.beside([one.product_id for one in on_page if one.is_fused]))
            if isinstance(pager, FusedPager)
            else (),
            is_cut=understood.is_cut,
            text_query=understood.text_query,
            unknown_attributes=() if positions or page.cursor else unknown_attributes(session, query.attributes),
        )

    def _read(
        self, session: Session, query: ProductQuery, page: PageRequest, fused: Sequence[int] = ()
    ) -> tuple[KeysetPager | None, list[ListPosition]]:
        """The positions of a page and of the product behind it; no pager for a text without any word."""
        after = decode_cursor(page.cursor, query, self.cursor_key) if page.cursor else None
        understood = after.understood if after else self._understand(session, query)
        if understood.has_no_words:
            return None, []
        pager = self._pager(session, query, understood)
        pager = replace(pager, count=page.limit + 1, skip=0 if after else page.skip, after=after)
        if understood.fused:
            pager = replace(fused_pager(pager, understood.fused, understood.num_tiers_before), after=after)
        positions = pager.positions()
        if after or not understood.text_query:
            return pager, positions
        num_found = pager.num_matching_all(_FEW, positions)
        relaxed = self._relaxed(pager, num_found)
        if fused and num_found < _FEW and query.sort == "relevance":
            mixed = fused_pager(relaxed, fused, tiers_before(relaxed, num_found))
            return mixed, mixed.positions()
        if relaxed is not pager:
            pager, positions = relaxed, relaxed.positions()
        return replace(pager, has_few_matches=num_found < _FEW and query.sort == "relevance"), positions

    def candidates(self, session: Session, query: ProductQuery, limit: int = MAX_CANDIDATES) -> list[Candidate]:
        """The first products of the search, in its order, with how well each fits."""
        query = query.with_default_sort()
        limit = min(limit, MAX_CANDIDATES)
        pager, positions = self._read(session, query, PageRequest(limit, with_total=False))
        if pager is None:
            return []
        ids = [position.product_id for position in positions[:limit]]
        by_relevance = {position.product_id: position.tier for position in positions}
        tiers = by_relevance if query.sort == "relevance" else pager.tiers_of(ids)
        return [Candidate.of(hit, query, tiers.get(hit.product.id, 0)) for hit in _hits(session, ids, query.origin)]

    def lookup(self, session: Session, product_ids: Sequence[int], origin: Point | None = None) -> list[SearchHit]:
        """In the order of the ids, each once. Deleted products, and those of closed shops, do not exist."""
        ids = list(dict.fromkeys(product_ids))
        if len(ids) > MAX_LOOKED_UP:
            raise ValueError(f"at most {MAX_LOOKED_UP} products are looked up at once")
        sql = f"SELECT product_id FROM product_search WHERE sellable >= 0 AND product_id IN {id_list(ids)}"
        visible = {product_id for [product_id] in run(session, sql)} if ids else ()
        return _hits(session, [one for one in ids if one in visible], origin)

    def count(self, session: Session, query: ProductQuery, limit: int = 1000) -> ProductCount:
        """How many products match, without those that match only some of the words. It stops counting at `limit`."""
        return self._count(session, self._understand(session, query), query, limit)

    def matching(self, session: Session, query: ProductQuery, product_ids: Sequence[int]) -> set[int]:
        """Those of the products that match all words and pass the filters."""
        understood = self._understand(session, query)
        if understood.has_no_words or not product_ids:
            return set()
        pager, text_query = self._pager(session, query, understood), understood.text_query
        if text_query is None:
            return {number for number, _ in pager.passing(product_ids)}
        stages = text_query.stages
        match = TextMatch(text_query, stage=stages[0]) if stages else TextMatch(text_query)
        return set(pager.ids(match, len(product_ids), product_ids))

    def relaxations(self, session: Session, query: ProductQuery) -> list[RelaxedFilter]:
        """If few products match: which filter alone, dropped or widened, finds more; nearest to the query first."""
        return counted_relaxations(query, partial(self._count, session, self._understand(session, query)))

    def _count(self, session: Session, understood: UnderstoodText, query: ProductQuery, limit: int) -> ProductCount:
        if understood.has_no_words:
            return ProductCount(0)
        total = self._pager(session, query, understood).total(limit + 1)
        return ProductCount(min(total, limit), is_exact=total <= limit)

    def facets(self, session: Session, query: ProductQuery, names: Collection[FacetName]) -> FacetCounts:
        """How many products each value would leave; each facet ignores the filter of its own name."""
        query = query.with_default_sort()
        pager = self._pager(session, query, self._understand(session, query))
        if query.text is not None and not pager.understood.has_no_words:
            pager = self._relaxed(pager, pager.num_matching_all(_FEW))
        return FacetCounter(pager, self._vocabulary.current(session), partial(self._keys, session)).count(names)

    def vocabulary(self, session: Session) -> Vocabulary:
        """Categories, synonyms, brands and places: what a text may speak of."""
        return self._vocabulary.with_brands(session)

    def refresh(self, session: Session, product_ids: Iterable[int], rated_groups: Iterable[int] = ()) -> None:
        """Call it in every transaction that creates, changes, deletes or restores products.

        `rated_groups` have other counters of reviews than before: all their variants are sorted by these.
        """
        ids = sorted(set(product_ids))
        index_products(session, self.index, ids, rated_groups)
        mark_products(session, ids)
        if ids:
            session.execute(insert(UnwatchedChange), [{"product_id": number} for number in ids])

    def note_reopened(self, session: Session, supplier_id: int) -> None:
        """The goods of a supplier can be bought again."""
        goods = select(ProductFacts.product_id, literal(0), literal(0))
        goods = goods.where(ProductFacts.supplier_id == supplier_id, ProductFacts.sellable > 0)
        session.execute(insert(UnwatchedChange).from_select(["product_id", "after_alert", "after_search"], goods))

    def refresh_supplier(self, session: Session, supplier_id: int, *, with_branches: bool = False) -> None:
        """Call it in every transaction that moves, closes, suspends or restores a supplier, whose row it has locked, or
        a branch of it."""
        index_supplier(session, self.index, supplier_id, with_branches=with_branches)
        mark_supplier(session, supplier_id)

    def rebuild(self, session: Session) -> None:
        """Compares the whole index with the tables and repairs what differs."""
        rebuild_index(session, self.index)
        index_new_suppliers(session)

    def category_keys(self, session: Session, category: str) -> list[str]:
        """The keys of a category and its descendants that some product has."""
        return category_keys(session, self._vocabulary.current(session), category)

    def count_by_category(self, session: Session, slugs: Iterable[str]) -> dict[str, int]:
        """How many products the filter `category` finds, by default, with each of the slugs."""
        tree, counts = self._vocabulary.current(session), category_counts(session)
        return {slug: counts.of_any(tree.keys_below(slug)) for slug in slugs}

    def _understand(self, session: Session, query: ProductQuery) -> UnderstoodText:
        if query.text is None:
            return UnderstoodText()
        # Another search may read other words in the same transaction.
        understood: dict[str, UnderstoodText] = read_memo(session).setdefault((self, "understood"), {})
        if query.text not in understood:
            vocabulary = self._vocabulary.current(session)
            understood[query.text] = understand(session, self.index, vocabulary, query.text)
        return understood[query.text]

    def _keys(self, session: Session, query: ProductQuery) -> FilterKeys:
        categories = None if query.category is None else self.category_keys(session, query.category)
        return filter_keys(session, self.index, query, categories, self._limits)

    def _pager(self, session: Session, query: ProductQuery, understood: UnderstoodText) -> KeysetPager:
        return KeysetPager(session, self.index, query, understood, self._keys(session, query), self._limits)

    def _relaxed(self, pager: KeysetPager, num_found: int) -> KeysetPager:
        """A list by fewer words if few products match all of them and more match some, else the same list."""
        query, text_query = pager.query, pager.understood.text_query
        if num_found >= _FEW or text_query is None or (num_found and len(text_query.groups) == 1):
            return pager
        if num_found and query.sort != "relevance":
            return pager  # the nearest or cheapest of what matches a word would come before what was asked for
        relaxed = relaxed_query(pager.session, self.index, text_query, pager.ids, are_all_matched=bool(num_found))
        if relaxed is None or (num_found and len(relaxed.stages) == 1):
            return pager
        if query.sort != "relevance":
            relaxed = replace(relaxed, stages=relaxed.stages[:1])
        return replace(pager, understood=replace(pager.understood, text_query=relaxed, relaxed=True))


def _hits(session: Session, product_ids: Sequence[int], origin: Point | None) -> list[SearchHit]:
    """Distances are to the public place of the shop, or to the nearest of its places that has the goods."""
    products = load_products(session, product_ids)
    variants = summaries(session, [product.group_id for product in products])
    places = {} if origin is None else nearest_places(session, product_ids, origin)
    hits = []
    for product in products:
        nearest = places.get(product.id)
        shop = Point(product.shop_public_latitude, product.shop_public_longitude)
        km = None if origin is None else nearest.distance_km if nearest else kilometres_between(origin, shop)
        hits.append(SearchHit(product, km, variants.get(product.group_id or 0), nearest))
    return hits
