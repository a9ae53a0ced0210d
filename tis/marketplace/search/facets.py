"""Facets: how many products each value of a filter would leave."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import compress
from typing import Any

from sqlalchemy.orm import Session

from tis.marketplace.kit.fields import key_of
from tis.marketplace.reading.vocabulary import Vocabulary
from tis.marketplace.search.attribute_facets import attribute_facets
from tis.marketplace.search.backends.text_index import TextIndex
from tis.marketplace.search.candidates import candidate_query
from tis.marketplace.search.city_filter import any_city_test
from tis.marketplace.search.cursor import ResolvedQuery
from tis.marketplace.search.query import (
    AttributeFacet,
    FacetCounts,
    FacetName,
    Facets,
    FacetValue,
    PriceRange,
    ProductQuery,
)
from tis.marketplace.search.sql import id_list, run
from tis.marketplace.search.text_query import TextMatch
from tis.marketplace.tables import MAX_RUPIAH

_MAX_VALUES = 50
_PRICE_EDGES = (0, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 20_000_000)
_COLUMNS: dict[FacetName, str] = {
    "category": "p.category_key",
    "brand": "p.brand_key",
    "city": "p.city_key",
    "price": "p.price",
    "attributes": "p.attributes",
}
_LABEL_COLUMNS: dict[FacetName, str] = {"category": "p.category", "brand": "p.brand", "city": "s.city"}

# A value, how many products have it, and the id of one that has.
ValueCount = tuple[Any, int, int]
Filter = Callable[[Any], bool]


@dataclass(frozen=True)
class FacetCounter:
    """Reads at most `max_rows` candidates per pass, and each of them once for all facets."""

    session: Session
    index: TextIndex
    categories: Vocabulary
    max_rows: int
    max_rows_with_attributes: int
    resolve: Callable[[ProductQuery, ResolvedQuery], ResolvedQuery]  # the keys of the filters of another query

    def count(self, query: ProductQuery, resolved: ResolvedQuery, names: Collection[FacetName]) -> FacetCounts:
        """Each facet ignores the filter of its own name.

        A text is matched once, without the filters of all these facets, which Python applies. Without a text, an index
        finds the candidates, so a facet with a filter has a pass of its own without that filter.
        """
        requested = list(dict.fromkeys(names))
        match = TextMatch(resolved.text_query) if resolved.text_query and resolved.text_query.groups else None
        if query.text is not None and not match:
            return FacetCounts({name: [] for name in requested})
        filters = {name: test for name in requested if (test := _own_filter(query, resolved, name))}
        of_columns: list[FacetName] = [name for name in requested if name != "attributes"]
        passes = (
            [of_columns]
            if match
            else [[name] for name in filters] + [[one for one in of_columns if one not in filters]]
        )
        facets: Facets = {}
        are_exact = True
        for group in filter(None, passes):
            own = {name: test for name, test in filters.items() if name in group}
            if len(group) == 1:
                [name] = group
                of_name, is_exact = self._counted_by_database(_without_filters(query, own), resolved, match, name)
                facets[name] = self._facet(name, [one for one in of_name if one[0] is not None])
                are_exact &= is_exact
                continue
            rows = self._read(_without_filters(query, own), resolved, match, group, self.max_rows + 1)
            are_exact &= len(rows) <= self.max_rows
            for name, counts in _count(rows[: self.max_rows], group, own).items():
                facets[name] = self._facet(name, counts)
        if "attributes" in requested:
            facets["attributes"], is_exact = self._of_attributes(query, resolved, match)
            are_exact &= is_exact
        return FacetCounts({name: facets[name] for name in requested}, are_exact)

    def _counted_by_database(
        self, query: ProductQuery, resolved: ResolvedQuery, match: TextMatch | None, name: FacetName
    ) -> tuple[list[ValueCount], bool]:
        """Of a single facet, which no other filters: this takes half as long as reading the rows."""
        candidates = candidate_query(self.index, query, self.resolve(query, resolved), match, query.radius_km)
        some = candidates.select(f"p.product_id AS id, {_COLUMNS[name]} AS value", "LIMIT :max_rows")
        sql = f"SELECT value, count(*), max(id) FROM ({some}) x GROUP BY value"
        sql += " ORDER BY count(*) DESC"
        rows = run(self.session, sql, {**candidates.values, "max_rows": self.max_rows + 1})
        counted = [(value, count, example) for value, count, example in rows]
        is_exact = sum(count for _, count, _ in counted) <= self.max_rows
        if not is_exact:  # the last candidate only shows that there are more
            value, count, example = counted[0]
            counted[0] = (value, count - 1, example)
        return counted, is_exact

    def _of_attributes(
        self, query: ProductQuery, resolved: ResolvedQuery, match: TextMatch | None
    ) -> tuple[list[AttributeFacet], bool]:
        def find(some: ProductQuery, most: int) -> list[str | None]:
            return [text for _, text in self._read(some, resolved, match, ["attributes"], most)]

        return attribute_facets(query, find, self.max_rows_with_attributes)

    def _read(
        self,
        query: ProductQuery,
        resolved: ResolvedQuery,
        match: TextMatch | None,
        names: Sequence[FacetName],
        most: int,
    ) -> Sequence[tuple[Any, ...]]:
        candidates = candidate_query(self.index, query, self.resolve(query, resolved), match, query.radius_km)
        columns = ", ".join(["p.product_id", *(_COLUMNS[name] for name in names)])
        sql = candidates.select(columns, "LIMIT :max_rows")
        return run(self.session, sql, {**candidates.values, "max_rows": most})

    def _facet(self, name: FacetName, counts: Iterable[ValueCount]) -> list[FacetValue] | list[PriceRange]:
        if name == "price":
            return _price_ranges([(int(price), count) for price, count, _ in counts])
        if name == "category":
            counts = _merge_categories(self.categories, counts)
        top = sorted(counts, key=lambda value_count: (-value_count[1], value_count[0]))[:_MAX_VALUES]
        labels = _labels(self.session, name, [example for _, _, example in top])
        return [FacetValue(value, labels.get(example) or value, count) for value, count, example in top]


def _own_filter(query: ProductQuery, resolved: ResolvedQuery, name: FacetName) -> Filter | None:
    """The filter of this name, on a value of the facet; None if the query has none."""
    if name == "category" and query.category is not None:
        return set(resolved.categories or ()).__contains__
    if name == "brand" and query.any_brand:
        return {key_of(brand) for brand in query.any_brand}.__contains__
    if name == "city" and query.any_city:
        return cache(any_city_test(query.any_city))
    if name == "price" and (query.min_price, query.max_price) != (None, None):
        least, most = query.min_price or 0, query.max_price or MAX_RUPIAH
        return lambda price: least <= price <= most
    return None


def _without_filters(query: ProductQuery, names: Iterable[FacetName]) -> ProductQuery:
    for name in names:
        if name == "category":
            query = replace(query, category=None)
        elif name == "brand":
            query = replace(query, brand=None, brands=())
        elif name == "city":
            query = replace(query, city=None, cities=())
        else:
            query = replace(query, min_price=None, max_price=None)
    return query


def _count(
    rows: Sequence[tuple[Any, ...]], names: Sequence[FacetName], filters: Mapping[FacetName, Filter]
) -> dict[FacetName, list[ValueCount]]:
    """Counts for each facet the rows that pass the filters of all others."""
    ids, *values_of = zip(*rows, strict=True) if rows else ((), *(() for _ in names))
    values = dict(zip(names, values_of, strict=True))
    passed = {name: [test(value) for value in values[name]] for name, test in filters.items()}
    counts: dict[FacetName, list[ValueCount]] = {}
    for name in names:
        own_values, own_ids = values[name], ids
        if others := [flags for other, flags in passed.items() if other != name]:
            is_counted = list(map(all, zip(*others, strict=True)))
            own_values, own_ids = (tuple(compress(column, is_counted)) for column in (own_values, own_ids))
        example: dict[Any, int] = dict(zip(own_values, own_ids, strict=True))
        found: Counter[Any] = Counter(own_values)
        counts[name] = [(value, count, example[value]) for value, count in found.items() if value is not None]
    return counts


def _merge_categories(categories: Vocabulary, counts: Iterable[ValueCount]) -> list[ValueCount]:
    """Counts a category under all its names together with its descendants, as the filter `category` finds them."""
    of_key = {key: (count, example) for key, count, example in counts}
    values: dict[str, int] = {}
    for key, (_, example) in of_key.items():
        for slug in categories.slugs_named(key) or {key}:
            values.setdefault(slug, example)
    return [
        (value, sum(of_key[key][0] for key in categories.keys_below(value) if key in of_key), example)
        for value, example in values.items()
    ]


def _labels(session: Session, name: FacetName, product_ids: Sequence[int]) -> dict[int, str]:
    """How the sellers of these products write the value."""
    if not product_ids:
        return {}
    sql = f"SELECT p.id, {_LABEL_COLUMNS[name]} FROM products p JOIN suppliers s ON s.id = p.supplier_id"
    return dict(run(session, f"{sql} WHERE p.id IN {id_list(product_ids)}"))


def _price_ranges(prices: Iterable[tuple[int, int]]) -> list[PriceRange]:
    counts: Counter[int] = Counter()
    for price, count in prices:
        counts[bisect_right(_PRICE_EDGES, price) - 1] += count
    last_prices = (*(edge - 1 for edge in _PRICE_EDGES[1:]), None)
    return [PriceRange(_PRICE_EDGES[number], last_prices[number], counts[number]) for number in sorted(counts)]
