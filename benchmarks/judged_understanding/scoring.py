"""Compare queries that a parser made with the judged ones: which fields are wrong, how many lines are fully right."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tis.marketplace.reading.structured_query import StructuredQuery

DEFAULTS: Mapping[str, Any] = StructuredQuery().model_dump()
APPROXIMATE_TOLERANCE = 0.02
GRAVE: Mapping[str, frozenset[str]] = {
    "price": frozenset({"min_price", "max_price"}),
    "place": frozenset({"cities", "exclude_cities", "provinces", "near_user", "radius_km"}),
    "category": frozenset({"category"}),
    "exclusion": frozenset({"exclude_brands", "exclude_terms", "exclude_cities"}),
}
UNITS = (
    "gb|tb|mb|inch|inci|in|hz|mah|kg|g|gr|gram|ml|l|liter|litre|ltr|pk|watt|w|meter|m|mm|cm|pintu|tabung|port|volt|v|mp"
)
NUMBER_AND_UNIT = re.compile(rf"(\d)\s+({UNITS})\b")


@dataclass(frozen=True)
class UnderstandingLine:
    """One judged sentence; README.md explains the fields."""

    id: str
    kind: str
    query: str
    expected: Mapping[str, Any]
    language: str = ""
    context: Mapping[str, Any] = field(default_factory=dict)
    text_has: Sequence[str] = ()
    text_lacks: Sequence[str] = ()
    noun: Sequence[str] = ()
    accept: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    accept_queries: Sequence[Mapping[str, Any]] = ()
    approximate: bool = False


@dataclass
class UnderstandingScore:
    """Counts of lines. A line that is wrong in two grave groups counts once in `grave`."""

    lines: int = 0
    right: int = 0
    grave: int = 0
    grave_groups: Counter[str] = field(default_factory=Counter)
    wrong_fields: Counter[str] = field(default_factory=Counter)
    lines_by_kind: Counter[str] = field(default_factory=Counter)
    right_by_kind: Counter[str] = field(default_factory=Counter)

    @property
    def right_share(self) -> float:
        return self.right / self.lines if self.lines else 0.0

    @property
    def grave_share(self) -> float:
        return self.grave / self.lines if self.lines else 0.0


def load_lines(path: Path) -> list[UnderstandingLine]:
    with path.open(encoding="utf-8") as file:
        lines = [UnderstandingLine(**json.loads(line)) for line in file if line.strip()]
    for line in lines:
        unknown = {*line.expected, *line.accept, *(key for query in line.accept_queries for key in query)} - {*DEFAULTS}
        if unknown or "text" in line.expected:
            raise ValueError(f"{line.id} judges fields that it cannot judge: {sorted(unknown) or 'text'}")
    return lines


def wrong_fields(line: UnderstandingLine, found: Mapping[str, Any]) -> set[str]:
    """The fields of `found` that are wrong, against the judged query that fits best; empty for a line fully right."""
    wrong = min((_against(line, expected, found) for expected in (line.expected, *line.accept_queries)), key=_gravity)
    return wrong if _text_is_right(line, found) else wrong | {"text"}


def grave_groups(wrong: set[str]) -> set[str]:
    return {group for group, fields in GRAVE.items() if wrong & fields}


def score(judged: Iterable[tuple[UnderstandingLine, Mapping[str, Any]]]) -> UnderstandingScore:
    """Each line with the query that the parser made of it."""
    result = UnderstandingScore()
    for line, found in judged:
        wrong = wrong_fields(line, found)
        groups = grave_groups(wrong)
        result.lines += 1
        result.lines_by_kind[line.kind] += 1
        result.right += not wrong
        result.right_by_kind[line.kind] += not wrong
        result.grave += bool(groups)
        result.grave_groups.update(groups)
        result.wrong_fields.update(wrong)
    return result


def _gravity(wrong: set[str]) -> tuple[int, int]:
    return len(grave_groups(wrong)), len(wrong)


def _against(line: UnderstandingLine, expected: Mapping[str, Any], found: Mapping[str, Any]) -> set[str]:
    wrong = set()
    for name, default in DEFAULTS.items():
        if name == "text":
            continue
        value = found.get(name, default)
        right_values = [expected.get(name, default), *line.accept.get(name, ())]
        tolerance = APPROXIMATE_TOLERANCE if line.approximate and name in GRAVE["price"] else 0.0
        if not any(_is_same(right, value, tolerance) for right in right_values):
            wrong.add(name)
    return wrong


def _is_same(right: Any, value: Any, tolerance: float) -> bool:
    right, value = _comparable(right), _comparable(value)
    if tolerance and isinstance(right, int) and isinstance(value, int):
        return abs(right - value) <= tolerance * right
    return bool(right == value)


def _comparable(value: Any) -> Any:
    if isinstance(value, str):
        text = " ".join(value.casefold().split())
        return None if text == "relevance" else text
    if isinstance(value, Mapping):
        parts = {key: _comparable(part) for key, part in value.items() if part}
        return parts or None
    if isinstance(value, (list, tuple)):
        return frozenset(_comparable(part) for part in value)
    return value


def _text_is_right(line: UnderstandingLine, found: Mapping[str, Any]) -> bool:
    text = found.get("text") or ""
    text = _joined(text if isinstance(text, str) else " ".join(text))
    with_brands = _split(" ".join([text, *found.get("brands", ())]))
    needed = [*line.text_has, *(line.noun if found.get("category") is None else ())]
    return all(_has_one_of(with_brands, words, _split) for words in needed) and not any(
        _has_one_of(text, words, _joined) for words in line.text_lacks
    )


def _joined(text: str) -> str:
    return NUMBER_AND_UNIT.sub(r"\1\2", " ".join(text.casefold().split()))


def _split(text: str) -> str:
    """Letters apart from digits: `rtx4060` has the words rtx and 4060, and 16gb is in `16 GB`."""
    return " ".join(re.findall(r"[^\W\d_]+|\d+|[^\w\s]+", text.casefold()))


def _has_one_of(text: str, words: str, normal: Callable[[str], str]) -> bool:
    """`words` is a word or phrase, or several of them with | between."""
    return any(re.search(rf"(?<!\w){re.escape(normal(word))}(?!\w)", text) for word in words.split("|"))
