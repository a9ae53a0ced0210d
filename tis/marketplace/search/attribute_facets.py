"""Facets of attributes: of those that most candidates have, how many products each value would leave."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from sqlalchemy.orm import Session

from tis.marketplace.reading.attribute_values import attribute_label
from tis.marketplace.search.query import AttributeFacet, FacetValue, NumberRange, ProductQuery
from tis.marketplace.search.sql import id_list, run

_MAX_NAMES = 10
_MAX_VALUES = 20  # of a name; of more numbers, ranges are counted
_NUM_RANGES = 5
_BATCH_IDS = 1000
_MAX_ROWS = 100_000

# The ids of the candidates of a query, at most the number given.
FindCandidates = Callable[[ProductQuery, int], Sequence[int]]
Number = int | float


@dataclass
class _Values:
    """Of one name. A value is the key of a text or number, and its number."""

    counts: Counter[tuple[str, float | None]] = field(default_factory=Counter)
    examples: dict[str, int] = field(default_factory=dict)  # products with the key

    @property
    def total(self) -> int:
        return self.counts.total()

    @property
    def are_numbers(self) -> bool:
        """Most of them: a seller who writes "none" makes no texts of all."""
        return 2 * sum(number is not None for _, number in self.counts) > len(self.counts)


def attribute_facets(
    session: Session, query: ProductQuery, find: FindCandidates, max_candidates: int
) -> tuple[list[AttributeFacet], bool]:
    """Each facet ignores the filters on its own name; names that are filtered by come first. Whether all are exact."""
    filtered = list(dict.fromkeys(one.name for one in query.attributes))
    found, are_exact = list[tuple[str, _Values]](), True
    for name in filtered:
        others = tuple(one for one in query.attributes if one.name != name)
        ids = find(replace(query, attributes=others), max_candidates + 1)
        values, is_exact = _values(session, ids[:max_candidates], name)
        are_exact &= is_exact and len(ids) <= max_candidates
        found += values.items()
    if len(found) < _MAX_NAMES:
        ids = find(query, max_candidates + 1)
        values, is_exact = _values(session, ids[:max_candidates])
        are_exact &= is_exact and len(ids) <= max_candidates
        others_found = [(name, own) for name, own in values.items() if name not in filtered]
        found += sorted(others_found, key=lambda one: (-one[1].total, one[0]))[: _MAX_NAMES - len(found)]
    return [_facet(session, name, own) for name, own in found], are_exact


def _values(session: Session, ids: Sequence[int], name: str | None = None) -> tuple[dict[str, _Values], bool]:
    """Of one name, or of all; and whether all rows were read."""
    counts: Counter[tuple[str, str, float | None]] = Counter()
    examples: dict[tuple[str, str], int] = {}
    is_exact = True
    of_name, named = ("", {}) if name is None else (" AND name = :name", {"name": name})
    for start in range(0, len(ids), _BATCH_IDS):
        batch = id_list(ids[start : start + _BATCH_IDS])
        sql = f"SELECT name, text_key, number, product_id FROM product_attributes WHERE product_id IN {batch}{of_name}"
        rows = run(session, sql, named)
        counts.update(row[:3] for row in rows)
        examples.update(((own_name, key), product_id) for own_name, key, _, product_id in rows)
        if counts.total() > _MAX_ROWS:
            is_exact = start + _BATCH_IDS >= len(ids)
            break
    of_names: dict[str, _Values] = {}
    for (own_name, key, number), count in counts.items():
        values = of_names.setdefault(own_name, _Values())
        values.counts[key, number] = count
        values.examples[key] = examples[own_name, key]
    return of_names, is_exact


def _facet(session: Session, name: str, values: _Values) -> AttributeFacet:
    label, total = attribute_label(name), values.total
    if not values.are_numbers:
        top = sorted(values.counts.items(), key=lambda one: (-one[1], one[0][0]))[:_MAX_VALUES]
        return AttributeFacet(
            name, label, total, _with_labels(session, name, values, [(key, n) for (key, _), n in top])
        )
    numbers = sorted(((number, key, n) for (key, number), n in values.counts.items() if number is not None))
    least, most = _shown(numbers[0][0]), _shown(numbers[-1][0])
    if len(numbers) > _MAX_VALUES:
        return AttributeFacet(name, label, total, [], least, most, _ranges((number, n) for number, _, n in numbers))
    shown = _with_labels(session, name, values, [(key, n) for _, key, n in numbers])
    return AttributeFacet(name, label, total, shown, least, most)


def _with_labels(session: Session, name: str, values: _Values, top: Iterable[tuple[str, int]]) -> list[FacetValue]:
    """How a seller writes each value."""
    counted = list(top)
    examples = id_list([values.examples[key] for key, _ in counted])
    sql = f"SELECT text_key, label FROM product_attributes WHERE name = :name AND product_id IN {examples}"
    labels = dict(run(session, sql, {"name": name}))
    return [FacetValue(key, labels.get(key, key), count) for key, count in counted]


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


def _shown(number: float) -> Number:
    return int(number) if number.is_integer() and abs(number) <= 2**53 else number
