"""Keyset pagination in every sort order. Each order ends with the product id, so it is total."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.orm import Session

from tis.marketplace.kit.fields import MAX_ID
from tis.marketplace.search.backends.text_index import RowSource, TextIndex
from tis.marketplace.search.candidates import NO_LIMIT, candidate_query
from tis.marketplace.search.cursor import ListPosition
from tis.marketplace.search.filter_keys import FilterKeys
from tis.marketplace.search.geo_filter import SUPPLIER_PLACES, bounding_box, haversine_sql, origin_values
from tis.marketplace.search.list_order import SORT_COLUMNS, ListOrder, PlaceInList
from tis.marketplace.search.query import ProductQuery, SearchLimits
from tis.marketplace.search.ranking import RankedList
from tis.marketplace.search.sql import id_list, run
from tis.marketplace.search.text_query import TextMatch, UnderstoodText, match_tiers
from tis.marketplace.search.variant_groups import NUM_GROUPED, first_of_groups, has_groups

# A search by distance tries growing radii and stops as soon as a page is full.
_RADII_KM = (10.0, 40.0, 160.0, 640.0)
_RADII_WITH_TEXT_KM = (10.0, 40.0)  # so small that the text index filters by grid cell
_HALF_EARTH_KM = 20_100.0
_NUM_NEAREST_SUPPLIERS = 64
_MORE_ROWS = 4  # times as many, where variants are many
_PAGE = "LIMIT :page OFFSET :skip"


@dataclass(frozen=True)
class KeysetPager:
    """Reads up to `count` positions of one list, after the position `after` or after the first `skip`."""

    session: Session
    index: TextIndex
    query: ProductQuery
    understood: UnderstoodText
    keys: FilterKeys
    limits: SearchLimits
    count: int = 1
    skip: int = 0
    after: ListPosition | None = None
    has_few_matches: bool = False  # of all words

    def positions(self) -> list[ListPosition]:
        """Of a group, only the first one in the whole list, unless the query wants all variants."""
        if not self.is_grouped:
            return self.rows()

        def read(after: ListPosition | None, count: int) -> list[ListPosition]:
            return replace(self, after=after, count=count, skip=0).rows()

        return first_of_groups(self.session, read, self._in_order, self.after, self.skip + self.count)[self.skip :]

    @property
    def is_grouped(self) -> bool:
        return self.query.is_grouped and has_groups(self.session)

    def _in_order(self, product_ids: Sequence[int]) -> list[int]:
        places = self.places(product_ids)
        return sorted(places, key=lambda one: places[one])

    def places(self, product_ids: Sequence[int]) -> dict[int, PlaceInList]:
        """Where those of the products stand that are in the list."""
        newest = self.after.max_product_id if self.after else MAX_ID
        order = ListOrder(self.session, self.index, self.query, self.understood, self.keys, newest)
        return order.places(product_ids)

    def rows(self) -> list[ListPosition]:
        """With all variants."""
        if self.query.sort == "distance":
            return self._by_distance()
        if self.query.sort == "relevance" and self.understood.text_query:
            return list(self.ranked(self.after).positions(self.count, self.skip))
        return self._by_column()

    def ranked(self, after: ListPosition | None, first_tier: int = 0, end_tier: int | None = None) -> RankedList:
        return RankedList(
            self.session,
            self.index,
            self.query,
            self.understood,
            self.keys,
            self.limits,
            after,
            first_tier=first_tier,
            end_tier=end_tier,
        )

    def passing(self, product_ids: Sequence[int]) -> list[tuple[int, int]]:
        """Those that pass the filters, whatever they say, each with the digest of its words."""
        if not product_ids:
            return []
        source = candidate_query(self.index, self.query, self.keys, None, self.query.radius_km, products_first=True)
        sql = source.select("p.product_id, p.words_digest", "", f"p.product_id IN {id_list(product_ids)}")
        return [(product_id, digest) for product_id, digest in run(self.session, sql, source.values)]

    def ids(self, match: TextMatch, most: int, among: Sequence[int] | None = None) -> list[int]:
        """The newest products that match, within the filters of the query."""
        candidates = self._candidates(match)
        is_among = [] if among is None else [f"{candidates.product_id} IN {id_list(among)}"]
        sql = candidates.select("p.product_id", f"ORDER BY {candidates.product_id} DESC LIMIT :most", *is_among)
        rows = run(self.session, sql, {**candidates.values, "most": most})
        return [product_id for [product_id] in rows]

    def tiers_of(self, product_ids: Sequence[int]) -> dict[int, int]:
        """The tier of each product, in a list that is not sorted by it."""
        tiers, rest, text_query = dict[int, int](), set(product_ids), self.understood.text_query
        for tier, match in enumerate(match_tiers(text_query) if text_query else ()):
            if not rest:
                break
            if match.is_in_earlier_tier:
                continue
            found = rest.intersection(self.ids(match, len(rest), sorted(rest)))
            tiers.update(dict.fromkeys(found, tier))
            rest -= found
        return tiers

    def total(self, max_count: int) -> int:
        """The length of the whole list. It stops counting at `max_count`."""
        return self._count(max_count)

    def _count(self, max_count: int, match: TextMatch | None = None) -> int:
        """A group counts once: then as many rows are read as it takes to find so many."""
        candidates = self._candidates(match)
        counted, columns = (NUM_GROUPED, "p.group_id") if self.is_grouped else ("count(*)", "1")
        sql = f"SELECT count(*), {counted} FROM ({candidates.select(columns, 'LIMIT :max_read')}) p"
        max_read = max_count
        while True:
            [(num_read, total)] = run(self.session, sql, {**candidates.values, "max_read": max_read})
            if num_read < max_read or total >= max_count:
                return min(int(total), max_count)
            max_read *= _MORE_ROWS

    def num_matching_all(self, max_count: int, first_page: Sequence[ListPosition] = ()) -> int:
        """How many products match all words, and are of the kind that these say. It stops at `max_count`.

        A first page tells it mostly; products are counted only if it does not.
        """
        query = self.understood.text_query
        stages = query.stages if query else ()
        if first_page and not self.after and not self.skip and (not stages or self.query.sort == "relevance"):
            num_found = len(first_page)
            if query and stages:
                num_tiers = len(match_tiers(replace(query, stages=stages[:1])))
                num_found = sum(position.tier < num_tiers for position in first_page)
            if num_found >= max_count or num_found < self.count:
                return num_found
        if not query or not stages:
            return self._count(max_count)
        return self._count(max_count, TextMatch(query, stage=stages[0]))

    def _candidates(self, match: TextMatch | None = None, radius_km: float | None = None) -> RowSource:
        text_query = self.understood.text_query
        match = match or (TextMatch(text_query) if text_query else None)
        radius_km = self.query.radius_km if radius_km is None else radius_km
        return candidate_query(self.index, self.query, self.keys, match, radius_km)

    def _by_column(self) -> list[ListPosition]:
        column, is_descending = SORT_COLUMNS.get(self.query.sort, ("", False))
        columns = [column, "p.product_id"] if column else ["p.product_id"]
        sign, direction = ("<", "DESC") if is_descending else (">", "ASC")
        candidates, keyset, values = self._candidates(), list[str](), dict[str, object]()
        if self.after:
            keyset = [f"({', '.join(columns)}) {sign} ({':after, ' if column else ''}:after_id)"]
            values = {"after_id": self.after.product_id} | ({"after": self.after.value} if column else {})
        order = ", ".join(f"{one} {direction}" for one in columns)
        sql = candidates.select(f"p.product_id, {column or '0'}", f"ORDER BY {order} {_PAGE}", *keyset)
        return self._read(sql, candidates.values | values)

    def _by_distance(self) -> list[ListPosition]:
        for radius_km in () if self.keys.product_ids is not None else self._growing_radii():
            positions = self._within(radius_km)
            # Everything outside the radius is farther away than these.
            if len(positions) == self.count:
                return positions
        return self._within(self.query.radius_km)

    def _growing_radii(self) -> Iterator[float]:
        """First the radius of the nearest suppliers, then larger ones, all below the radius of the query."""
        start_km = float(self.after.value or 0) if self.after else 0.0
        for radius_km in _RADII_WITH_TEXT_KM if self.understood.text_query else _RADII_KM:
            if radius_km > start_km and (self.query.radius_km is None or radius_km < self.query.radius_km):
                nearest_km = self._radius_of_nearest_suppliers(start_km, radius_km)
                yield from [radius_km] if nearest_km is None else [nearest_km, radius_km]
        if not self.understood.text_query and self.query.radius_km is None:
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
        return self._read(f"SELECT product_id, km FROM ({inner}) x {keyset} ORDER BY km, product_id {_PAGE}", values)

    def _read(self, sql: str, values: dict[str, object]) -> list[ListPosition]:
        rows = run(self.session, sql, {**values, "page": self.count, "skip": self.skip})
        return [ListPosition(self.understood, product_id, value) for product_id, value in rows]
