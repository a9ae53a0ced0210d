"""Facets of attributes: of those that most candidates have, how many products each value would leave."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from tis.marketplace.reading.attribute_values import attribute_label
from tis.marketplace.search.query import AttributeFacet, FacetValue, NumberRange, ProductQuery

_MAX_NAMES = 10
_MAX_VALUES = 20  # of a name; of more numbers, ranges are counted
_NUM_RANGES = 5

# The column `attributes` of the candidates of a query, at most the number given.
FindAttributes = Callable[[ProductQuery, int], Sequence[str | None]]
Number = int | float
# Of one name: a value is the key of a text or number, and its number; with products by how their sellers write it.
Values = dict[tuple[str, float | None], dict[str, int]]


def attribute_facets(query: ProductQuery, find: FindAttributes, most: int) -> tuple[list[AttributeFacet], bool]:
    """Each facet ignores the filters on its own name; names that are filtered by come first. Whether all are exact."""
    filtered = list(dict.fromkeys(one.name for one in query.attributes))
    facets, are_exact = list[AttributeFacet](), True
    for name in filtered:
        texts = find(replace(query, attributes=tuple(one for one in query.attributes if one.name != name)), most + 1)
        are_exact &= len(texts) <= most
        if values := _values(texts[:most]).get(name):
            facets.append(_facet(name, values))
    if len(facets) < _MAX_NAMES:
        texts = find(query, most + 1)
        are_exact &= len(texts) <= most
        of_names = _values(texts[:most])
        others = sorted((-_total(values), name) for name, values in of_names.items() if name not in filtered)
        facets += (_facet(name, of_names[name]) for _, name in others[: _MAX_NAMES - len(facets)])
    return facets, are_exact


def _values(texts: Iterable[str | None]) -> dict[str, Values]:
    """By the names of attributes. Products say the same lines again and again, so each is taken apart once."""
    found: dict[str, Values] = {}
    for line, count in Counter("\n".join(filter(None, texts)).split("\n")).items():
        if line:
            name, number, key, label = line.split("\t")
            value = key, None if number == "None" else float(number)
            found.setdefault(name, {}).setdefault(value, {})[label] = count
    return found


def _total(values: Values) -> int:
    return sum(sum(labels.values()) for labels in values.values())


def _facet(name: str, values: Values) -> AttributeFacet:
    counts = [(key, number, sum(labels.values())) for (key, number), labels in values.items()]
    label, total = attribute_label(name), sum(count for _, _, count in counts)
    # Most of them: a seller who writes "none" makes no texts of all.
    if 2 * sum(number is not None for _, number, _ in counts) <= len(counts):
        top = sorted(counts, key=lambda one: (-one[2], one[0]))[:_MAX_VALUES]
        return AttributeFacet(name, label, total, _with_labels(values, top))
    numbers = sorted((number, key, count) for key, number, count in counts if number is not None)
    least, most = _shown(numbers[0][0]), _shown(numbers[-1][0])
    if len(numbers) > _MAX_VALUES:
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


def _shown(number: float) -> Number:
    return int(number) if number.is_integer() and abs(number) <= 2**53 else number
