"""What the phrases of a text also mean: synonyms, and categories that they name. Grouped, they are a `TextQuery`."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import pairwise

from sqlalchemy.orm import Session

from tis.marketplace.reading.measures import units
from tis.marketplace.reading.vocabulary import Phrase, Vocabulary
from tis.marketplace.search.index_tokens import category_token
from tis.marketplace.search.sql import run
from tis.marketplace.search.text_query import Term, TermGroup, TextQuery

MAX_PHRASE_WORDS = 3
# A last word that this many products contain is hardly a prefix, and looking up common prefixes is slow.
_MIN_COUNT_OF_WHOLE_WORD = 1000
_MAX_CATEGORY_TOKENS = 40
_MEASURE = re.compile(r"(\d+)(?:d(\d+)|s(\d+))?([a-z]+\d?)")
_MAX_DIGITS = 9
_FRACTIONS = {"0d5": "1s2", "0d25": "1s4", "0d75": "3s4"}


@dataclass
class QueryExpansions:
    """Synonyms of each phrase of a query, and the tokens of the categories that it names."""

    synonyms: dict[Phrase, list[Phrase]] = field(default_factory=dict)
    category_tokens: dict[Phrase, list[str]] = field(default_factory=dict)

    @staticmethod
    def of(vocabulary: Vocabulary, words: Sequence[str]) -> "QueryExpansions":
        expansions = QueryExpansions()
        for phrase in phrases_of(words):
            for other in vocabulary.synonyms.get(phrase, ()):
                expansions.add_synonym(phrase, other)
            for slug in vocabulary.phrases.get(phrase, ()):
                expansions._add_category(phrase, slug, vocabulary)
        return expansions

    def __contains__(self, phrase: Phrase) -> bool:
        return phrase in self.synonyms or phrase in self.category_tokens

    @property
    def words(self) -> set[str]:
        """All words of phrases that mean more than themselves."""
        return {word for phrase in (*self.synonyms, *self.category_tokens) for word in phrase}

    def update(self, other: "QueryExpansions") -> None:
        self.synonyms |= other.synonyms
        self.category_tokens |= other.category_tokens

    def add_synonym(self, phrase: Phrase, other: Phrase) -> None:
        if phrase and other and other != phrase and other not in self.synonyms.setdefault(phrase, []):
            self.synonyms[phrase].append(other)

    def add_measures(self, words: Sequence[str]) -> None:
        for word in words:
            for measure in equal_measures(word):
                self.add_synonym((word,), (measure,))

    def add_compounds(self, words: Sequence[str], counts: Mapping[str, int]) -> None:
        """`mouse pad` is also `mousepad`, if the catalogue has that."""
        for pair, joined in compounds_of(words).items():
            if joined in counts:
                self.add_synonym(pair, (joined,))

    def leave_brands(self, session: Session, alternatives: Collection[str] = ()) -> None:
        """`hp` is a telephone, but in `printer hp` it is a brand: beside another noun, a brand is nothing else.

        In `laptop atau hp` it is one of the `alternatives`.
        """
        nouns = [phrase for phrase, tokens in self.category_tokens.items() if tokens and phrase[-1] not in alternatives]
        if len(nouns) < 2:
            return
        sql = "SELECT 1 FROM product_search WHERE brand_key = :brand LIMIT 1"
        found = [phrase for phrase in nouns if run(session, sql, {"brand": " ".join(phrase)})]
        for phrase in found if len(found) < len(nouns) else ():
            self.category_tokens.pop(phrase)
            self.synonyms.pop(phrase, None)

    def group_of(self, phrase: Phrase, *, is_prefix: bool = False) -> TermGroup:
        synonyms = (Term(synonym) for synonym in self.synonyms.get(phrase, ()))
        return TermGroup((Term(phrase, is_prefix), *synonyms), tuple(self.category_tokens.get(phrase, ())))

    def grouped(self, words: Sequence[str], counts: Mapping[str, int], *, may_be_prefix: bool) -> TextQuery:
        """The longest phrase with a synonym or category first."""
        groups, start = [], 0
        while start < len(words):
            sizes = range(MAX_PHRASE_WORDS, 1, -1)
            length = next((size for size in sizes if tuple(words[start : start + size]) in self), 1)
            phrase = tuple(words[start : start + length])
            start += length
            is_prefix = may_be_prefix and start >= len(words) and self._may_be_prefix(phrase, counts)
            groups.append(self.group_of(phrase, is_prefix=is_prefix))
        return TextQuery(tuple(groups))

    def _may_be_prefix(self, phrase: Phrase, counts: Mapping[str, int]) -> bool:
        """Units and words with a meaning of their own are no beginning of a model: `gb` is not GB203."""
        word = phrase[-1]
        if len(word) < 2 or word in units() or phrase in self:
            return False
        return counts.get(word, 0) < _MIN_COUNT_OF_WHOLE_WORD

    def _add_category(self, phrase: Phrase, slug: str, vocabulary: Vocabulary) -> None:
        """Sellers name a category by any of its names."""
        names = sorted(vocabulary.names.get(slug, ())) if phrase else ()
        tokens = self.category_tokens.setdefault(phrase, []) if names else []
        tokens += [token for name in names if (token := category_token(name)) and token not in tokens]
        del tokens[_MAX_CATEGORY_TOKENS:]


def phrases_of(words: Sequence[str]) -> list[Phrase]:
    return [
        tuple(words[start : start + length])
        for length in range(1, MAX_PHRASE_WORDS + 1)
        for start in range(len(words) - length + 1)
    ]


def compounds_of(words: Sequence[str]) -> dict[tuple[str, str], str]:
    return {(one, other): one + other for one, other in pairwise(words) if one.isalpha() and other.isalpha()}


def equal_measures(word: str) -> Iterator[str]:
    """The same measure in the next smaller and the next larger unit, if it is one: `2m` is `200cm`."""
    found = _MEASURE.fullmatch(word)
    if not found or len(word) > 2 * _MAX_DIGITS:
        return
    whole, decimals, divisor, unit = found.groups()
    amount = Fraction(int(whole), int(divisor or 1) or 1) + Fraction(int(decimals or 0), 10 ** len(decimals or ""))
    if divisor or f"{whole}d{decimals}" in _FRACTIONS:
        yield from (one for one in _spelt(amount, unit) if one != word)
    for other, factor in _next_units(unit):
        yield from _spelt(amount * factor, other)


@cache
def _next_units(name: str) -> list[tuple[str, Fraction]]:
    """The next smaller and the next larger step of the scale, and what an amount is multiplied by."""
    own = next((one for one in units().values() if one.name == name), None)
    steps = {one for one in units().values() if own and one.is_step and one.scale == own.scale}
    smaller = max((one for one in steps if own and one.factor < own.factor), key=lambda one: one.factor, default=None)
    larger = min((one for one in steps if own and one.factor > own.factor), key=lambda one: one.factor, default=None)
    others = (smaller, larger if own and own.is_step else None)
    return [(one.name, Fraction(own.factor, one.factor)) for one in others if own and one]


def _spelt(amount: Fraction, unit: str) -> Iterator[str]:
    """With at most two decimals, also as the half or quarter that shops write."""
    hundredths = amount * 100
    if hundredths.denominator == 1 and hundredths:
        whole, rest = divmod(int(hundredths), 100)
        decimals = f"{rest:02}".rstrip("0")
        number = f"{whole}d{decimals}" if decimals else str(whole)
        yield number + unit
        if number in _FRACTIONS:
            yield _FRACTIONS[number] + unit
