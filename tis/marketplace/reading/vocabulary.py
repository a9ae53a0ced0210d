"""The words that a catalogue knows: categories with their names, synonyms, brands; and what they say of goods."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

from rapidfuzz import process
from rapidfuzz.distance import OSA

from tis.marketplace.reading.measures import units
from tis.marketplace.reading.tokens import tokenize
from tis.marketplace.reading.word_lists import read_rows, word_list

Phrase = tuple[str, ...]
MAX_PHRASE_WORDS = 3
_MIN_LETTERS_OF_SLIP = 5
_MIN_LETTERS_OF_TWO_SLIPS = 8
_MIN_LETTERS_OF_BRAND = 2
_MIN_LETTERS_OF_STEM = 3
_ENDINGS = ("nya", "ku", "an", "s", "es")
_MAX_CORRECTIONS = 10_000


@dataclass(frozen=True)
class Vocabulary:
    """`names` holds the keys by which sellers may name each category, `parents` its parent; both by slug."""

    names: dict[str, set[str]]
    parents: dict[str, str | None]
    # The slugs of each phrase that means all goods of a category: its own names, and synonyms that mean one of these.
    phrases: Mapping[Phrase, tuple[str, ...]]
    synonyms: Mapping[Phrase, tuple[Phrase, ...]]
    broader: frozenset[Phrase] = frozenset()  # whose synonyms are kinds of what they mean
    brands: tuple[str, ...] = ()  # keys of the brands that products have, or had a minute ago, in their order
    single_words: tuple[str, ...] = ()  # names of categories and synonyms of one word

    @cached_property
    def category_names(self) -> list[tuple[str, tuple[str, ...]]]:
        """With their slugs, in the order of the alphabet."""
        return sorted((" ".join(phrase), slugs) for phrase, slugs in self.phrases.items())

    @cached_property
    def goods(self) -> "GoodsIndex":
        """Made once: the search returns the same vocabulary until it changes."""
        return GoodsIndex.of(self)

    @cached_property
    def _slugs_of_name(self) -> dict[str, set[str]]:
        slugs: dict[str, set[str]] = {}
        for slug, names in self.names.items():
            for name in names:
                slugs.setdefault(name, set()).add(slug)
        return slugs

    @cached_property
    def _children(self) -> dict[str, set[str]]:
        children: dict[str, set[str]] = {}
        for slug, parent in self.parents.items():
            if parent is not None:
                children.setdefault(parent, set()).add(slug)
        return children

    def slugs_named(self, key: str) -> set[str]:
        return self._slugs_of_name.get(key, set())

    def keys_below(self, key: str) -> set[str]:
        """The key itself, and all names of the categories that it names and of their descendants."""
        slugs = set[str]()
        found = self.slugs_named(key)
        while found:
            slugs |= found
            found = set[str]().union(*(self._children.get(slug, ()) for slug in found)) - slugs
        return {key}.union(*(self.names[slug] for slug in slugs))


@dataclass(frozen=True)
class GoodsIndex:
    """The category of each phrase, brands, and the spelling of slips. Any thread may use it."""

    categories: dict[Phrase, str]  # of phrases that name goods of a category
    own_names: dict[Phrase, str]  # of those that name all its goods
    nouns: frozenset[Phrase]  # that name goods, of a category or not
    synonyms: Mapping[Phrase, tuple[Phrase, ...]]
    brands: frozenset[Phrase]
    brand_names: dict[Phrase, str]  # of brands that the catalogue spells otherwise
    known_words: frozenset[str]
    correct_words: dict[tuple[str, int], list[str]]  # what slips are corrected to, by first letter and length
    _corrections: dict[str, str | None] = field(default_factory=dict)

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> Self:
        categories = _categories(vocabulary)
        own_names = {phrase: slugs[0] for phrase, slugs in vocabulary.phrases.items()}
        brands = {_phrase(brand) for brand in (*vocabulary.brands, *word_list("brand"))}
        brands = {one for one in brands if _is_brand(one)}
        words = {word for phrase in (*vocabulary.synonyms, *categories) for word in phrase}
        words |= {word for brand in brands for word in brand}
        correct: dict[tuple[str, int], list[str]] = {}
        for word in sorted(words):
            if len(word) >= _MIN_LETTERS_OF_SLIP - 1 and word.isalpha():
                correct.setdefault((word[0], len(word)), []).append(word)
        nouns = {
            phrase for phrase in (*vocabulary.synonyms, *categories) if not word_list("description").issuperset(phrase)
        }
        return cls(
            categories,
            own_names,
            frozenset(nouns),
            vocabulary.synonyms,
            frozenset(brands),
            _names_of_brands(vocabulary.brands),
            frozenset(
                words | units().keys() | word_list("function", "praise", "filler", "plain", "description", "part")
            ),
            correct,
        )

    def spellings(self, phrase: Phrase) -> tuple[Phrase, ...]:
        """Other names of the same goods."""
        return self.synonyms.get(phrase, ())

    def corrected(self, word: str) -> str | None:
        """The word of the catalogue that a slip means; None if the word is known, or like none or two of them."""
        if word in self.known_words or not word.isalpha():
            return None
        if stem := self.stem(word):
            return stem
        if len(word) < _MIN_LETTERS_OF_SLIP:
            return None
        if word not in self._corrections:
            if len(self._corrections) >= _MAX_CORRECTIONS:
                self._corrections.clear()
            self._corrections[word] = self._nearest(word)
        return self._corrections[word]

    def corrected_phrase(self, words: Phrase) -> Phrase | None:
        """The name of goods of several words that these mean with one letter wrong: `rise cooker`."""
        said = " ".join(words)
        if len(words) < 2 or len(said) < _MIN_LETTERS_OF_TWO_SLIPS or words in self.nouns or not said[0].isalpha():
            return None
        if not any(word in self._words_of_phrases for word in words):
            return None
        if said not in self._corrections:
            if len(self._corrections) >= _MAX_CORRECTIONS:
                self._corrections.clear()
            others = self._long_nouns.get((said[0], len(words)), ())
            found = process.extractOne(said, others, scorer=OSA.distance, score_cutoff=1)
            self._corrections[said] = str(found[0]) if found else None
        corrected = self._corrections[said]
        return tuple(corrected.split()) if corrected else None

    @cached_property
    def _long_nouns(self) -> dict[tuple[str, int], list[str]]:
        found: dict[tuple[str, int], list[str]] = {}
        for phrase in sorted(self.nouns):
            if len(phrase) > 1:
                found.setdefault((phrase[0][0], len(phrase)), []).append(" ".join(phrase))
        return found

    @cached_property
    def _words_of_phrases(self) -> frozenset[str]:
        return frozenset(word for phrase in self.nouns if len(phrase) > 1 for word in phrase)

    def stem(self, word: str) -> str | None:
        """`laptopnya`, `fans`: the known word without an ending."""
        stems = (word.removesuffix(ending) for ending in _ENDINGS if word.endswith(ending))
        return next((stem for stem in stems if len(stem) >= _MIN_LETTERS_OF_STEM and stem in self.known_words), None)

    def _nearest(self, word: str) -> str | None:
        most = 2 if len(word) >= _MIN_LETTERS_OF_TWO_SLIPS else 1
        lengths = range(len(word) - most, len(word) + most + 1)
        others = [other for length in lengths for other in self.correct_words.get((word[0], length), ())]
        near = process.extract(word, others, scorer=OSA.distance, score_cutoff=most, limit=8)
        alike = [(int(slips), other) for other, slips, _ in near if self._is_likely(word, other, int(slips))]
        if not alike:
            return None
        least = min(slips for slips, _ in alike)
        nearest = [other for slips, other in alike if slips == least]
        named = [other for other in nearest if (other,) in self.categories or (other,) in self.brands]
        return named[0] if named else nearest[0] if len(nearest) == 1 else None

    def _is_likely(self, word: str, other: str, slips: int) -> bool:
        """Of words that name no goods, one letter too many or too few, or two that changed places.

        With another letter it is rather another word: gratis is no slip of grafis, rebus none of Rexus.
        """
        if (other,) in self.categories or other in word_list("often misspelt"):
            return len(other) >= _MIN_LETTERS_OF_SLIP
        is_other_letter = len(word) == len(other) and sorted(word) != sorted(other)
        is_long = len(word) > _MIN_LETTERS_OF_SLIP
        if other in word_list("brand"):
            return slips == 1
        return slips == 1 and is_long and not is_other_letter


def _categories(vocabulary: Vocabulary) -> dict[Phrase, str]:
    """Own names and synonyms of categories, and phrases whose spellings mostly begin with one: `sepatu lari`."""
    known = {_phrase(name): slug for slug, names in vocabulary.names.items() for name in sorted(names)}
    known |= {phrase: slugs[0] for phrase, slugs in vocabulary.phrases.items()}
    known.pop((), None)
    further = {
        _phrase(name): row["category"]
        for row in read_rows("category_nouns.csv")
        if row["category"] in vocabulary.names
        for name in row["nouns"].split(", ")
    }
    known = further | known
    found = dict(known)
    for phrase, others in vocabulary.synonyms.items():
        if phrase in known or word_list("description").issuperset(phrase):
            continue
        spellings = [phrase, *(() if phrase in vocabulary.broader else others)]
        if len(phrase) == 1:
            votes = Counter(known[one] for one in spellings if one in known)
        else:
            votes = Counter(slug for one in spellings if (slug := _category_of_words(one, known)))
        if len(phrase) > 1 and phrase[:1] in known and phrase[0] not in word_list("english noun"):
            found[phrase] = known[phrase[:1]]  # Indonesian order
            continue
        for slug, count in sorted(votes.items(), key=lambda one: -one[1])[:1]:
            if 2 * count > len(spellings) or (len(phrase) == 1 and len(votes) == 1):
                found[phrase] = slug
    return found


def _category_of_words(phrase: Phrase, known: dict[Phrase, str]) -> str | None:
    """An Indonesian noun stands first, an English one last."""
    if phrase in known:
        return known[phrase]
    if not word_list("part").isdisjoint(phrase):
        return known.get(phrase[:1]) if phrase[0] in word_list("part") else None
    return main_category([slug for word in phrase if (slug := known.get((word,)))])


def main_category(slugs: Sequence[str]) -> str | None:
    """Of the categories that words beside each other name, in their order: a laptop bag is a bag."""
    carrier = next((slug for slug in slugs if slug in word_list("carrier")), None)
    if carrier and any(slug in word_list("device") for slug in slugs):
        return carrier
    return slugs[0] if slugs else None


def _phrase(name: str) -> Phrase:
    return tuple(tokenize(name))


def _names_of_brands(catalogue: Sequence[str]) -> dict[Phrase, str]:
    """The filter compares whole names: who says yongma or nippon means "yong ma" and "nippon paint"."""
    joined = {brand.replace(" ", "").replace("-", ""): brand for brand in catalogue}
    first_words: dict[str, list[str]] = {}
    for brand in catalogue:
        first_words.setdefault(brand.split(" ")[0], []).append(brand)
    found = {}
    for known in word_list("brand") - set(catalogue):
        others = [joined[known]] if known in joined else first_words.get(known, [])
        if len(others) == 1:
            found[_phrase(known)] = others[0]
    return found


def _is_brand(phrase: Phrase) -> bool:
    """Sellers may write anything: "gaming" and "modern" stay words."""
    letters = "".join(phrase)
    if " ".join(phrase) in word_list("brand"):
        return True
    is_name = len(letters) >= _MIN_LETTERS_OF_BRAND and any(map(str.isalpha, letters))
    return is_name and not word_list("description", "plain").issuperset(phrase)
