"""How the assistant speaks: its templates and lists of words, amounts and numbers, and the language of a buyer.

Sentences stand in `templates.csv`, words in `word_lists.csv`, what is said of offers in `claim_patterns.csv`. Only
`rupiah` writes a currency.
"""

import csv
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from tis.marketplace.products.delivery import Language


@cache
def templates() -> Mapping[Language, Mapping[str, str]]:
    """What stands in braces is filled in by code from the cards."""
    rows = _read_table("templates.csv")
    return {"id": {row["name"]: row["id"] for row in rows}, "en": {row["name"]: row["en"] for row in rows}}


def word_list(name: str) -> frozenset[str]:
    words = frozenset(
        word for row in _read_table("word_lists.csv") if row["list"] == name for word in row["words"].split()
    )
    if not words:
        raise KeyError(name)
    return words


@cache
def claim_pattern(name: str) -> "re.Pattern[str]":
    """Finds what a sentence says of an offer, from the beginning of a word on."""
    rows = [row["pattern"] for row in _read_table("claim_patterns.csv") if row["name"] == name]
    assert rows, name
    return re.compile("|".join(rf"\b(?:{one})" for one in rows), re.IGNORECASE)


def _read_table(name: str) -> list[dict[str, str]]:
    with (Path(__file__).parent / name).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def say(language: Language, template: str, /, **values: object) -> str:
    return templates()[language][template].format(**values)


def rupiah(amount: int) -> str:
    """`Rp 11.999.000` in both languages: that is how it stands on price tags."""
    return f"Rp {whole_text(amount, 'id')}"


def whole_text(number: int, language: Language) -> str:
    text = f"{number:,}"
    return text.replace(",", ".") if language == "id" else text


def decimal_text(number: float, language: Language) -> str:
    """Up to two places, none of them a zero at the end."""
    text = f"{number:.2f}".rstrip("0").rstrip(".")
    return text.replace(".", ",") if language == "id" else text


def kilometres_text(kilometres: float, language: Language) -> str:
    return f"{decimal_text(kilometres, language)} km"


def value_text(value: object, language: Language) -> str:
    """A value of an attribute as the seller gave it."""
    if isinstance(value, bool):
        return say(language, "yes" if value else "no")
    return decimal_text(value, language) if isinstance(value, float) else str(value)


def condition_text(condition: str, language: Language) -> str:
    return say(language, f"condition {condition}")


def rating_text(rating: float, num_reviews: int, language: Language) -> str:
    """Without reviews, an admin granted it."""
    name = {0: "granted rating", 1: "one rating"}.get(num_reviews, "rating")
    return say(language, name, stars=decimal_text(rating, language), count=num_reviews)


def language_of_talk(sentences: Iterable[str], otherwise: Language) -> Language:
    """Of the newest sentence that tells; the newest comes first."""
    for sentence in sentences:
        if (found := language_of_text(sentence, "id")) == language_of_text(sentence, "en"):
            return found
    return otherwise


def language_of_text(text: str, otherwise: Language) -> Language:
    """The language that more of the small words belong to. Names of goods are English in both."""
    words = re.findall(r"[^\W\d_]+", text.lower())[:100]
    num_indonesian = sum(word in word_list("indonesian") for word in words)
    num_english = sum(word in word_list("english") for word in words)
    if num_indonesian == num_english:
        return otherwise
    return "id" if num_indonesian > num_english else "en"
