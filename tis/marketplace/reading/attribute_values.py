"""Names and values of attributes as they are compared: `RAM (GB)` is `ram_gb`, and its "16 GB" the number 16."""

import re
import sys
from dataclasses import dataclass
from functools import lru_cache

from tis.marketplace.kit.fields import key_of
from tis.marketplace.reading.measures import units
from tis.marketplace.reading.tokens import folded, tokenize
from tis.marketplace.reading.word_lists import word_list

MAX_KEY_CHARS = 100
_MAX_READ_CHARS = 200
_NUMBER = re.compile(r"([+-]?)(?:(\d{1,15}(?:[.,]\d{1,9}){0,4})|(\d)/([1-9]))\s*([^\W\d_]\S{0,20}|[\"”])?")
_BETWEEN_NUMBER_AND_LETTERS = re.compile(r"(?<=\d) +(?=[^\W\d])|(?<=[^\W\d]) +(?=\d)")


@dataclass(frozen=True)
class AttributeValue:
    """`number` is None for what is not compared as a number. `key` compares for equality, `label` is for people."""

    number: float | None
    key: str
    label: str

    @property
    def is_bare_number(self) -> bool:
        """Without a unit that the name does not say."""
        return self.number is not None and self.key == _text_of(self.number)


@lru_cache(maxsize=4096)
def attribute_key(name: str) -> str:
    """Equal for spellings of a name that count as the same; empty if it has neither letters nor digits."""
    return "_".join(tokenize(name))[:MAX_KEY_CHARS]


def attribute_label(key: str) -> str:
    """`ram_gb` is `RAM (GB)`."""
    *words, last = key.split("_")
    unit = units().get(last) if words else None
    if unit is None:
        words.append(last)
    shown = [word.upper() if word in word_list("acronym") else word for word in words]
    shown[0] = shown[0][:1].upper() + shown[0][1:]
    return " ".join(shown) + (f" ({unit.label})" if unit else "")


def attribute_value(key: str, value: object) -> AttributeValue | None:
    """Of the attribute with this key; None for what has no value."""
    if isinstance(value, bool):
        return AttributeValue(None, str(value).lower(), str(value).lower())
    if isinstance(value, int | float):
        return _of_number(float(value)) if abs(value) <= sys.float_info.max else None
    if not isinstance(value, str) or not value.strip():
        return None
    letters = _joined(value[:_MAX_READ_CHARS])
    number, is_exact = _number_in(letters, key.rpartition("_")[2])
    if number is not None and is_exact:
        return _of_number(number)
    return AttributeValue(number, letters[:MAX_KEY_CHARS], " ".join(value.split())[:MAX_KEY_CHARS])


def _of_number(number: float) -> AttributeValue:
    text = _text_of(number)
    return AttributeValue(number + 0.0, text, text)  # + 0.0 makes -0.0 a 0


def _text_of(number: float) -> str:
    return str(int(number)) if number.is_integer() and abs(number) <= 2**53 else repr(number)


def _joined(text: str) -> str:
    return _BETWEEN_NUMBER_AND_LETTERS.sub("", folded(key_of(text)))


def _number_in(letters: str, own_unit: str) -> tuple[float | None, bool]:
    """The number, and whether it says all: its unit is that of the name, or it has none."""
    found = _NUMBER.fullmatch(letters)
    if found is None:
        return None, False
    sign, digits, above, below, unit = found.groups()
    number = _decimal(digits) if digits else int(above) / int(below)
    if number is None:
        return None, False
    number = -number if sign == "-" else number
    own, said = units().get(own_unit), units().get(unit) if unit else None
    if unit is None or unit == own_unit or (said and said == own):
        return number, True
    if said is None:
        return None, False
    if own is None:
        return number, False
    return (None, False) if said.scale != own.scale else (float(f"{number * said.factor / own.factor:.12g}"), True)


def _decimal(digits: str) -> float | None:
    """As shops write: a point or comma before three digits separates thousands. None for versions such as 5.1.2."""
    groups = re.split("[.,]", digits)
    is_grouped = len(groups) > 1 and len(groups[0]) <= 3 and groups[0] != "0"
    if is_grouped and all(len(group) == 3 for group in groups[1:]):
        return float("".join(groups))
    if is_grouped and len(groups) > 2 and any(len(group) != 3 for group in groups[1:-1]):
        return None
    if len(groups) > 2 and not is_grouped:
        return None
    return float("".join(groups[:-1] or groups) + ("." + groups[-1] if len(groups) > 1 else ""))
