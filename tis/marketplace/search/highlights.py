"""Where the words of a query stand in the texts of a product: ranges of characters, which hide no markup.

A word is found in all the spellings that the index has of it: `16 gb` says `16gb`, `RTX4060` says `rtx`.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from tis.marketplace.kit.fields import key_of
from tis.marketplace.reading.measures import joined_spans
from tis.marketplace.reading.tokens import folded, joined_word, tokenize
from tis.marketplace.search.index_entry import attribute_words
from tis.marketplace.search.index_tokens import category_token
from tis.marketplace.search.product_rows import ProductRow
from tis.marketplace.search.text_query import TextQuery

Range = tuple[int, int]
_RUN = re.compile(r"[^\W_]+")
_FIRST_PART = re.compile(r"\d+|[^\W\d_]+")
_HYPHENATED = re.compile(r"[^\W_]+(?:-[^\W_]+)+")
_MAX_READ_CHARS = 5000  # of a description
_MAX_RANGES = 50  # of a field
_SNIPPET_CHARS = 160
_BEST_PART_CHARS = 120  # of a snippet, in which the most words are looked for
_MAX_SHIFT = 20  # to the next space


@dataclass(frozen=True)
class Snippet:
    """A part of the description, with … where it was cut. The ranges are of this text."""

    text: str
    ranges: list[Range]


@dataclass(frozen=True)
class Highlights:
    """Of each text the ranges that matched: begin and end in characters (Unicode code points), the end excluded."""

    name: list[Range]
    description: list[Range]
    brand: list[Range]
    category: list[Range]
    tags: list[Range]
    sku: list[Range]
    attributes: list[str]  # names of those that matched
    snippet: Snippet | None


class _Hit(NamedTuple):
    start: int
    end: int
    word: str  # of the query; the beginning of a word ends with *


class Highlighter:
    """For the products of one page."""

    def __init__(self, query: TextQuery | None) -> None:
        self._terms = [
            (*term.words[:-1], term.words[-1] + "*" * term.is_prefix)
            for group in (query.groups if query else ())
            for term in group.terms
        ]
        words = {word for term in self._terms for word in term}
        self._words = {word for word in words if not word.endswith("*")}
        self._prefixes = tuple(word[:-1] for word in words if word.endswith("*"))
        self._parts = (*self._words, *self._prefixes)
        # What a text contains that says a word of letters and digits, however it is written: 16 of `16gb`.
        first_parts = {found[0] for word in self._parts if not word.isalpha() and (found := _FIRST_PART.match(word))}
        self._first_numbers = tuple(part for part in first_parts if part.isdecimal())
        self._first_letters = frozenset(first_parts) - frozenset(self._first_numbers)
        self._seeds = tuple({part for part in self._parts if part.isalpha()} | first_parts)
        self._of_attributes: dict[tuple[str, str], set[str]] = {}
        self._category_tokens = frozenset(query.category_tokens if query else ())

    def highlights(self, product: ProductRow) -> Highlights:
        description = product.description or ""
        texts = (product.name, description[:_MAX_READ_CHARS], product.brand, product.category, product.tags)
        hits = [self._hits(text) for text in texts] + [self._sku_hits(product.sku)]
        of_attributes = self._attribute_hits(product.attributes)
        said = {hit.word for own in hits for hit in own}.union(*of_attributes.values())
        matched = {word for term in self._terms if said.issuperset(term) for word in term}
        shown = [[hit for hit in own if hit.word in matched] for own in hits]
        name, of_description, brand, category, tags, sku = (_merged(own) for own in shown)
        if self._category_tokens and category_token(key_of(product.category)) in self._category_tokens:
            category = [(0, len(product.category))]
        return Highlights(
            name=name,
            description=of_description,
            brand=brand,
            category=category,
            tags=tags,
            sku=sku,
            attributes=[name for name, own in of_attributes.items() if own & matched],
            snippet=_snippet(description, shown[1]) if description else None,
        )

    def _hits(self, text: str | None) -> list[_Hit]:
        if not text or not self._terms:
            return []
        letters, places = _letters_of(text)
        if "-" not in letters and not any(seed in letters for seed in self._seeds):
            return []
        words = _RUN.findall(letters)
        wanted = self._words.intersection(words)
        if self._prefixes:
            wanted = wanted.union(word for word in words if word.startswith(self._prefixes))
        spans = [span for word in wanted for span in _spans_of(word, letters)]
        if self._may_be_joined(letters, words):
            # "merah" begins `merah-tua`, but is a word of its own in it.
            begun_at = {start for start, _, _ in spans}
            spans += (one for one in joined_spans(letters) if one[0] not in begun_at or one[2] in self._words)
        found = [_Hit(*span) for span in spans if span[2] in self._words]
        if self._prefixes:
            begun = (span for span in spans if span[2].startswith(self._prefixes))
            found += (_Hit(start, end, self._prefix_of(word)) for start, end, word in begun)
        return found if places is None else [_placed(text, places, hit) for hit in found]

    def _may_be_joined(self, letters: str, words: Sequence[str]) -> bool:
        """Whether the text may say a word of the query in other spellings: finding these takes longer than all else."""
        others = [word for word in words if not word.isalpha() and word not in self._words]
        if "-" in letters:
            others += [chunk.replace("-", "") for chunk in _HYPHENATED.findall(letters)]
        if any(one.startswith(self._first_numbers) or any(part in one for part in self._parts) for one in others):
            return True
        return not self._first_letters.isdisjoint(words)

    def _sku_hits(self, sku: str | None) -> list[_Hit]:
        """Its parts, or all of it if the buyer left out its signs."""
        parts = tokenize(sku) if self._terms else []
        whole = [_Hit(0, len(sku or ""), word) for word in self._in_query([joined_word(parts)])] if parts else []
        return whole or self._hits(sku)

    def _attribute_hits(self, attributes: Mapping[str, Any]) -> dict[str, set[str]]:
        letters = folded(str(attributes)).replace("-", "")
        if not any(seed in letters for seed in self._seeds):
            return {}
        return {name: self._hits_of_attribute(name, value) for name, value in attributes.items()}

    def _hits_of_attribute(self, name: str, value: object) -> set[str]:
        said = name, repr(value)  # which many products of a page say
        if said not in self._of_attributes:
            self._of_attributes[said] = self._in_query(" ".join(attribute_words({name: value})).split())
        return self._of_attributes[said]

    def _in_query(self, words: Iterable[str]) -> set[str]:
        found = set(words)
        return found & self._words | {
            self._prefix_of(word) for word in found if self._prefixes and word.startswith(self._prefixes)
        }

    def _prefix_of(self, word: str) -> str:
        return next(prefix for prefix in self._prefixes if word.startswith(prefix)) + "*"


def _spans_of(word: str, letters: str) -> Iterator[tuple[int, int, str]]:
    """Where it stands between other characters than letters and digits."""
    start = letters.find(word)
    while start >= 0:
        end = start + len(word)
        if not letters[start - 1 : start].isalnum() and not letters[end : end + 1].isalnum():
            yield start, end, word
        start = letters.find(word, end)


def _letters_of(text: str) -> tuple[str, Sequence[int] | None]:
    """The text as it is compared, and of each of its characters the place in the text; None if they are the same."""
    if text.isascii():
        return text.lower(), None
    letters, places = list[str](), list[int]()
    for place, character in enumerate(text):
        own = _folded_character(character)
        letters.append(own)
        places += [place] * len(own)
    return "".join(letters), places


@lru_cache(maxsize=4096)
def _folded_character(character: str) -> str:
    return folded(character)


def _placed(text: str, places: Sequence[int], hit: _Hit) -> _Hit:
    end = places[hit.end - 1] + 1
    while end < len(text) and unicodedata.category(text[end]).startswith("M"):
        end += 1  # an accent belongs to the letter before it
    return _Hit(places[hit.start], end, hit.word)


def _merged(hits: Iterable[_Hit]) -> list[Range]:
    merged: list[Range] = []
    for start, end, _ in sorted(hits):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        elif len(merged) == _MAX_RANGES:
            break
        else:
            merged.append((start, end))
    return merged


def _snippet(description: str, hits: Sequence[_Hit]) -> Snippet:
    """The part with the most different words of the query, else the beginning."""
    first, last = _best_part(sorted(hits))
    start = max(0, min(first - (_SNIPPET_CHARS - (last - first)) // 2, len(description) - _SNIPPET_CHARS))
    end = min(len(description), start + _SNIPPET_CHARS)
    if start:
        space = description.find(" ", start, min(start + _MAX_SHIFT, max(first, start)))
        start = space + 1 if space >= 0 else start
    if end < len(description):
        space = description.rfind(" ", max(end - _MAX_SHIFT, last), end)
        end = space if space > start else end
    before, after = "…" if start else "", "…" if end < len(description) else ""
    shift = len(before) - start
    inside = (hit for hit in hits if start <= hit.start and hit.end <= end)
    ranges = _merged(_Hit(hit.start + shift, hit.end + shift, hit.word) for hit in inside)
    return Snippet(before + description[start:end] + after, ranges)


def _best_part(hits: Sequence[_Hit]) -> Range:
    """Where the first of these words begins and the last one ends."""
    best, most = (0, 0), 0
    for number, first in enumerate(hits[:_MAX_RANGES]):
        words, last = set[str](), first.end
        for hit in hits[number:]:
            if hit.end - first.start > _BEST_PART_CHARS:
                break
            words.add(hit.word)
            last = max(last, hit.end)
        if len(words) > most:
            best, most = (first.start, last), len(words)
    return best
