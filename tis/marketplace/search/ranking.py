"""The order by relevance: the best tier first, in a tier the nearest ring around the buyer, in a ring the best rated.

A small tier is read whole and sorted. Of a large one the best rated products are looked through for those that match,
until a page is full. Both ways give the same list, so a page may be read either way.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from sqlalchemy.orm import Session

from tis.marketplace.search.backends.text_index import TextIndex
from tis.marketplace.search.candidates import NO_LIMIT, CandidateQuery, candidate_query, narrowed
from tis.marketplace.search.cursor import ListPosition, ResolvedQuery
from tis.marketplace.search.geo_filter import bounding_box
from tis.marketplace.search.query import ProductQuery
from tis.marketplace.search.ranking_plan import RankingLimits, RankingPlanner
from tis.marketplace.search.rings import LAST_RING, RINGS_KM, has_suppliers, ring_edges, ring_sql
from tis.marketplace.search.sql import run
from tis.marketplace.search.text_query import TextMatch, match_tiers

_FIRST_LOOK = 4  # so many products are looked at for each that is wanted

RankedRow = tuple[int, float, int]  # product_id, rating_rank, ring


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
            for product_id, rating_rank, ring in rows[skipped:]:
                yield ListPosition(self.resolved, product_id, rating_rank, tier, self._max_product_id, ring)
            missing -= len(rows) - skipped
            if not missing:
                return

    def _in_tier(self, match: TextMatch, after: ListPosition | None, count: int) -> list[RankedRow]:
        first_ring = None if self.query.origin is None else after.ring if after else 0
        if self._planner.is_likely_small(match, count):
            found = self._sorted(match, first_ring, after, count, max_read=self.limits.max_sorted + 1)
            if found is not None:
                return found
        max_looked_at = self._planner.max_looked_at(self._narrowed(match, self.query.radius_km), count)
        if not max_looked_at:
            return self._all_sorted(match, first_ring, after, count)
        if self.query.origin:
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
        columns, ring, conditions = "p.product_id, p.rating_rank", "0", ["p.product_id <= :max_product_id"]
        behind = ["(p.rating_rank, p.product_id) < (:after, :after_id)"] if after else []
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
            f"{candidates.with_clause}SELECT product_id, rating_rank, {ring} AS ring, {num_read} FROM ({inner}) x"
            " ORDER BY ring, rating_rank DESC, product_id DESC LIMIT :count"
        )
        rows = run(self.session, sql, values)
        return None if rows and rows[0][3] == max_read else [row[:3] for row in rows]

    def _walked(
        self, match: TextMatch, ring: int | None, after: ListPosition | None, count: int, max_looked_at: int
    ) -> list[RankedRow] | None:
        """Looks at the best rated products of a ring; None if too few of them match."""
        if ring in self._sparse_rings:
            return None
        rows: list[RankedRow] = []
        start = (after.value or 0.0, after.product_id) if after else None
        end = self._end_of_walk(start) if self._is_filtered else None
        num_looked_at, size = 0, count * _FIRST_LOOK
        while True:
            best = self._best_rated(ring, start, end, size)
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

    def _best_rated(
        self, ring: int | None, start: tuple[float, int] | None, end: tuple[float, int] | None, size: int
    ) -> Sequence[tuple[int, float]]:
        """Products that pass the filters, whether they match or not."""
        start_km, end_km = (-1.0, None) if ring is None else ring_edges(ring, self.query.radius_km)
        candidates = self._candidates(None, end_km)
        values = {**candidates.values, "max_product_id": self._max_product_id, "size": size}
        conditions = ["p.product_id <= :max_product_id"]
        for sign, name, edge in (("<", "start", start), (">=", "end", end)):
            if edge:
                conditions.append(f"(p.rating_rank, p.product_id) {sign} (:{name}, :{name}_id)")
                values |= {name: edge[0], f"{name}_id": edge[1]}
        if ring:
            conditions.append(f"{candidates.distance_km} > {start_km}")
        order = "ORDER BY p.rating_rank DESC, p.product_id DESC LIMIT :size"
        return run(self.session, candidates.select("p.product_id, p.rating_rank", order, *conditions), values)

    def _end_of_walk(self, start: tuple[float, int] | None) -> tuple[float, int] | None:
        """Where the index of ratings is left, at the latest; None: at its end."""
        keyset = "WHERE (rating_rank, product_id) < (:start, :start_id)" if start else ""
        sql = (
            f"SELECT rating_rank, product_id FROM product_search {keyset}"
            f" ORDER BY rating_rank DESC, product_id DESC LIMIT 1 OFFSET {self.limits.max_walked}"
        )
        rows = run(self.session, sql, {"start": start[0], "start_id": start[1]} if start else {})
        return next(((rank, product_id) for rank, product_id in rows), None)

    def _candidates(self, match: TextMatch | None, end_km: float | None) -> CandidateQuery:
        radius_km = self.query.radius_km if end_km is None else end_km
        return candidate_query(self.index, self.query, self.resolved, match, radius_km, products_first=True)

    def _narrowed(self, match: TextMatch, radius_km: float | None) -> TextMatch:
        return narrowed(match, self.query, self.resolved, radius_km)

    def _has_cells(self, end_km: float | None) -> bool:
        origin = self.query.origin
        return origin is not None and end_km is not None and bounding_box(origin, end_km).cell_tokens is not None

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
