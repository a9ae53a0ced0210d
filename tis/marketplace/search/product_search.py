"""The search of the marketplace: finds products, counts facets and updates the search index."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from sqlalchemy.orm import Session

from tis.marketplace.kit.cursor_key import CursorKey
from tis.marketplace.kit.geo import Point
from tis.marketplace.reading.vocabulary import Vocabulary
from tis.marketplace.search.attribute_filter import rare_filters, unknown_attributes
from tis.marketplace.search.backends.text_index import TextIndex
from tis.marketplace.search.city_filter import resolve_cities
from tis.marketplace.search.cursor import ListPosition, ResolvedQuery, decode_cursor, encode_cursor
from tis.marketplace.search.facets import FacetCounter
from tis.marketplace.search.filters import category_counts, category_keys, ids_of_sku, ids_with_stock, within
from tis.marketplace.search.index import index_products, rebuild_index
from tis.marketplace.search.keyset_paging import KeysetPager
from tis.marketplace.search.product_candidates import (
    MAX_CANDIDATES,
    Candidate,
    candidate_of,
    distance_to,
    look_up,
    tiers_of,
)
from tis.marketplace.search.product_rows import ProductRow, load_products
from tis.marketplace.search.query import (
    FacetCounts,
    FacetName,
    NearestElsewhere,
    PageRequest,
    ProductCount,
    ProductQuery,
    SearchHit,
    SearchResults,
)
from tis.marketplace.search.ranking_plan import RankingLimits
from tis.marketplace.search.relaxation import relaxed_query
from tis.marketplace.search.relaxed_filters import RelaxedFilter, counted_relaxations, point_of_city, query_around
from tis.marketplace.search.said_queries import BoxReading, names_a_product, read_box
from tis.marketplace.search.supplier_index import index_new_suppliers, index_supplier
from tis.marketplace.search.understanding import understand
from tis.marketplace.search.vocabulary_cache import VocabularyCache

_NUM_TIERS_READ = 4  # usually
_NEAREST_PAGE = PageRequest(limit=5, with_total=False)  # of other places, where a named one has nothing
_FEW = 5  # if fewer products match all words, those that match some follow


@dataclass(frozen=True)
class SearchLimits:
    max_counted: int = 1000  # a total is exact up to here; counting further takes longer than the search
    ranking: RankingLimits = RankingLimits()
    max_products_of_rare_cities: int = 1000
    max_products_of_large_stock: int = 1000
    max_products_of_rare_attributes: int = 10_000
    max_faceted_with_attributes: int = 10_000  # reading the attributes of one takes as long as counting ten
    max_faceted: int = 10_000  # of more candidates, this many are counted: about 15 ms


class ProductSearch:
    """All methods run in the transaction of the caller, so a search sees what the transaction sees."""

    def __init__(self, index: TextIndex, limits: SearchLimits | None = None) -> None:
        self.index = index
        self.cursor_key = CursorKey()  # `Market` sets that of its secret, once it has one
        self._vocabulary = VocabularyCache()
        self._limits = limits or SearchLimits()

    def read(self, session: Session, query: ProductQuery) -> BoxReading:
        """Makes filters and an order of what the text says. The name of a product is looked for as it is."""
        reading = read_box(query, self.vocabulary(session))
        is_name = reading.query is not query and names_a_product(session, self.index, query.text or "")
        return BoxReading(query) if is_name else reading

    def find(self, session: Session, query: ProductQuery, page: PageRequest) -> SearchResults:
        results = self._find(session, query, page)
        if results.hits or page.skip or page.cursor:
            return results
        return replace(results, nearest=self._nearest_elsewhere(session, query))

    def _nearest_elsewhere(self, session: Session, query: ProductQuery) -> NearestElsewhere | None:
        place = point_of_city(query.city) if query.city is not None else None
        if place is None:
            return None
        results = self._find(session, query_around(query, place.point), _NEAREST_PAGE)
        return NearestElsewhere(place.name, results.hits) if results.hits else None

    def _find(self, session: Session, query: ProductQuery, page: PageRequest) -> SearchResults:
        query = query.with_default_sort()
        pager, positions = self._read(session, query, page)
        if pager is None:
            return SearchResults([], total=0 if page.with_total else None)
        resolved, on_page = pager.resolved, positions[: page.limit]
        products = load_products(session, [position.product_id for position in on_page])
        max_counted = self._limits.max_counted
        total = pager.total(max_counted + 1) if page.with_total else None
        return SearchResults(
            hits=_hits(products, query.origin),
            total=None if total is None else min(total, max_counted),
            total_is_exact=total is None or total <= max_counted,
            next_cursor=encode_cursor(on_page[-1], query, self.cursor_key) if len(positions) > page.limit else None,
            corrected=resolved.corrected,
            did_you_mean=resolved.did_you_mean,
            relaxed=resolved.relaxed,
            is_cut=resolved.is_cut,
            text_query=resolved.text_query,
            unknown_attributes=() if positions or page.cursor else unknown_attributes(session, query.attributes),
        )

    def _read(
        self, session: Session, query: ProductQuery, page: PageRequest
    ) -> tuple[KeysetPager | None, list[ListPosition]]:
        """The positions of a page and of the product behind it; no pager for a text without any word."""
        after = decode_cursor(page.cursor, query, self.cursor_key) if page.cursor else None
        resolved = self._resolve(session, query, after.resolved if after else self._understand(session, query))
        if resolved.text_query is not None and not resolved.text_query.groups:
            return None, []
        pager = self._pager(session, query, resolved, page.limit + 1, 0 if after else page.skip, after)
        positions = pager.positions()
        num_found = _FEW if after else pager.num_matching_all(_FEW, positions)
        if num_found < _FEW and (relaxed := self._relax(session, query, resolved, num_found)) is not resolved:
            pager = replace(pager, resolved=relaxed)
            positions = pager.positions()
        return pager, positions

    def _pager(
        self,
        session: Session,
        query: ProductQuery,
        resolved: ResolvedQuery,
        count: int = 1,
        skip: int = 0,
        after: ListPosition | None = None,
    ) -> KeysetPager:
        return KeysetPager(session, self.index, query, resolved, self._limits.ranking, count, skip, after)

    def candidates(self, session: Session, query: ProductQuery, limit: int = MAX_CANDIDATES) -> list[Candidate]:
        """The first products of the search, in its order, with how well each fits."""
        query = query.with_default_sort()
        limit = min(limit, MAX_CANDIDATES)
        pager, positions = self._read(session, query, PageRequest(limit, with_total=False))
        if pager is None:
            return []
        ids = [position.product_id for position in positions[:limit]]
        by_relevance = {position.product_id: position.tier for position in positions}
        tiers = by_relevance if query.sort == "relevance" else tiers_of(pager, ids)
        hits = _hits(load_products(session, ids), query.origin)
        return [candidate_of(hit, query, tiers.get(hit.product.id, 0)) for hit in hits]

    def lookup(self, session: Session, product_ids: Sequence[int], origin: Point | None = None) -> list[SearchHit]:
        """Products by their ids, in this order; those that nobody finds are left out."""
        return look_up(session, product_ids, origin)

    def count(self, session: Session, query: ProductQuery, limit: int = 1000) -> ProductCount:
        """How many products match, without those that match only some of the words. It stops counting at `limit`."""
        return self._count(session, self._understand(session, query), query, limit)

    def relaxations(self, session: Session, query: ProductQuery) -> list[RelaxedFilter]:
        """If few products match: which filter alone, dropped or widened, finds more; nearest to the query first."""
        understood = self._understand(session, query)
        return counted_relaxations(query, partial(self._count, session, understood))

    def _count(self, session: Session, understood: ResolvedQuery, query: ProductQuery, limit: int) -> ProductCount:
        if understood.text_query is not None and not understood.text_query.groups:
            return ProductCount(0)
        resolved = self._resolve(session, query, understood)
        total = self._pager(session, query, resolved).total(limit + 1)
        return ProductCount(min(total, limit), is_exact=total <= limit)

    def facets(self, session: Session, query: ProductQuery, names: Collection[FacetName]) -> FacetCounts:
        """How many products each value would leave; each facet ignores the filter of its own name."""
        query = query.with_default_sort()
        resolved = self._resolve(session, query, self._understand(session, query))
        if resolved.text_query is not None and resolved.text_query.groups:
            if (num_found := self._pager(session, query, resolved).num_matching_all(_FEW)) < _FEW:
                resolved = self._relax(session, query, resolved, num_found)
        counter = FacetCounter(
            session,
            self.index,
            self._vocabulary.current(session),
            self._limits.max_faceted,
            self._limits.max_faceted_with_attributes,
            partial(self._resolve, session),
        )
        return counter.count(query, resolved, names)

    def vocabulary(self, session: Session) -> Vocabulary:
        """Categories, synonyms, brands and places: what a text may speak of."""
        return self._vocabulary.with_brands(session)

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
        return ResolvedQuery(
            understood.text_query, understood.corrected, understood.did_you_mean, is_cut=understood.is_cut
        )

    def _resolve(self, session: Session, query: ProductQuery, resolved: ResolvedQuery) -> ResolvedQuery:
        """Adds the keys of the filters."""
        categories, ids = None, query.product_ids
        if query.category is not None:
            categories = tuple(category_keys(session, self._vocabulary.current(session), query.category))
        if query.sku is not None:
            ids = within(ids, ids_of_sku(session, self.index, query.sku))
        if query.large_quantity is not None:
            ids = within(ids, ids_with_stock(session, query.large_quantity, self._limits.max_products_of_large_stock))
        cities = resolve_cities(session, query, self._limits.max_products_of_rare_cities)
        # The set of these products is read anew for each tier of a text.
        most = self._limits.max_products_of_rare_attributes // (1 if query.text is None else _NUM_TIERS_READ)
        return replace(
            resolved,
            categories=categories,
            cities=cities.found,
            are_cities_rare=cities.are_rare,
            excluded_cities=cities.excluded,
            product_ids=ids,
            rare_attributes=rare_filters(session, query.attributes, most),
        )

    def _relax(self, session: Session, query: ProductQuery, resolved: ResolvedQuery, num_found: int) -> ResolvedQuery:
        """Returns a query of fewer words if more products match some words than match all of them."""
        text_query = resolved.text_query
        if text_query is None or not text_query.groups or (num_found and len(text_query.groups) == 1):
            return resolved
        if num_found and query.sort != "relevance":
            return resolved  # the nearest or cheapest of what matches a word would come before what was asked for
        find_ids = self._pager(session, query, resolved).ids
        relaxed = relaxed_query(session, self.index, text_query, find_ids, are_all_matched=bool(num_found))
        if relaxed is None or (num_found and len(relaxed.stages) == 1):
            return resolved
        if query.sort != "relevance":
            relaxed = replace(relaxed, stages=relaxed.stages[:1])
        return replace(resolved, text_query=relaxed, relaxed=True)


def _hits(products: Sequence[ProductRow], origin: Point | None) -> list[SearchHit]:
    return [SearchHit(product, distance_to(product, origin)) for product in products]
