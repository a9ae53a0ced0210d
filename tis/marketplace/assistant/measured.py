"""The weight, screen or battery of a product, by what it means: sellers name it as they like, or only in the name."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tis.marketplace.assistant.wording import word_list
from tis.marketplace.reading.attribute_values import attribute_key, attribute_value
from tis.marketplace.reading.measures import amounts_in, units
from tis.marketplace.reading.structured_query import AttributeOrder, Measured, MeasureLimit
from tis.marketplace.search.product_rows import ProductRow

# A unit that says which attribute it is of. Gigabytes of a memory are named as such.
_UNITS: Mapping[Measured, Sequence[str]] = {
    "weight": ("kg", "g", "ons"),
    "screen": ("inch",),
    "battery": ("mah", "wh"),
    "storage": ("tb", "gb"),
    "camera": ("mp",),
    "power": ("w", "va", "pk"),
    "capacity": ("l", "ml"),
    "size": ("inch", "l", "ml", "m", "cm", "mm"),
}
_NAMED: Sequence[Measured] = ("weight", "screen", "battery", "ram", "storage", "camera", "power")
_MEMORIES = re.compile(
    r"(?<![\w/])(?P<ram>\d{1,2})(?: ?gb)?/(?P<storage>\d{2,4})(?: ?gb)?(?![\w/])", re.IGNORECASE
)  # 8/256
_LENGTHS = ("panjang", "length", "diameter", "lebar", "width", "tinggi", "height")


@dataclass(frozen=True)
class Measure:
    """`number` is in the smallest unit of the scale, so that grams and kilograms compare."""

    number: float
    scale: str
    key: str
    value: Any


def measure_of(product: ProductRow, attribute: Measured) -> Measure | None:
    """By the name of an attribute, else by its unit, else as the name of the product has it."""
    attributes = [(attribute_key(name).split("_"), name, value) for name, value in product.attributes.items()]
    for names in _names_of(attribute):
        for words, name, value in attributes:
            if not names.isdisjoint(words) and (found := _read(name, value)):
                return found
    others = frozenset[str]().union(*(word_list(f"attribute {one}") for one in _NAMED if one != attribute))
    wanted = _UNITS.get(attribute, ())
    for words, name, value in attributes:
        if others.isdisjoint(words) and (found := _read(name, value)) and _unit_of(words, value) in wanted:
            return found
    if attribute in ("ram", "storage") and (said := _MEMORIES.search(product.name)):
        text = said["ram" if attribute == "ram" else "storage"]
        return Measure(float(text) * units()["gb"].factor, units()["gb"].scale, f"{attribute}_gb", text)
    in_name = [
        Measure(number, scale, attribute, text)
        for number, unit, scale, text in amounts_in(product.name)
        if unit in wanted
    ]
    return max(in_name, key=lambda one: one.number, default=None)


def keeps_limits(product: ProductRow, limits: Sequence[MeasureLimit]) -> bool:
    """What does not say its measure is not known to keep them."""
    return all(_keeps(measure_of(product, limit.attribute), limit) for limit in limits)


def in_order(measures: Mapping[int, Measure], order: AttributeOrder) -> list[int]:
    """The ids, best first, of the scale that most have; of `beyond` none, and what is not better than all of them."""
    scales = Counter(one.scale for one in measures.values())
    scale = max(scales, key=lambda one: scales[one], default="")
    sign = 1 if order.least else -1
    known = {number: sign * one.number for number, one in measures.items() if one.scale == scale}
    bound = min((known[number] for number in order.beyond if number in known), default=math.inf)
    kept = [number for number, value in known.items() if number not in order.beyond and value < bound]
    return sorted(kept, key=lambda number: known[number])


def _names_of(attribute: Measured) -> Sequence[frozenset[str]]:
    """Words of the names of attributes. Of a size, the first that products have."""
    if attribute != "size":
        return [word_list(f"attribute {attribute}")]
    sizes = [word_list(f"attribute {one}") for one in ("screen", "size", "capacity")]
    return [*sizes, *(frozenset([name]) for name in _LENGTHS)]


def _read(name: str, value: Any) -> Measure | None:
    key = attribute_key(name)
    read = attribute_value(key, value)
    if read is None or read.number is None:
        return None
    unit = units().get(_unit_of(key.split("_"), value))
    return Measure(read.number * (unit.factor if unit else 1), unit.scale if unit else "", key, value)


def _unit_of(words: Sequence[str], value: Any) -> str:
    """Of `berat_kg`, and of a value such as "2 kg"."""
    if words[1:] and words[-1] in units():
        return units()[words[-1]].name
    return next((unit for _, unit, _, _ in amounts_in(str(value))), "")


def _keeps(measure: Measure | None, limit: MeasureLimit) -> bool:
    unit = units().get(limit.unit)
    if measure is None or (unit and measure.scale and unit.scale != measure.scale):
        return False
    factor = unit.factor if unit and measure.scale else 1
    least, most = (-math.inf if limit.least is None else limit.least), (math.inf if limit.most is None else limit.most)
    return least * factor <= measure.number <= most * factor
