"""Keyset pagination in every sort order. Each order ends with the product id, so it is total."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.orm import Session

from tis.marketplace.search.backends.text_index import RowSource, TextIndex
from tis.marketplace.search.candidates import NO_LIMIT, candidate_query
from tis.marketplace.search.cursor import ListPosition, ResolvedQuery
from tis.marketplace.search.geo_filter import SUPPLIER_PLACES, bounding_box, haversine_sql, origin_values
from tis.marketplace.search.query import ProductQuery, Sort
from tis.marketplace.search.ranking import RankedList
from tis.marketplace.search.ranking_plan import RankingLimits
from tis.marketplace.search.sql import id_list, run
from tis.marketplace.search.text_query import TextMatch, match_tiers

# A search by distance tries growing radii and stops as soon as a page is full.
_RADII_KM = (10.0, 40.0, 160.0, 640.0)
_RADII_WITH_TEXT_KM = (10.0, 40.0)  # so small that the text index filters by grid cell
_HALF_EARTH_KM = 20_100.0
_NUM_NEAREST_SUPPLIERS = 64


@dataclass(frozen=True)
class SortColumn:
    name: str
    is_descending: bool = False


SORT_COLUMNS: dict[Sort | None, SortColumn] = {
    None: SortColumn("p.product_id"),
    "price_asc": SortColumn("p.price"),
    "price_desc": SortColumn("p.price", is_descending=True),
    "rating": SortColumn("p.rating_rank", is_descending=True),
    "newest": SortColumn("p.created_us", is_descending=True),
}
_PAGE = "LIMIT :page OFFSET :skip"


@dataclass(frozen=True)
class KeysetPager:
    """Reads up to `count` positions of one list, after the position `after` or after the first `skip`."""

    session: Session
    index: TextIndex
    query: ProductQuery
    resolved: ResolvedQuery
    ranking: RankingLimits
    count: int
    skip: int = 0
    after: ListPosition | None = None

    def positions(self) -> list[ListPosition]:
        if self.query.sort == "distance":
            return self._by_distance()
        if self.query.sort == "relevance" and self.resolved.text_query:
            return self._by_relevance()
        return self._by_column()

    def ids(self, match: TextMatch, most: int, among: Sequence[int] | None = None) -> list[int]:
        """The newest products that match, within the filters of the query."""
        candidates = self._candidates(match)
        is_among = [] if among is None else [f"{candidates.product_id} IN {id_list(among)}"]
        sql = candidates.select("p.product_id", f"ORDER BY {candidates.product_id} DESC LIMIT :most", *is_among)
        rows = run(self.session, sql, {**candidates.values, "most": most})
        return [product_id for [product_id] in rows]

    def total(self, max_count: int) -> int:
        """The length of the whole list. It stops counting at `max_count`."""
        candidates = self._candidates()
        sql = f"SELECT count(*) FROM ({candidates.select('1', 'LIMIT :max_count')}) x"
        [(total,)] = run(self.session, sql, {**candidates.values, "max_count": max_count})
        return int(total)

    def num_matching_all(self, max_count: int, first_page: Sequence[ListPosition] = ()) -> int:
        """How many products match all words, and are of the kind that these say. It stops at `max_count`.

        A first page tells it mostly; products are counted only if it does not.
        """
        query = self.resolved.text_query
        if first_page and not self.after and not self.skip:
            matching = self._first_stage(first_page)
            if matching is not None and (matching >= max_count or matching < self.count):
                return matching
        if not query or not query.stages:
            return self.total(max_count)
        return len(self.ids(TextMatch(query, stage=query.stages[0]), max_count))

    def _first_stage(self, first_page: Sequence[ListPosition]) -> int | None:
        """How many of the page match all words; None if its order does not tell."""
        query = self.resolved.text_query
        if not query or not query.stages:
            return len(first_page)
        if self.query.sort != "relevance":
            return None
        num_tiers = len(match_tiers(replace(query, stages=query.stages[:1])))
        return sum(position.tier < num_tiers for position in first_page)

    def _candidates(self, match: TextMatch | None = None, radius_km: float | None = None) -> RowSource:
        text_query = self.resolved.text_query
        match = match or (TextMatch(text_query) if text_query else None)
        radius_km = self.query.radius_km if radius_km is None else radius_km
        return candidate_query(self.index, self.query, self.resolved, match, radius_km)

    def _by_column(self) -> list[ListPosition]:
        column, candidates = SORT_COLUMNS.get(self.query.sort, SORT_COLUMNS[None]), self._candidates()
        is_by_id = column.name == "p.product_id"
        direction = "DESC" if column.is_descending else "ASC"
        keyset, values = [], dict(candidates.values)
        if self.after:
            sign = "<" if column.is_descending else ">"
            keyset = [f"({column.name}, p.product_id) {sign} (:after, :after_id)"]
            if is_by_id:
                keyset = ["p.product_id > :after_id"]
            values |= {"after_id": self.after.product_id} | ({} if is_by_id else {"after": self.after.value})
        order = f"p.product_id {direction}" if is_by_id else f"{column.name} {direction}, p.product_id {direction}"
        value = "0" if is_by_id else column.name
        sql = candidates.select(f"p.product_id, {value}", f"ORDER BY {order} {_PAGE}", *keyset)
        return self._read(sql, values, self.count, self.skip)

    def _by_distance(self) -> list[ListPosition]:
        for radius_km in () if self.resolved.product_ids is not None else self._growing_radii():
            positions = self._within(radius_km)
            # Everything outside the radius is farther away than these.
            if len(positions) == self.count:
                return positions
        return self._within(self.query.radius_km)

    def _growing_radii(self) -> Iterator[float]:
        """First the radius of the nearest suppliers, then larger ones, all below the radius of the query."""
        start_km = float(self.after.value or 0) if self.after else 0.0
        for radius_km in _RADII_WITH_TEXT_KM if self.resolved.text_query else _RADII_KM:
            if radius_km > start_km and (self.query.radius_km is None or radius_km < self.query.radius_km):
                nearest_km = self._radius_of_nearest_suppliers(start_km, radius_km)
                yield from [radius_km] if nearest_km is None else [nearest_km, radius_km]
        if not self.resolved.text_query and self.query.radius_km is None:
            yield self._radius_of_nearest_suppliers(start_km, _HALF_EARTH_KM) or _HALF_EARTH_KM

    def _radius_of_nearest_suppliers(self, start_km: float, radius_km: float) -> float | None:
        """None if no more than `_NUM_NEAREST_SUPPLIERS` suppliers are between `start_km` and `radius_km`."""
        assert self.query.origin
        in_box, edges = bounding_box(self.query.origin, radius_km).condition("s")
        values = {**origin_values(self.query.origin), **edges, "start_km": start_km, "end_km": radius_km}
        km = (
            f"SELECT {haversine_sql('s', self.index.least_function)} AS km FROM {SUPPLIER_PLACES}"
            f" WHERE {in_box} LIMIT {NO_LIMIT}"
        )
        nearest = (
            f"SELECT km FROM ({km}) x WHERE km >= :start_km AND km <= :end_km"
            f" ORDER BY km LIMIT 1 OFFSET {_NUM_NEAREST_SUPPLIERS}"
        )
        return next((float(km) for [km] in run(self.session, nearest, values)), None)

    def _within(self, radius_km: float | None) -> list[ListPosition]:
        candidates = self._candidates(radius_km=radius_km)
        values, keyset, min_distance = dict(candidates.values), "", []
        if self.after:
            keyset = "WHERE (km, product_id) > (:after, :after_id)"
            min_distance = [f"{candidates.distance_km} >= :after"]
            values |= {"after": self.after.value or 0.0, "after_id": self.after.product_id}
        inner = candidates.select(f"p.product_id, {candidates.distance_km} AS km", f"LIMIT {NO_LIMIT}", *min_distance)
        sql = f"SELECT product_id, km FROM ({inner}) x {keyset} ORDER BY km, product_id {_PAGE}"
        return self._read(sql, values, self.count, self.skip)

    def _by_relevance(self) -> list[ListPosition]:
        ranked = RankedList(self.session, self.index, self.query, self.resolved, self.ranking, self.after)
        return ranked.positions(self.count, self.skip)

    def _read(self, sql: str, values: dict[str, object], count: int, skip: int) -> list[ListPosition]:
        rows = run(self.session, sql, {**values, "page": count, "skip": skip})
        return [ListPosition(self.resolved, product_id, value) for product_id, value in rows]
