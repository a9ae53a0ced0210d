"""Numbers with their units, and words that sellers write in several ways: one word in the index and in a query.

`16 GB` and `16GB` are both `16gb`, `1,5 liter` is `1d5l`, `Wi-Fi` is also `wifi`, `RTX4060` is also `rtx` and `4060`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest

from tis.marketplace.reading.word_lists import read_rows

# "sekilo" is a word of one kilogram.
_ONE = re.compile(r"(?<!\w)(se|setengah |seperempat )(kilo|liter|meter|gram|ons|tera)(?!\w)")
_SAID_AMOUNTS = {"se": "1", "setengah ": "0.5", "seperempat ": "0.25"}
_RUN = re.compile(r"[^\W_]+")
_PARTS = re.compile(r"\d+|[^\W\d_]+")
_MAX_JOINED_CHARS = 16
_MIN_SERIES_CHARS = 3  # of letters before a number that are a word of their own, as in `rtx4060`


@dataclass(frozen=True)
class Unit:
    """One `scale` has units of one kind; `factor` counts its smallest. Amounts are also looked for in other steps."""

    name: str
    label: str
    scale: str
    factor: int
    is_step: bool


@cache
def units() -> dict[str, Unit]:
    """By all their spellings."""
    found = dict[str, Unit]()
    for row in read_rows("units.csv"):
        unit = Unit(row["unit"], row["label"], row["scale"], int(row["factor"]), bool(row["step"]))
        found |= dict.fromkeys(row["spellings"].split(), unit)
    return found


@cache
def _measure() -> "re.Pattern[str]":
    spellings = "|".join(sorted(map(re.escape, units()), key=len, reverse=True))
    return re.compile(rf"(?<![\w.,/])(\d{{1,9}}(?:[.,]\d{{1,9}}){{0,3}}|\d/\d)[ -]?({spellings})(?![^\W_])")


def measures(text: str) -> Iterator[tuple[int, int, str]]:
    """Where each measure of a folded text begins and ends, and its word."""
    for found in _measure().finditer(text):
        number, unit = found.groups()
        # "in" is a word of English: behind a number it is an inch only if nothing else is between them.
        if unit != "in" or found.end(1) == found.start(2) or "." in number:
            yield found.start(), found.end(), _number(number) + units()[unit].name


def amounts_in(text: str) -> Iterator[tuple[float, str, str, str]]:
    """Of each measure of a text its number in the smallest unit, its unit, the scale of that, and how it is written."""
    for found in _measure().finditer(text.lower()):
        number, unit = _decimal(found[1]), units()[found[2]]
        yield number * unit.factor, unit.name, unit.scale, text[found.start() : found.end()]


def _decimal(digits: str) -> float:
    above, _, below = digits.partition("/")
    if below:
        return int(above) / (int(below) or 1)
    groups = re.split("[.,]", digits)
    is_grouped = len(groups) > 1 and all(len(group) == 3 for group in groups[1:]) and groups[0] != "0"
    return float(
        "".join(groups) if is_grouped else "".join(groups[:-1] or groups) + ("." + groups[-1]) * (len(groups) > 1)
    )


def with_spaced_measures(text: str) -> str:
    """As people write them: `27 inch` of `27inch`."""
    return _measure().sub(lambda found: f"{found[1]} {units()[found[2]].label}", text)


def joined_spans(text: str) -> Iterator[tuple[int, int, str]]:
    """Other spellings of a folded text: words that it does not contain as they are, with where each begins and ends."""
    in_measures = set[int]()
    for start, end, word in measures(text):
        in_measures.update(range(start, end))
        yield start, end, word
    runs = list(_RUN.finditer(text))
    for run, following in zip_longest(runs, runs[1:]):
        word = run.group()
        if run.start() not in in_measures:
            parts = list(_PARTS.finditer(word))
            if 1 < len(parts) <= 3 and (len(parts[0][0]) >= _MIN_SERIES_CHARS or parts[0][0].isdecimal()):
                first = run.start()
                yield from ((first + one.start(), first + one.end(), one[0]) for one in parts if len(one[0]) > 1)
        if following is None or following.start() in in_measures or len(word) + len(following[0]) > _MAX_JOINED_CHARS:
            continue
        between, next_word = text[run.end() : following.start()], following.group()
        is_series = word.isalpha() and len(word) > 1 and next_word[0].isdecimal()
        if (between == "-" and len(word) + len(next_word) > 3) or (between == " " and is_series):
            yield run.start(), following.end(), word + next_word


def with_digits(text: str) -> str:
    """`sekilo` and `setengah liter`, which people say and do not print."""
    return _ONE.sub(lambda found: f"{_SAID_AMOUNTS[found[1]]} {found[2]}", text)


def _number(digits: str) -> str:
    """A point or comma before exactly three digits separates thousands, as shops write prices and capacities."""
    groups = re.split("[.,]", digits.replace("/", "s"))
    if len(groups) > 1 and len(groups[-1]) != 3:
        fraction = groups[-1].rstrip("0")
        return "".join(groups[:-1]) + (f"d{fraction}" if fraction else "")
    return "".join(groups)
