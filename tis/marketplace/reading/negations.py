"""What a buyer does not want: brands, words, places."""

from collections.abc import Sequence
from typing import Any

from tis.marketplace.reading.sentence import Sentence, SentenceWord
from tis.marketplace.reading.vocabulary import MAX_PHRASE_WORDS, GoodsIndex
from tis.marketplace.reading.word_lists import word_list

_OF_TWO = {("other", "than"), ("anything", "but"), ("apart", "from"), ("luar", ""), ("but", "not"), ("asal", "bukan")}
_OUTSIDE = {"luar", "outside"}
_MAX_TERMS = 20


def is_negation_before(words: Sequence[SentenceWord], start: int) -> bool:
    """Whether the word before `words[start]` says that it is not wanted."""
    if not start:
        return False
    word, before = words[start - 1].text, words[start - 2].text if start > 1 else ""
    if word in word_list("negation") or word in _OUTSIDE or (before, word) in _OF_TWO:
        return True
    return word in word_list("will") and before in word_list("not", "negation")


def take_negations(sentence: Sentence, index: GoodsIndex) -> dict[str, Any]:
    """Places are taken before; what remains are brands and words."""
    brands, terms, start = list[str](), list[str](), 0
    words = sentence.words()
    while start < len(words):
        end = _end_of_negation(words, start)
        if end is None or _is_positive(words, start, end, index):
            start += 1
            continue
        first, position = start, end
        while position < len(words) and len(brands) + len(terms) < _MAX_TERMS:
            position = _skip(words, position, word_list("before unwanted"))
            phrase = _phrase_at(words, position, index)
            if not phrase:
                break
            name = index.brand_names.get(phrase, " ".join(phrase))
            (brands if phrase in index.brands else terms).append(name)
            position = end = position + len(phrase)
            following = _skip(words, position, word_list("conjunction"))
            again = _end_of_negation(words, following)
            if following == position or (
                again is None and not _goes_on(words, following, index, is_brand=phrase in index.brands)
            ):
                break
            position = again or following
        if brands or terms:
            fields = [name for name, found in (("exclude_brands", brands), ("exclude_terms", terms)) if found]
            sentence.take(words[first].start, words[end - 1].end, "negation", *fields)
        start = max(end, first + 1)
    found = {"exclude_brands": brands, "exclude_terms": terms}
    return {name: list(dict.fromkeys(value)) for name, value in found.items() if value}


def _end_of_negation(words: Sequence[SentenceWord], start: int) -> int | None:
    if start >= len(words):
        return None
    pair = words[start].text, words[start + 1].text if start + 1 < len(words) else ""
    if pair in _OF_TWO or (pair[0] in word_list("not") and pair[1] in word_list("will")):
        return start + 2
    return start + 1 if pair[0] in word_list("negation") else None


def _is_positive(words: Sequence[SentenceWord], start: int, end: int, index: GoodsIndex) -> bool:
    """`tanpa kabel` is a word for wireless, and `no problem` speaks of no goods."""
    if end >= len(words):
        return True
    return (words[start].text, words[end].text) in index.synonyms or words[end].text in word_list("no unwanted goods")


def _skip(words: Sequence[SentenceWord], position: int, skipped: frozenset[str]) -> int:
    while position < len(words) and words[position].text in skipped:
        position += 1
    return position


def _phrase_at(words: Sequence[SentenceWord], start: int, index: GoodsIndex) -> tuple[str, ...]:
    """The longest phrase that the vocabulary knows, else the word."""
    for length in range(MAX_PHRASE_WORDS, 0, -1):
        at = words[start : start + length]
        phrase = tuple(index.corrected(word.text) or word.text for word in at)
        if len(at) < length or (phrase not in index.brands and phrase not in index.synonyms):
            continue
        following = words[start + length].text if start + length < len(words) else ""
        has_model = phrase in index.brands and any(map(str.isdecimal, following))
        return (*phrase, following) if has_model else phrase  # of Samsung, the A03 only
    if start >= len(words) or words[start].is_sign or words[start].text in word_list("function"):
        return ()
    return (index.corrected(words[start].text) or words[start].text,)


def _goes_on(words: Sequence[SentenceWord], start: int, index: GoodsIndex, *, is_brand: bool) -> bool:
    """A list of brands goes on with a brand: `jangan asus, budget 5 juta`."""
    phrase = _phrase_at(words, _skip(words, start, word_list("before unwanted")), index)
    return bool(phrase) and (phrase in index.brands) == is_brand and phrase not in index.own_names
