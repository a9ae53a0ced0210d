"""The order by relevance: the best tier first, in a tier the nearest ring around the buyer, in a ring the best rated.

A query may ask for another order in a tier: the cheapest, the dearest, the newest or the nearest first.

A small tier is read whole and sorted. Of a large one the best rated products are looked through for those that match,
until a page is full. Both ways give the same list, so a page may be read either way.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from sqlalchemy.orm import Session

from tis.marketplace.search.backends.text_index import RowSource, TextIndex
from tis.marketplace.search.candidates import NO_LIMIT, candidate_query, narrowed
from tis.marketplace.search.cursor import ListPosition
from tis.marketplace.search.filter_keys import FilterKeys
from tis.marketplace.search.geo_filter import LAST_RING, RINGS_KM, bounding_box, has_suppliers, ring_edges, ring_sql
from tis.marketplace.search.index_tokens import head_token
from tis.marketplace.search.query import ProductQuery, SearchLimits, Sort
from tis.marketplace.search.spelling import document_counts
from tis.marketplace.search.sql import MAX_PRODUCT_ID, run, run_once
from tis.marketplace.search.text_query import TermGroup, TextMatch, UnderstoodText, match_tiers

_FIRST_LOOK = 4  # so many products are looked at for each that is wanted
_LIKELY = 3  # a tier is read if no more than this many times `max_sorted` are expected to match
_SHARE_OF_UNKNOWN = 0.1  # of all products, that match a word whose products are not counted
_MAX_LOOKED_AT = 16  # for each that is wanted, if nothing tells how many match
_MAX_COUNT = 250  # for a longer page, or one far behind the first, all are sorted

RankedRow = tuple[int, float, int]  # product_id, what it is sorted by in its tier and ring, ring


@dataclass(frozen=True)
class TierOrder:
    """By which column of `product_search`; by the distance if it is none."""

    column: str | None = "rating_rank"
    is_descending: bool = True

    @property
    def direction(self) -> str:
        return "DESC" if self.is_descending else "ASC"

    @property
    def behind(self) -> str:
        return "<" if self.is_descending else ">"


_BY_RATING = TierOrder()
_ORDERS: dict[Sort | None, TierOrder] = {
    "price_asc": TierOrder("price", is_descending=False),
    "price_desc": TierOrder("price"),
    "newest": TierOrder("created_us"),
    "distance": TierOrder(None, is_descending=False),
}


def tier_order(query: ProductQuery) -> TierOrder:
    """Nothing is near without a place."""
    wanted = query.tie_order
    return _BY_RATING if wanted == "distance" and query.origin is None else _ORDERS.get(wanted, _BY_RATING)


def has_rings(query: ProductQuery) -> bool:
    return query.origin is not None and tier_order(query) is _BY_RATING


@dataclass
class RankedList:
    """The list of a query with a text, behind the position `after`."""

    session: Session
    index: TextIndex
    query: ProductQuery
    understood: UnderstoodText
    keys: FilterKeys
    limits: SearchLimits
    after: ListPosition | None = None
    first_tier: int = 0
    end_tier: int | None = None
    # Rings in which few of the best rated pass the filters; None is a list without rings.
    _sparse_rings: set[int | None] = field(default_factory=set)

    def positions(self, missing: int, skip: int) -> Iterator[ListPosition]:
        assert self.understood.text_query
        tiers = match_tiers(self.understood.text_query)[: self.end_tier]
        for tier, match in enumerate(tiers):
            is_elsewhere = match.is_in_earlier_tier or tier < self.first_tier
            if is_elsewhere or (self.after and tier < self.after.tier):
                continue
            rows = self._in_tier(match, self.after if self.after and self.after.tier == tier else None, missing + skip)
            skipped = min(skip, len(rows))
            skip -= skipped
            for product_id, value, ring in rows[skipped:]:
                yield ListPosition(self.understood, product_id, value, tier, self.max_product_id, ring)
            missing -= len(rows) - skipped
            if not missing:
                return

    def _in_tier(self, match: TextMatch, after: ListPosition | None, count: int) -> list[RankedRow]:
        first_ring = None if not self._has_rings else after.ring if after else 0
        if self._is_likely_small(match, count):
            found = self._sorted(match, first_ring, after, count, max_read=self.limits.max_sorted + 1)
            if found is not None:
                return found
        max_looked_at = 0
        if self._order.column:
            max_looked_at = self._max_looked_at(self._narrowed(match, self.query.radius_km), count)
        if not max_looked_at:
            return self._sorted(match, first_ring, after, count) or []
        if self._has_rings:
            return self._ring_by_ring(match, after, count, max_looked_at)
        found = self._walked(match, None, after, count, max_looked_at)
        return (self._sorted(match, None, after, count) or []) if found is None else found

    def _ring_by_ring(
        self, match: TextMatch, after: ListPosition | None, count: int, max_looked_at: int
    ) -> list[RankedRow]:
        assert self.query.origin
        rows: list[RankedRow] = []
        least_function = self.index.least_function
        for ring in range(after.ring if after else 0, LAST_RING + 1):
            start_km, end_km = ring_edges(ring, self.query.radius_km)
            missing = count - len(rows)
            if not missing or (end_km is not None and start_km >= end_km):
                break
            if end_km and not has_suppliers(self.session, least_function, self.query.origin, start_km, end_km):
                continue
            behind = after if after and after.ring == ring else None
            has_cells = self._has_cells(end_km)
            pays = not has_cells or self._max_looked_at(self._narrowed(match, end_km), missing)
            found = self._walked(match, ring, behind, missing, max_looked_at) if pays else None
            if found is None and not has_cells:  # the text index cannot tell this ring from those behind it
                return rows + (self._sorted(match, ring, behind, missing) or [])
            rows += (self._sorted(match, ring, behind, missing, end_km) or []) if found is None else found
        return rows

    def _sorted(
        self,
        match: TextMatch,
        first_ring: int | None,
        after: ListPosition | None,
        count: int,
        end_km: float | None = None,
        max_read: int = NO_LIMIT,
    ) -> list[RankedRow] | None:
        """Reads all of the tier, or what lies from the first ring to `end_km`. Rings are None without an origin.

        None if `max_read` products are not all of them.
        """
        candidates = self._candidates(match, end_km)
        values = {**candidates.values, "max_product_id": self.max_product_id, "count": count}
        order = self._order
        value = f"p.{order.column}" if order.column else candidates.distance_km
        columns, ring, conditions = f"p.product_id, {value} AS value", "0", ["p.product_id <= :max_product_id"]
        behind = [f"({value}, p.product_id) {order.behind} (:after, :after_id)"] if after else []
        if first_ring is not None:
            columns, ring = f"{columns}, {candidates.distance_km} AS km", ring_sql("km")
            if first_ring:
                conditions.append(f"{candidates.distance_km} > {RINGS_KM[first_ring - 1]}")
            if first_ring < LAST_RING and after:
                behind.append(f"{candidates.distance_km} > {RINGS_KM[first_ring]}")
        if after:
            conditions.append(f"({' OR '.join(behind)})")
            values |= {"after": after.value or 0.0, "after_id": after.product_id}
        inner = candidates.select(columns, f"LIMIT {max_read}", *conditions)
        num_read = "0" if max_read == NO_LIMIT else "count(*) OVER ()"
        sql = (
            f"SELECT product_id, value, {ring} AS ring, {num_read} FROM ({inner}) x"
            f" ORDER BY ring, value {order.direction}, product_id {order.direction} LIMIT :count"
        )
        rows = run(self.session, sql, values)
        return None if rows and rows[0][3] == max_read else [row[:3] for row in rows]

    def _walked(
        self, match: TextMatch, ring: int | None, after: ListPosition | None, count: int, max_looked_at: int
    ) -> list[RankedRow] | None:
        """Looks at the first products of a ring, the best rated ones; None if too few of them match."""
        if ring in self._sparse_rings:
            return None
        rows: list[RankedRow] = []
        start = (after.value or 0.0, after.product_id) if after else None
        end = self._end_of_walk(start) if self._is_filtered else None
        num_looked_at, size = 0, count * _FIRST_LOOK
        while True:
            best = self._first_of(ring, start, end, size)
            found = self.index.matching(self.session, match, [product_id for product_id, _ in best]) if best else ()
            rows += [(product_id, rank, ring or 0) for product_id, rank in best if product_id in found]
            if len(rows) >= count:
                return rows[:count]
            if len(best) < size and end is None:
                return rows
            if len(best) < size:
                self._sparse_rings.add(ring)
                return None
            num_looked_at += size
            size = count * num_looked_at // max(1, len(rows)) - num_looked_at + count
            if num_looked_at + size > max_looked_at:
                return None
            product_id, rank = best[-1]
            start = (rank, product_id)

    def _first_of(
        self, ring: int | None, start: tuple[float, int] | None, end: tuple[float, int] | None, size: int
    ) -> Sequence[tuple[int, float]]:
        """Products that pass the filters, whether they match or not."""
        start_km, end_km = (-1.0, None) if ring is None else ring_edges(ring, self.query.radius_km)
        candidates = self._candidates(None, end_km)
        values = {**candidates.values, "max_product_id": self.max_product_id, "size": size}
        conditions = ["p.product_id <= :max_product_id"]
        order = self._order
        before = ">=" if order.is_descending else "<="
        for sign, name, edge in ((order.behind, "start", start), (before, "end", end)):
            if edge:
                conditions.append(f"(p.{order.column}, p.product_id) {sign} (:{name}, :{name}_id)")
                values |= {name: edge[0], f"{name}_id": edge[1]}
        if ring:
            conditions.append(f"{candidates.distance_km} > {start_km}")
        ending = f"ORDER BY p.{order.column} {order.direction}, p.product_id {order.direction} LIMIT :size"
        return run(self.session, candidates.select(f"p.product_id, p.{order.column}", ending, *conditions), values)

    def _end_of_walk(self, start: tuple[float, int] | None) -> tuple[float, int] | None:
        """Where the index of the order is left, at the latest; None: at its end."""
        order, column = self._order, self._order.column
        keyset = f"WHERE ({column}, product_id) {order.behind} (:start, :start_id)" if start else ""
        sql = (
            f"SELECT {column}, product_id FROM product_search {keyset}"
            f" ORDER BY {column} {order.direction}, product_id {order.direction}"
            f" LIMIT 1 OFFSET {self.limits.max_walked}"
        )
        rows = run(self.session, sql, {"start": start[0], "start_id": start[1]} if start else {})
        return next(((rank, product_id) for rank, product_id in rows), None)

    def _is_likely_small(self, match: TextMatch, count: int) -> bool:
        """Whether it pays to read `max_sorted` matches: these may be all. An estimate, as if words met by chance."""
        num_products = max(1, self.max_product_id)
        guess = sum(
            num_products * prod(min(1.0, self._guess(group) / num_products) for group in groups)
            for groups in match.alternatives
        )
        if match.is_head:
            guess = min(guess, sum(self._counts.get(head, 0) for head in match.head_tokens))
        return count <= _MAX_COUNT and guess < self.limits.max_sorted * _LIKELY

    def _guess(self, group: TermGroup) -> float:
        """About so many products match a group, or fewer."""
        counted = sum(min(self._counts.get(word, 0) for word in term.words) for term in group.terms)
        is_unknown = group.category_tokens or any(term.is_prefix for term in group.terms)
        return counted + _SHARE_OF_UNKNOWN * self.max_product_id if is_unknown else counted

    def _max_looked_at(self, match: TextMatch, count: int) -> int:
        """Of how many of the best rated it pays to ask whether they match; 0: sorting all matches is faster."""
        if not self.limits.max_sorted:
            return count * _MAX_LOOKED_AT
        if count > _MAX_COUNT:
            return 0
        num_matches = self.index.estimate(self.session, match, self.limits.max_sorted + 1)
        if num_matches is None:
            return count * _MAX_LOOKED_AT
        if num_matches <= self.limits.max_sorted:
            return 0
        max_looked_at = num_matches // self.index.rows_per_look
        return max_looked_at if count * self.max_product_id < max_looked_at * num_matches else 0

    @cached_property
    def _counts(self) -> dict[str, int]:
        """How many products have each word, and how many names begin with it."""
        groups = self.understood.text_query.groups if self.understood.text_query else ()
        words = {word for group in groups for term in group.terms for word in term.words}
        return document_counts(self.session, [*words, *map(head_token, words)])

    def _candidates(self, match: TextMatch | None, end_km: float | None) -> RowSource:
        radius_km = self.query.radius_km if end_km is None else end_km
        return candidate_query(self.index, self.query, self.keys, match, radius_km, products_first=True)

    def _narrowed(self, match: TextMatch, radius_km: float | None) -> TextMatch:
        return narrowed(match, self.query, self.keys, radius_km)

    def _has_cells(self, end_km: float | None) -> bool:
        origin = self.query.origin
        return origin is not None and end_km is not None and bounding_box(origin, end_km).cell_tokens is not None

    @cached_property
    def _order(self) -> TierOrder:
        return tier_order(self.query)

    @cached_property
    def _has_rings(self) -> bool:
        return has_rings(self.query)

    @cached_property
    def _is_filtered(self) -> bool:
        """Whether few of the best rated products may be in question."""
        return self.query.origin is not None or len(self._candidates(None, None).conditions) > 1

    @cached_property
    def max_product_id(self) -> int:
        """The newest product when the first page was read."""
        if self.after:
            return self.after.max_product_id
        [(product_id,)] = run_once(self.session, MAX_PRODUCT_ID)
        return product_id or 0
