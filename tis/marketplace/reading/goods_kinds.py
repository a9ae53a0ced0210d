"""Kinds of goods: what a buyer asks for, and what the name of a product says that it is.

A `tinta printer` is no printer and a laptop bag no laptop: of the nouns of a name one says what the goods are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tis.marketplace.reading.goods_nouns import GoodsWord, goods_words, main_nouns
from tis.marketplace.reading.sentence import Sentence
from tis.marketplace.reading.tokens import tokenize
from tis.marketplace.reading.vocabulary import GoodsIndex, Phrase, Vocabulary
from tis.marketplace.reading.word_lists import word_list

_MIN_LETTERS_OF_NAME = 3
_MIN_PHRASES_OF_FAMILY = 6


@dataclass(frozen=True)
class GoodsKind:
    """`phrases` name it, and so do all nouns of `category`. `words`: of a kind that the vocabulary does not know."""

    phrases: frozenset[Phrase] = frozenset()
    category: str | None = None
    words: frozenset[str] = frozenset()
    said: frozenset[Phrase] = frozenset()  # of `phrases`, without synonyms

    @property
    def is_wide(self) -> bool:
        """So many synonyms are rather goods of one family: `sprei, selimut, bantal`."""
        is_word = all(len(phrase) == 1 for phrase in self.said)
        return is_word and self.category is None and len(self.phrases) >= _MIN_PHRASES_OF_FAMILY

    def holds(self, name: str, brand: str | None, vocabulary: Vocabulary) -> bool | None:
        """Whether the product is of this kind; None if its name does not say what it is."""
        if self.words:
            return not self.words.isdisjoint(tokenize(name))
        index = vocabulary.goods
        heads = _heads(name, brand, index)
        if not heads:
            return None
        kinds = {kind for head in heads for kind in _kinds_of(head.phrase, index)}
        if not self.phrases:
            alike = [one for kind in kinds if kind not in index.categories for one in index.spellings(kind)]
            kinds |= {kind for one in alike for kind in (one, one[:1])}  # an ultrabook is a `laptop tipis`
        is_of_category = self.category is not None and self.category in {index.categories.get(kind) for kind in kinds}
        return is_of_category or not self.phrases.isdisjoint(kinds)


def wanted_kind(text: str, category: str | None, vocabulary: Vocabulary) -> GoodsKind | None:
    """None if the words name no goods: then all of the category are, or all that match."""
    index = vocabulary.goods
    # The brands of a query stand in a field of their own: a `tenda` in its words is a tent.
    words = [replace(one, is_brand=False) for one in goods_words(Sentence(text).words(), index)]
    nouns = main_nouns(words, index)
    nouns = [*nouns[:1], *(one for one in nouns[1:] if one.phrase[0] not in word_list("component"))]
    if category is not None:
        nouns = [one for one in nouns if one.category == category]  # of fans, those that stand on a table
    if nouns:
        head = _head(nouns)
        if len(head.phrase) == 1 and head.text in word_list("no kind") and nouns[1:]:
            return GoodsKind(frozenset({(*head.phrase, *nouns[1].phrase)}))
        said = frozenset(_kinds_of(head.phrase, index))
        named = {one for kind in _kinds_of(head.phrase, index) for one in (kind, *index.spellings(kind))}
        own = next((slug for one in said if (slug := index.own_names.get(one))), None)
        return GoodsKind(frozenset(named), own, said=said)
    if category is not None:
        return GoodsKind(category=category) if category in vocabulary.parents else None
    unknown = {one.text for one in words if one.text.isalpha() and one.text not in index.known_words}
    unknown = {word for word in unknown if len(word) >= _MIN_LETTERS_OF_NAME}
    return GoodsKind(words=frozenset(unknown)) if unknown else None


def _heads(name: str, brand: str | None, index: GoodsIndex) -> list[GoodsWord]:
    """The noun that says what the goods are, and the nouns beside it that say the same: a `teko listrik kettle`."""
    found, own_brand = list[GoodsWord](), tokenize(brand)
    for number, one in enumerate(goods_words(Sentence(name).words(), index)):
        is_inside = number > 0 and one.phrase[0] in word_list("component")
        is_noun = bool(one.category or one.is_noun) and list(one.phrase) != own_brand and not is_inside
        if not is_noun and not found:
            continue
        if not is_noun or one.text in word_list("purpose"):
            break
        if found and _head([found[-1], one]) is one:
            found = [one]
        elif (
            not found or one.category == found[0].category is not None or one.phrase in index.spellings(found[0].phrase)
        ):
            found.append(one)
        else:
            break
    return found


def _head(nouns: Sequence[GoodsWord]) -> GoodsWord:
    """An Indonesian noun stands first; a device before its part is English: a laptop stand."""
    first, *rest = nouns
    if rest and first.category in word_list("device") and first.phrase[0] not in word_list("part"):
        second = rest[0]
        if second.phrase[0] in word_list("part") - word_list("description") or second.category in word_list(
            "carrier"
        ) - {first.category}:
            return second
    return first


def _kinds_of(phrase: Phrase, index: GoodsIndex) -> list[Phrase]:
    """The phrase and the broader one in it: a `kursi gaming` is a `kursi`, an office chair a chair."""
    kinds, category = [phrase], index.categories.get(phrase)
    for length in range(1, len(phrase)):
        first, last = phrase[:length], phrase[-length:]
        if length == 1 and first[0] in word_list("no kind"):
            continue
        is_same = category is not None and index.categories.get(first) == category
        is_wider = category is None and length + (first[0] not in word_list("english noun")) > 1
        is_noun = first in index.nouns or first[0] in word_list("part")
        if is_noun and (is_same or is_wider or first[0] in word_list("part")):
            kinds.append(first)
        elif last in index.nouns and category is not None and index.categories.get(last) == category:
            kinds.append(last)
    return kinds
