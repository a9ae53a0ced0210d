"""Where products stand in a list, without reading the list."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from tis.marketplace.search.backends.text_index import TextIndex
from tis.marketplace.search.candidates import candidate_query
from tis.marketplace.search.filter_keys import FilterKeys
from tis.marketplace.search.geo_filter import ring_of
from tis.marketplace.search.query import ProductQuery, Sort
from tis.marketplace.search.ranking import has_rings, tier_order
from tis.marketplace.search.sql import id_list, run
from tis.marketplace.search.text_query import TextMatch, UnderstoodText, match_tiers

# The column, and whether the highest is first. Other lists are sorted by id.
SORT_COLUMNS: dict[Sort | None, tuple[str, bool]] = {
    "price_asc": ("p.price", False),
    "price_desc": ("p.price", True),
    "rating": ("p.rating_rank", True),
    "newest": ("p.created_us", True),
}
PlaceInList = tuple[float, ...]  # sorts as the list does


@dataclass(frozen=True)
class ListOrder:
    session: Session
    index: TextIndex
    query: ProductQuery
    understood: UnderstoodText
    keys: FilterKeys
    max_product_id: int  # newer products are not part of the list

    def places(self, product_ids: Sequence[int]) -> dict[int, PlaceInList]:
        """Of those that are in the list."""
        is_ranked = self.query.sort == "relevance" and self.understood.text_query is not None
        tiers = self.tiers(product_ids) if is_ranked else dict.fromkeys(self._matching(None, product_ids), 0)
        if not tiers:
            return {}
        source = candidate_query(self.index, self.query, self.keys, None, self.query.radius_km, products_first=True)
        km = source.distance_km or "0"
        column, is_descending = SORT_COLUMNS.get(self.query.sort, (km if self.query.sort == "distance" else "0", False))
        if is_ranked:
            order = tier_order(self.query)
            column, is_descending = f"p.{order.column}" if order.column else km, order.is_descending
        is_ringed, sign = is_ranked and has_rings(self.query), -1 if is_descending else 1
        conditions = f"p.product_id IN {id_list(list(tiers))}", f"p.product_id <= {int(self.max_product_id)}"
        sql = source.select(f"p.product_id, {column}, {km}", "", *conditions)
        return {
            one: (tiers[one], ring_of(distance) if is_ringed else 0, sign * value, sign * one)
            for one, value, distance in run(self.session, sql, source.values)
        }

    def tiers(self, product_ids: Sequence[int]) -> dict[int, int]:
        """Of those that match the text."""
        query = self.understood.text_query
        assert query
        rest = set(self._matching(TextMatch(query), product_ids))
        of_stage: dict[int | None, set[int]] = {None: rest}
        tiers: dict[int, int] = {}
        for tier, match in enumerate(match_tiers(query)):
            if match.stage not in of_stage:
                of_stage[match.stage] = set(self._matching(TextMatch(query, stage=match.stage), sorted(rest)))
            among = of_stage[match.stage] - tiers.keys()
            if among and not match.is_in_earlier_tier:
                tiers |= dict.fromkeys(self._matching(match, sorted(among)), tier)
        return tiers

    def _matching(self, match: TextMatch | None, product_ids: Sequence[int]) -> Sequence[int]:
        """None: any words of the query, or none if it has no text."""
        if match is None and self.understood.text_query:
            match = TextMatch(self.understood.text_query)
        if match is None or not product_ids:
            return product_ids
        return sorted(self.index.matching(self.session, match, product_ids))
