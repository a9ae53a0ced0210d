"""The search of the marketplace: finds products, counts facets and updates the search index."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from sqlalchemy.orm import Session

from tis.marketplace.kit.cursor_key import CursorKey
from tis.marketplace.kit.geo import Point, kilometres_between
from tis.marketplace.search.backends.text_index import TextIndex
from tis.marketplace.search.city_filter import resolve_city
from tis.marketplace.search.cursor import ResolvedQuery, decode_cursor, encode_cursor
from tis.marketplace.search.facets import FacetCounter
from tis.marketplace.search.filters import category_counts, category_keys
from tis.marketplace.search.index import index_products, rebuild_index
from tis.marketplace.search.keyset_paging import KeysetPager
from tis.marketplace.search.nearest import NEAREST_PAGE, point_of_city, query_around
from tis.marketplace.search.product_rows import ProductRow, load_products
from tis.marketplace.search.query import (
    FacetCounts,
    FacetName,
    NearestElsewhere,
    PageRequest,
    ProductQuery,
    SearchHit,
    SearchResults,
)
from tis.marketplace.search.ranking_plan import RankingLimits
from tis.marketplace.search.relaxation import relaxed_query
from tis.marketplace.search.said_filters import with_said_filters
from tis.marketplace.search.supplier_index import index_supplier
from tis.marketplace.search.supplier_words import index_new_suppliers
from tis.marketplace.search.understanding import understand
from tis.marketplace.search.vocabulary import Vocabulary, VocabularyCache


class Reranker(Protocol):
    """Reorders a page by more than words, for example by embeddings. No route uses one yet."""

    def rerank(self, text: str, hits: Sequence[SearchHit]) -> Sequence[int]:
        """Returns product ids of the page, best first."""
        ...


_FEW = 5  # if fewer products match all words, those that match some follow


@dataclass(frozen=True)
class SearchLimits:
    max_counted: int = 1000  # a total is exact up to here; counting further takes longer than the search
    ranking: RankingLimits = RankingLimits()
    max_products_of_rare_cities: int = 1000
    max_faceted: int = 50_000  # of more candidates, this many are counted: a tenth of a second


class ProductSearch:
    """All methods run in the transaction of the caller, so a search sees what the transaction sees."""

    def __init__(self, index: TextIndex, limits: SearchLimits | None = None) -> None:
        self.index = index
        self.cursor_key = CursorKey()  # `Market` sets that of its secret, once it has one
        self._vocabulary = VocabularyCache()
        self._limits = limits or SearchLimits()

    def find(
        self, session: Session, query: ProductQuery, page: PageRequest, reranker: Reranker | None = None
    ) -> SearchResults:
        query = with_said_filters(query)
        results = self._find(session, query, page, reranker)
        if results.hits or page.skip or page.cursor:
            return results
        return replace(results, nearest=self._nearest_elsewhere(session, query))

    def _nearest_elsewhere(self, session: Session, query: ProductQuery) -> NearestElsewhere | None:
        place = point_of_city(query.city) if query.city is not None else None
        if place is None:
            return None
        results = self._find(session, query_around(query, place.point), NEAREST_PAGE)
        return NearestElsewhere(place.name, results.hits) if results.hits else None

    def _find(
        self, session: Session, query: ProductQuery, page: PageRequest, reranker: Reranker | None = None
    ) -> SearchResults:
        query = _with_default_sort(query)
        after = decode_cursor(page.cursor, query, self.cursor_key) if page.cursor else None
        resolved = self._resolve(session, query, after.resolved if after else self._understand(session, query))
        if resolved.text_query is not None and not resolved.text_query.groups:
            return SearchResults([], total=0 if page.with_total else None)
        pager = KeysetPager(
            session,
            self.index,
            query,
            resolved,
            self._limits.ranking,
            count=page.limit + 1,
            skip=0 if after else page.skip,
            after=after,
        )
        positions = pager.positions()
        is_whole_list = not page.skip and len(positions) <= page.limit
        num_found = _FEW if after else len(positions) if is_whole_list else pager.total(_FEW)
        if num_found < _FEW and (relaxed := self._relax(session, query, resolved, num_found)) is not resolved:
            pager, resolved = replace(pager, resolved=relaxed), relaxed
            positions = pager.positions()
        on_page = positions[: page.limit]
        products = load_products(session, [position.product_id for position in on_page])
        max_counted = self._limits.max_counted
        total = pager.total(max_counted + 1) if page.with_total else None
        return SearchResults(
            hits=_rerank(reranker, query, _hits(products, query.origin)),
            total=None if total is None else min(total, max_counted),
            total_is_exact=total is None or total <= max_counted,
            next_cursor=encode_cursor(on_page[-1], query, self.cursor_key) if len(positions) > page.limit else None,
            corrected=resolved.corrected,
            relaxed=resolved.relaxed,
            is_cut=resolved.is_cut,
        )

    def facets(self, session: Session, query: ProductQuery, names: Collection[FacetName]) -> FacetCounts:
        """How many products each value would leave; each facet ignores the filter of its own name."""
        query = _with_default_sort(with_said_filters(query))
        resolved = self._resolve(session, query, self._understand(session, query))
        if resolved.text_query is not None and resolved.text_query.groups:
            pager = KeysetPager(session, self.index, query, resolved, self._limits.ranking, count=1)
            if (num_found := pager.total(_FEW)) < _FEW:
                resolved = self._relax(session, query, resolved, num_found)
        counter = FacetCounter(session, self.index, self._vocabulary.current(session), self._limits.max_faceted)
        return counter.count(query, resolved, names)

    def vocabulary(self, session: Session) -> Vocabulary:
        return self._vocabulary.current(session)

    def refresh(self, session: Session, product_ids: Iterable[int]) -> None:
        """Call it in every transaction that creates, changes, deletes or restores products."""
        index_products(session, self.index, product_ids)

    def refresh_supplier(self, session: Session, supplier_id: int) -> None:
        """Call it in every transaction that moves, closes, suspends or restores a supplier, whose row it has locked."""
        index_supplier(session, self.index, supplier_id)

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
        return {slug: sum(counts.get(key, 0) for key in tree.keys_below(slug)) for slug in slugs}

    def _understand(self, session: Session, query: ProductQuery) -> ResolvedQuery:
        if query.text is None:
            return ResolvedQuery()
        understood = understand(session, self.index, self._vocabulary.current(session), query.text)
        return ResolvedQuery(understood.text_query, understood.corrected, is_cut=understood.is_cut)

    def _resolve(self, session: Session, query: ProductQuery, resolved: ResolvedQuery) -> ResolvedQuery:
        """Adds the keys of the filters."""
        categories, cities, are_rare = None, None, False
        if query.category is not None:
            categories = tuple(category_keys(session, self._vocabulary.current(session), query.category))
        if query.city is not None:
            cities, are_rare = resolve_city(session, query.city, self._limits.max_products_of_rare_cities)
        return replace(resolved, categories=categories, cities=cities, are_cities_rare=are_rare)

    def _relax(self, session: Session, query: ProductQuery, resolved: ResolvedQuery, num_found: int) -> ResolvedQuery:
        """Returns a query of fewer words if more products match some words than match all of them."""
        text_query = resolved.text_query
        if text_query is None or not text_query.groups or (num_found and len(text_query.groups) == 1):
            return resolved
        if num_found and query.sort != "relevance":
            return resolved  # the nearest or cheapest of what matches a word would come before what was asked for
        pager = KeysetPager(session, self.index, query, resolved, self._limits.ranking, count=1)
        relaxed = relaxed_query(session, text_query, pager.ids)
        if relaxed is None or (num_found and len(relaxed.stages) == 1):
            return resolved
        if query.sort != "relevance":
            relaxed = replace(relaxed, stages=relaxed.stages[:1])
        return replace(resolved, text_query=relaxed, relaxed=True)


def _with_default_sort(query: ProductQuery) -> ProductQuery:
    """A text is sorted by relevance by default; without a text there is no relevance."""
    if query.text is not None and query.sort is None:
        return replace(query, sort="relevance")
    if query.text is None and query.sort == "relevance":
        return replace(query, sort=None)
    return query


def _hits(products: Sequence[ProductRow], origin: Point | None) -> list[SearchHit]:
    if origin is None:
        return [SearchHit(product) for product in products]
    return [
        SearchHit(
            product, kilometres_between(origin, Point(product.shop_public_latitude, product.shop_public_longitude))
        )
        for product in products
    ]


def _rerank(reranker: Reranker | None, query: ProductQuery, hits: list[SearchHit]) -> list[SearchHit]:
    """Only within the page, so that cursors stay valid. Hits that the reranker leaves out follow at the end."""
    if reranker is None or query.text is None or query.sort != "relevance":
        return hits
    by_id = {hit.product.id: hit for hit in hits}
    ids = dict.fromkeys(reranker.rerank(query.text, hits))
    return [by_id.pop(one) for one in ids if one in by_id] + list(by_id.values())
