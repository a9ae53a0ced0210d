"""Goods by an attribute that is a number: the lightest, those with the largest battery."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tis.marketplace.reading.attribute_values import attribute_key, attribute_value, in_smallest_unit
from tis.marketplace.reading.structured_query import AttributeOrder, Measured

# Words of the names of attributes. Of a size, the first that products have.
_NAMES: Mapping[Measured, Sequence[frozenset[str]]] = {
    "weight": [frozenset("weight berat bobot".split())],
    "screen": [frozenset("screen layar display".split())],
    "battery": [frozenset("battery baterai batere".split())],
    "ram": [frozenset("ram memory memori".split())],
    "storage": [frozenset("storage penyimpanan ssd hdd internal rom".split())],
    "camera": [frozenset("camera kamera".split())],
    "power": [frozenset("power daya watt wattage".split())],
    "capacity": [frozenset("capacity kapasitas volume isi".split())],
}
_SIZES = [*_NAMES["screen"], frozenset("size ukuran".split()), *_NAMES["capacity"]]
_SIZES += [frozenset([name]) for name in ("panjang", "length", "diameter", "lebar", "width", "tinggi", "height")]


@dataclass(frozen=True)
class Measure:
    """`number` is in the smallest unit, so that grams and kilograms compare."""

    number: float
    key: str
    value: Any


def measure_of(attributes: Mapping[str, Any], attribute: Measured) -> Measure | None:
    keys = [(attribute_key(name), value) for name, value in attributes.items()]
    for names in _SIZES if attribute == "size" else _NAMES[attribute]:
        for key, value in keys:
            if names.isdisjoint(key.split("_")):
                continue
            read = attribute_value(key, value)
            if read is not None and read.number is not None:
                return Measure(in_smallest_unit(key, read.number), key, value)
    return None


def in_order(measures: Mapping[int, Measure | None], order: AttributeOrder) -> list[int]:
    """The ids whose measure is known, best first: of `beyond`, only what is better than all of these."""
    known = {number: one.number for number, one in measures.items() if one is not None}
    sign = 1 if order.least else -1
    kept = {number: sign * value for number, value in known.items() if number not in order.beyond}
    if bounds := [sign * known[number] for number in order.beyond if number in known]:
        kept = {number: value for number, value in kept.items() if value < min(bounds)}
    return sorted(kept, key=lambda number: kept[number])
