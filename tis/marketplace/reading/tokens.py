"""Splits text into the words that are indexed and searched, the same on every database, without its own tokenizer."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tis.marketplace.reading.measures import measures, with_digits

MAX_WORD_CHARS = 64
_CHUNK = re.compile(r"[^\W_]+(?:[-._/][^\W_]+)*")
_ASCII_WORD = re.compile(r"[a-z0-9]+")


def tokenize(text: str | None) -> list[str]:
    """Lower case, no accents, one word per run of letters and digits; no word contains syntax of any database."""
    if not text:
        return []
    if text.isascii():
        return [word[:MAX_WORD_CHARS] for word in _ASCII_WORD.findall(text.lower())]
    return [word[:MAX_WORD_CHARS] for word in "".join(_word_characters(_letters(text))).split()]


@dataclass(frozen=True)
class SaidWord:
    """A word of a query. `parts` are the words around its signs: `wi-fi` is `wifi`, of the parts `wi` and `fi`."""

    word: str
    parts: tuple[str, ...] = ()


def said_words(text: str | None) -> list[SaidWord]:
    """The words of a query. A number and its unit are one word, and so is what has no space in it."""
    if not text:
        return []
    letters, said, end = with_digits(folded(text)), list[SaidWord](), 0
    for start, stop, measure in measures(letters):
        said += [*_chunks(letters[end:start]), SaidWord(measure)]
        end = stop
    return said + list(_chunks(letters[end:]))


def _chunks(letters: str) -> Iterator[SaidWord]:
    for chunk in _CHUNK.findall(letters):
        parts = tokenize(chunk)
        joined = joined_word(parts)
        if len(parts) > 1 and len(joined) <= MAX_WORD_CHARS:
            yield SaidWord(joined, tuple(parts))
        else:
            yield from map(SaidWord, parts)


def joined_word(parts: Iterable[str]) -> str:
    return "".join(parts)[:MAX_WORD_CHARS]


def _letters(text: str) -> str:
    return unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())


def folded(text: str) -> str:
    """Lower case and no accents, but with its signs."""
    if text.isascii():
        return text.lower()
    return "".join(letter for letter in _letters(text) if not unicodedata.category(letter).startswith("M"))


def _word_characters(letters: str) -> Iterator[str]:
    for letter in letters:
        if letter.isalnum():
            yield letter
        elif not unicodedata.category(letter).startswith("M"):
            yield " "
