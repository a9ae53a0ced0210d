"""The order by relevance: the best tier first, in a tier the nearest ring around the buyer, in a ring the best rated.

A query may ask for another order in a tier: the cheapest, the dearest, the newest or the nearest first.

A small tier is read whole and sorted. Of a large one the best rated products are looked through for those that match,
until a page is full. Both ways give the same list, so a page may be read either way.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from sqlalchemy.orm import Session

from tis.marketplace.search.backends.text_index import RowSource, TextIndex
from tis.marketplace.search.candidates import NO_LIMIT, candidate_query, narrowed
from tis.marketplace.search.cursor import ListPosition, ResolvedQuery
from tis.marketplace.search.geo_filter import LAST_RING, RINGS_KM, bounding_box, has_suppliers, ring_edges, ring_sql
from tis.marketplace.search.query import ProductQuery, Sort
from tis.marketplace.search.ranking_plan import RankingLimits, RankingPlanner
from tis.marketplace.search.sql import run
from tis.marketplace.search.text_query import TextMatch, match_tiers

_FIRST_LOOK = 4  # so many products are looked at for each that is wanted

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


@dataclass
class RankedList:
    """The list of a query with a text, behind the position `after`."""

    session: Session
    index: TextIndex
    query: ProductQuery
    resolved: ResolvedQuery
    limits: RankingLimits
    after: ListPosition | None = None
    # Rings in which few of the best rated pass the filters; None is a list without rings.
    _sparse_rings: set[int | None] = field(default_factory=set)

    def positions(self, count: int, skip: int) -> list[ListPosition]:
        return list(self._positions(count, skip))

    def _positions(self, missing: int, skip: int) -> Iterator[ListPosition]:
        assert self.resolved.text_query
        for tier, match in enumerate(match_tiers(self.resolved.text_query)):
            if self.after and tier < self.after.tier:
                continue
            rows = self._in_tier(match, self.after if self.after and self.after.tier == tier else None, missing + skip)
            skipped = min(skip, len(rows))
            skip -= skipped
            for product_id, value, ring in rows[skipped:]:
                yield ListPosition(self.resolved, product_id, value, tier, self._max_product_id, ring)
            missing -= len(rows) - skipped
            if not missing:
                return

    def _in_tier(self, match: TextMatch, after: ListPosition | None, count: int) -> list[RankedRow]:
        first_ring = None if not self._has_rings else after.ring if after else 0
        if self._planner.is_likely_small(match, count):
            found = self._sorted(match, first_ring, after, count, max_read=self.limits.max_sorted + 1)
            if found is not None:
                return found
        max_looked_at = 0
        if self._order.column:
            max_looked_at = self._planner.max_looked_at(self._narrowed(match, self.query.radius_km), count)
        if not max_looked_at:
            return self._all_sorted(match, first_ring, after, count)
        if self._has_rings:
            return self._ring_by_ring(match, after, count, max_looked_at)
        found = self._walked(match, None, after, count, max_looked_at)
        return self._all_sorted(match, None, after, count) if found is None else found

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
            pays = not has_cells or self._planner.max_looked_at(self._narrowed(match, end_km), missing)
            found = self._walked(match, ring, behind, missing, max_looked_at) if pays else None
            if found is None and not has_cells:  # the text index cannot tell this ring from those behind it
                return rows + self._all_sorted(match, ring, behind, missing)
            rows += self._all_sorted(match, ring, behind, missing, end_km) if found is None else found
        return rows

    def _all_sorted(
        self,
        match: TextMatch,
        first_ring: int | None,
        after: ListPosition | None,
        count: int,
        end_km: float | None = None,
    ) -> list[RankedRow]:
        return self._sorted(match, first_ring, after, count, end_km) or []

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
        values = {**candidates.values, "max_product_id": self._max_product_id, "count": count}
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
        values = {**candidates.values, "max_product_id": self._max_product_id, "size": size}
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

    def _candidates(self, match: TextMatch | None, end_km: float | None) -> RowSource:
        radius_km = self.query.radius_km if end_km is None else end_km
        return candidate_query(self.index, self.query, self.resolved, match, radius_km, products_first=True)

    def _narrowed(self, match: TextMatch, radius_km: float | None) -> TextMatch:
        return narrowed(match, self.query, self.resolved, radius_km)

    def _has_cells(self, end_km: float | None) -> bool:
        origin = self.query.origin
        return origin is not None and end_km is not None and bounding_box(origin, end_km).cell_tokens is not None

    @cached_property
    def _order(self) -> TierOrder:
        """Nothing is near without a place."""
        wanted = self.query.tie_order
        return _BY_RATING if wanted == "distance" and self.query.origin is None else _ORDERS.get(wanted, _BY_RATING)

    @cached_property
    def _has_rings(self) -> bool:
        return self.query.origin is not None and self._order is _BY_RATING

    @cached_property
    def _planner(self) -> RankingPlanner:
        assert self.resolved.text_query
        text_query = self.resolved.text_query
        return RankingPlanner(self.session, self.index, text_query, self.limits, self._max_product_id)

    @cached_property
    def _is_filtered(self) -> bool:
        """Whether few of the best rated products may be in question."""
        return self.query.origin is not None or len(self._candidates(None, None).conditions) > 1

    @cached_property
    def _max_product_id(self) -> int:
        """The newest product when the first page was read."""
        if self.after:
            return self.after.max_product_id
        [(product_id,)] = run(self.session, "SELECT max(product_id) FROM product_search")
        return product_id or 0
