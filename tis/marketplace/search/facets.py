"""Facets: how many products each value of a filter would leave."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy.orm import Session

from tis.marketplace.reading.attribute_values import attribute_label
from tis.marketplace.reading.vocabulary import Vocabulary
from tis.marketplace.search.backends.text_index import RowSource
from tis.marketplace.search.candidates import candidate_query, filter_conditions
from tis.marketplace.search.filter_keys import CategoryCounts, FilterKeys, categories_of_groups
from tis.marketplace.search.keyset_paging import KeysetPager
from tis.marketplace.search.query import (
    AttributeFacet,
    FacetCounts,
    FacetName,
    Facets,
    FacetValue,
    NumberRange,
    PriceRange,
    ProductQuery,
)
from tis.marketplace.search.sql import id_list, run
from tis.marketplace.search.text_query import TextMatch
from tis.marketplace.search.variant_groups import NUM_GROUPED

_MAX_VALUES = 50
_PRICE_EDGES = (0, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 20_000_000)
_COLUMNS: dict[FacetName, str] = {
    "category": "p.category_key",
    "brand": "p.brand_key",
    "city": "p.city_key",
    "price": "p.price",
}
_RANGES = " ".join(f"WHEN p.price < {edge} THEN '{number}'" for number, edge in enumerate(_PRICE_EDGES[1:]))
_VALUES = _COLUMNS | {"price": f"CASE {_RANGES} ELSE '{len(_PRICE_EDGES) - 1}' END"}
_LABEL_COLUMNS: dict[FacetName, str] = {"category": "p.category", "brand": "p.brand", "city": "s.city"}
_FIELDS: dict[FacetName, dict[str, Any]] = {
    "category": {"category": None},
    "brand": {"brand": None, "brands": ()},
    "city": {"city": None, "cities": ()},
    "price": {"min_price": None, "max_price": None},
}
_MAX_NAMES = 10
_MAX_VALUES_OF_NAME = 20  # of more numbers, ranges are counted
_NUM_RANGES = 5
_SPLIT = "split"
_SPLIT_GROUPS = (
    "p.group_id IN (SELECT p.group_id FROM counted p WHERE p.group_id IS NOT NULL AND {where}"
    " GROUP BY p.group_id HAVING min(p.category_key) <> max(p.category_key))"
)

Value = tuple[str, float | None]  # the key of a text or number, and its number
Values = dict[Value, dict[str, int]]  # of one name: products by how their sellers write it
# A value, how many products have it, and the id of one that has.
ValueCount = tuple[str, int, int]


@dataclass
class ValuesOfName:
    """A group of variants counts once in each value that it has, and once in the total."""

    values: Values = field(default_factory=dict)
    total: int = 0

    def add(self, value: Value, label: str, count: int) -> None:
        labels = self.values.setdefault(value, {})
        labels[label] = labels.get(label, 0) + count


@dataclass(frozen=True)
class FacetCounter:
    """Counts at most `max_faceted` candidates of the list of a pager, and each of them once for all facets."""

    pager: KeysetPager
    categories: Vocabulary
    keys_of: Callable[[ProductQuery], FilterKeys]

    def count(self, names: Collection[FacetName]) -> FacetCounts:
        """Each facet ignores the filter of its own name.

        A text is matched once, without the filters of all these facets. Without a text, an index finds the candidates,
        so a facet with a filter has a statement of its own without that filter.
        """
        requested = list(dict.fromkeys(names))
        query, text_query = self.pager.query, self.pager.understood.text_query
        if text_query and not text_query.groups:
            return FacetCounts({name: [] for name in requested})
        of_columns: list[FacetName] = [name for name in requested if name != "attributes"]
        filtered = [name for name in of_columns if replace(query, **_FIELDS[name]) != query]
        passes = [[name] for name in filtered] + [[one for one in of_columns if one not in filtered]]
        facets: Facets = {}
        are_exact = True
        for group in [of_columns] if text_query else passes:
            if group:
                counts, is_exact = self._counted(group, [name for name in filtered if name in group])
                facets |= {name: self._facet(name, counts[name]) for name in group}
                are_exact &= is_exact
        if "attributes" in requested:
            facets["attributes"], is_exact = self._of_attributes()
            are_exact &= is_exact
        return FacetCounts({name: facets[name] for name in requested}, are_exact)

    def _counted(
        self, names: Sequence[FacetName], filtered: Sequence[FacetName]
    ) -> tuple[dict[FacetName, list[ValueCount]], bool]:
        """In one statement: candidates without the filters of these facets, and each facet with those of the others."""
        query = self.pager.query
        own = list(filter_conditions(query, self.pager.keys, "own_"))
        for name in filtered:
            query = replace(query, **_FIELDS[name])
        candidates, is_grouped = self._candidates(query), self.pager.is_grouped
        columns = ", ".join(
            ["p.product_id", *(["p.group_id"] if is_grouped else []), *(_COLUMNS[name] for name in names)]
        )
        values: dict[str, object] = {**candidates.values, "max_rows": self.pager.limits.max_faceted}
        parts = ["SELECT '', NULL, count(*), 0 FROM counted"]
        for name in names:
            others = [one for one in own if one[0] in filtered and one[0] != name]
            where = " AND ".join(sql for _, sql, _ in others) or "1 = 1"
            values |= {key: value for _, _, named in others for key, value in named.items()}
            counted = NUM_GROUPED if is_grouped else "count(*)"
            columns_of_facet = f"'{name}', {_VALUES[name]}, {counted}, max(p.product_id)"
            parts.append(f"SELECT {columns_of_facet} FROM counted p WHERE {where} GROUP BY 2")
            if is_grouped and name == "category":
                split = _SPLIT_GROUPS.format(where=where)
                parts.append(
                    f"SELECT '{_SPLIT}', p.category_key, p.group_id, 0 FROM counted p WHERE {where} AND {split}"
                )
        sql = f"WITH counted AS ({candidates.select(columns, 'LIMIT :max_rows')}) {' UNION ALL '.join(parts)}"
        counts: dict[FacetName, list[ValueCount]] = {name: [] for name in names}
        split_groups: list[tuple[str, int]] = []
        total = 0
        for name, value, count, example in run(self.pager.session, sql, values):
            if not name:
                total = count
            elif name == _SPLIT:
                split_groups.append((value, count))
            elif value is not None:
                counts[name].append((value, count, example))
        if "category" in counts:
            counts["category"] = _merge_categories(self.categories, counts["category"], split_groups)
        return counts, total < self.pager.limits.max_faceted

    def _of_attributes(self) -> tuple[list[AttributeFacet], bool]:
        """Each facet ignores the filters on its own name; names that are filtered by come first."""
        asked = self.pager.query.attributes
        filtered = list(dict.fromkeys(one.name for one in asked))
        facets, are_exact = list[AttributeFacet](), True
        for name in filtered:
            others = tuple(one for one in asked if one.name != name)
            of_names, is_exact = self._attribute_values(replace(self.pager.query, attributes=others))
            are_exact &= is_exact
            facets += [_attribute_facet(name, of_names[name])] if name in of_names else []
        if len(facets) < _MAX_NAMES:
            of_names, is_exact = self._attribute_values(self.pager.query)
            are_exact &= is_exact
            others_first = sorted((-values.total, name) for name, values in of_names.items() if name not in filtered)
            facets += (_attribute_facet(name, of_names[name]) for _, name in others_first[: _MAX_NAMES - len(facets)])
        return facets, are_exact

    def _attribute_values(self, query: ProductQuery) -> tuple[dict[str, ValuesOfName], bool]:
        """Of the candidates, by the names of attributes; whether these are all candidates."""
        candidates, most = self._candidates(query), self.pager.limits.max_faceted_with_attributes
        group = "p.group_id" if self.pager.is_grouped else "NULL"
        sql = candidates.select(f"p.attributes, {group}", "LIMIT :max_rows")
        rows = run(self.pager.session, sql, {**candidates.values, "max_rows": most + 1})
        return _values(rows[:most]), len(rows) <= most

    def _candidates(self, query: ProductQuery) -> RowSource:
        pager, text_query = self.pager, self.pager.understood.text_query
        keys = pager.keys if query is pager.query else self.keys_of(query)
        match = TextMatch(text_query) if text_query else None
        return candidate_query(pager.index, query, keys, match, query.radius_km, stops_early=True)

    def _facet(self, name: FacetName, counts: Sequence[ValueCount]) -> list[FacetValue] | list[PriceRange]:
        if name == "price":
            return _price_ranges({int(number): count for number, count, _ in counts})
        top = sorted(counts, key=lambda value_count: (-value_count[1], value_count[0]))[:_MAX_VALUES]
        labels = _labels(self.pager.session, name, [example for _, _, example in top])
        return [FacetValue(value, labels.get(example) or value, count) for value, count, example in top]


def _merge_categories(
    categories: Vocabulary, counts: Iterable[ValueCount], split_groups: Iterable[tuple[str, int]]
) -> list[ValueCount]:
    """Counts a category under all its names together with its descendants, as the filter `category` finds them."""
    of_key = {key: (count, example) for key, count, example in counts}
    counted = CategoryCounts({key: count for key, (count, _) in of_key.items()}, categories_of_groups(split_groups))
    values: dict[str, int] = {}
    for key, (_, example) in of_key.items():
        for slug in categories.slugs_named(key) or {key}:
            values.setdefault(slug, example)
    return [(value, counted.of_any(categories.keys_below(value)), example) for value, example in values.items()]


def _labels(session: Session, name: FacetName, product_ids: Sequence[int]) -> dict[int, str]:
    """How the sellers of these products write the value."""
    if not product_ids:
        return {}
    sql = f"SELECT p.id, {_LABEL_COLUMNS[name]} FROM products p JOIN suppliers s ON s.id = p.supplier_id"
    return dict(run(session, f"{sql} WHERE p.id IN {id_list(product_ids)}"))


def _price_ranges(counts: Mapping[int, int]) -> list[PriceRange]:
    last_prices = (*(edge - 1 for edge in _PRICE_EDGES[1:]), None)
    return [PriceRange(_PRICE_EDGES[number], last_prices[number], counts[number]) for number in sorted(counts)]


def _values(rows: Iterable[tuple[str | None, int | None]]) -> dict[str, ValuesOfName]:
    """By the names of attributes. Products say the same lines again and again, so each is taken apart once.

    A row has the lines of a product and its group, of which each value counts once.
    """
    alone, of_groups = list[str](), dict[int, set[str]]()
    for text, group_id in rows:
        if text and group_id is None:
            alone.append(text)
        elif text and group_id is not None:
            of_groups.setdefault(group_id, set()).update(text.split("\n"))
    found: dict[str, ValuesOfName] = {}
    for line, count in Counter("\n".join(alone).split("\n")).items():
        if line:
            name, value, label = _parts(line)
            found.setdefault(name, ValuesOfName()).add(value, label, count)
            found[name].total += count
    for lines in of_groups.values():
        labels = {(name, value): label for name, value, label in map(_parts, sorted(lines))}
        for (name, value), label in labels.items():
            found.setdefault(name, ValuesOfName()).add(value, label, 1)
        for name in {name for name, _ in labels}:
            found[name].total += 1
    return found


def _parts(line: str) -> tuple[str, Value, str]:
    name, number, key, label = line.split("\t")
    return name, (key, None if number == "None" else float(number)), label


def _attribute_facet(name: str, found: ValuesOfName) -> AttributeFacet:
    values, total = found.values, found.total
    counts = [(key, number, sum(labels.values())) for (key, number), labels in values.items()]
    label = attribute_label(name)
    # Most of them: a seller who writes "none" makes no texts of all.
    if 2 * sum(number is not None for _, number, _ in counts) <= len(counts):
        top = sorted(counts, key=lambda one: (-one[2], one[0]))[:_MAX_VALUES_OF_NAME]
        return AttributeFacet(name, label, total, _with_labels(values, top))
    numbers = sorted((number, key, count) for key, number, count in counts if number is not None)
    least, most = _shown(numbers[0][0]), _shown(numbers[-1][0])
    if len(numbers) > _MAX_VALUES_OF_NAME:
        return AttributeFacet(name, label, total, [], least, most, _ranges((number, n) for number, _, n in numbers))
    shown = _with_labels(values, [(key, number, count) for number, key, count in numbers])
    return AttributeFacet(name, label, total, shown, least, most)


def _with_labels(values: Values, counts: Iterable[tuple[str, float | None, int]]) -> list[FacetValue]:
    """As most sellers write each."""
    shown: list[FacetValue] = []
    for key, number, count in counts:
        labels = values[key, number]
        shown.append(FacetValue(key, min(labels, key=lambda label: (-labels[label], label)), count))
    return shown


def _ranges(counted: Iterable[tuple[float, int]]) -> list[NumberRange]:
    """With about as many products each, and both ends included."""
    ordered = list(counted)
    total, below = sum(count for _, count in ordered), 0
    parts: dict[int, list[tuple[float, int]]] = {}
    last: float | None = None
    part = 0
    for number, count in ordered:
        if number != last:  # several keys may be one number
            part = below * _NUM_RANGES // total
        parts.setdefault(part, []).append((number, count))
        below, last = below + count, number
    return [
        NumberRange(_shown(part[0][0]), _shown(part[-1][0]), sum(count for _, count in part)) for part in parts.values()
    ]


def _shown(number: float) -> int | float:
    return int(number) if number.is_integer() and abs(number) <= 2**53 else number
