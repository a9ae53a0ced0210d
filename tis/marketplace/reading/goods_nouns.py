"""The goods of a sentence: the category that its main noun names, brands, and what remains to be looked for."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tis.marketplace.reading.sentence import Sentence, SentenceWord
from tis.marketplace.reading.vocabulary import MAX_PHRASE_WORDS, GoodsIndex, Phrase, main_category
from tis.marketplace.reading.word_lists import word_list

_MAX_BRANDS = 20
_SIZES = ("ukuran", "ukurannya", "size")
_OR_WORDS = ("atau", "or", "ataupun")
OR = "atau"  # in the text that is left; the search knows it


@dataclass(frozen=True, slots=True)
class GoodsWord:
    """A phrase of the sentence as the catalogue spells it. A `category` makes it a noun, and so does `is_noun`."""

    phrase: Phrase
    start: int
    end: int
    category: str | None = None
    is_noun: bool = False
    is_brand: bool = False
    is_corrected: bool = False
    is_gap: bool = False  # a sign, or what another rule has taken

    @property
    def text(self) -> str:
        return " ".join(self.phrase)


@dataclass
class SaidGoods:
    category: str | None = None
    is_exact: bool = False
    brands: list[str] = field(default_factory=list)
    text: list[tuple[int, str]] = field(default_factory=list)  # where each word is, and the word
    has_noun: bool = False  # also one of no category
    has_component: bool = False  # `kamera` may be of a telephone, or the goods


def take_goods(sentence: Sentence, index: GoodsIndex) -> SaidGoods:
    words = list(goods_words(sentence.words(), index))
    found = SaidGoods()
    main = main_nouns(words, index)
    dropped: dict[int, Phrase] = {}
    if main:
        found.has_noun = any(one.phrase[0] not in word_list("component") for one in main)
        found.has_component = not found.has_noun
        found.category = _category_of(main, words, index)
        others = _alternatives(words, main, found.category)
        if others:
            found.category = None
            dropped = {one.start: () for one in others}
            dropped[main[-1].start] = (f" {OR} ".join(one.text for one in (main[-1], *others)),)
        named = [one for one in main if one.category == found.category]
        found.is_exact = bool(named) and not any(one.is_corrected for one in named)
        for one in named if found.category else ():
            sentence.note(
                one.start, one.end, "main noun" if not one.is_corrected else "main noun, corrected", "category"
            )
            if rest := _beside_own_name(one.phrase, found.category, index):
                dropped[one.start] = rest[0]
    for position, one in enumerate(words):
        if one.start in dropped:
            found.text += [(one.start, word) for word in dropped[one.start]]
            continue
        if one.text in _OR_WORDS and _is_between_wanted(words, position, dropped):
            found.text.append((one.start, OR))
        if one.is_gap:
            continue
        if len(one.phrase) > 1 and one.phrase[:1] in index.brands and one.phrase[:1] not in index.categories:
            found.brands.append(one.phrase[0])
        if one.is_brand and _is_brand_here(words, position, found, index):
            found.brands.append(index.brand_names.get(one.phrase, one.text))
            sentence.note(one.start, one.end, "brand", "brands")
        elif not (one.is_noun or one.category) and _says_nothing(one) and not _is_wanted(words, position):
            continue
        else:
            found.text.append((one.start, one.text))
            sentence.note(one.start, one.end, "words to look for", "text")
    found.brands = list(dict.fromkeys(found.brands))[:_MAX_BRANDS]
    if found.category is None and not found.has_noun and not word_list("phone maker").isdisjoint(found.brands):
        found.category = "smartphone" if ("smartphone",) in index.categories else None
    return found


def _is_between_wanted(words: Sequence[GoodsWord], position: int, dropped: dict[int, Phrase]) -> bool:
    """`kemeja batik atau gamis`, `merah atau biru`; brands and conditions have fields that hold several."""
    beside = [*words[max(0, position - 1) : position], *words[position + 1 : position + 2]]
    unwanted = (one.is_gap or one.is_brand or one.start in dropped or _says_nothing(one) for one in beside)
    return len(beside) == 2 and not any(unwanted)


def _beside_own_name(phrase: Phrase, category: str | None, index: GoodsIndex) -> list[Phrase]:
    """What a phrase says beside the name of the category; nothing if that is not in it."""
    for length in range(len(phrase), 0, -1):
        for start in range(len(phrase) - length + 1):
            if index.own_names.get(phrase[start : start + length]) == category:
                kinds = tuple(word for word in phrase[start : start + length] if word in word_list("kind"))
                return [phrase[:start] + kinds + phrase[start + length :]]
    return []


def _is_wanted(words: Sequence[GoodsWord], position: int) -> bool:
    """The `hemat` of `hemat listrik`, the L of `ukuran L`."""
    text, before, behind = words[position].text, words[:position][-1:], words[position + 1 : position + 2]
    if text == "hemat":
        return any(one.text in word_list("saved") for one in behind)
    return len(text) == 1 and text.isalpha() and any(one.text in _SIZES for one in before)


def _says_nothing(one: GoodsWord) -> bool:
    unsaid = word_list("function", "praise", "filler")
    return all(word in unsaid or (len(word) == 1 and not word.isdecimal()) for word in one.phrase)


def goods_words(words: Sequence[SentenceWord], index: GoodsIndex) -> Iterator[GoodsWord]:
    """The longest phrases that the vocabulary knows; other words alone."""
    spelt = [(index.corrected(word.text) or word.text) for word in words]
    start = 0
    while start < len(words):
        if words[start].is_sign:
            yield GoodsWord((words[start].text,), words[start].start, words[start].end, is_gap=True)
            start += 1
            continue
        for length in range(MAX_PHRASE_WORDS, 0, -1):
            phrase = tuple(spelt[start : start + length])
            if len(phrase) < length or any(word.is_sign for word in words[start : start + length]):
                continue
            known = _known(phrase, index)
            if known is None and (meant := index.corrected_phrase(phrase)):
                phrase, known = meant, _known(meant, index)
            if known or length == 1:
                of_words = words[start : start + length]
                is_corrected = any(word.text != new for word, new in zip(of_words, phrase, strict=True))
                category, is_noun, is_brand = known or (None, False, False)
                yield GoodsWord(phrase, of_words[0].start, of_words[-1].end, category, is_noun, is_brand, is_corrected)
                start += length
                break


def _known(phrase: Phrase, index: GoodsIndex) -> tuple[str | None, bool, bool] | None:
    category, is_brand = index.categories.get(phrase), phrase in index.brands
    names_goods = phrase[:1] in index.categories or phrase[-1:] in index.categories
    if is_brand and len(phrase) > 1 and (names_goods or (not category and phrase in index.nouns)):
        is_brand = False  # "Semen Gresik" begins with the goods
        return (category, True, False) if category else None
    is_noun = phrase in index.nouns or phrase[0] in word_list("part") and len(phrase) == 1
    if category or is_noun or is_brand or (len(phrase) > 1 and phrase in index.synonyms):
        return category, is_noun, is_brand
    return None


def main_nouns(words: Sequence[GoodsWord], index: GoodsIndex) -> list[GoodsWord]:
    """The first group of nouns beside each other; what is behind `untuk` or a sign is no part of it."""
    nouns = list[GoodsWord]()
    others = {one.category for one in words if one.category and one.phrase not in index.brands}
    for one in words:
        is_noun = one.category is not None or (one.is_noun and not one.is_brand)
        if (
            one.is_brand
            and one.category
            and others - word_list("phone thing") - {one.category}
            and not _is_alternative(words, one)
        ):
            is_noun = False  # `laptop hp`: the brand
        if nouns and one.text in _OR_WORDS:
            break  # `teh atau kopi` are two kinds of goods
        if is_noun and not _says_nothing(one):
            nouns.append(one)
        elif nouns and (one.is_gap or not one.is_brand or one.text in word_list("purpose")):
            if _is_category(nouns):
                break
            if one.text in word_list("purpose"):
                break
    return nouns


def _alternatives(words: Sequence[GoodsWord], main: Sequence[GoodsWord], category: str | None) -> list[GoodsWord]:
    """Others that are wanted too, as the last two of `laptop, hp atau tablet`. A `tas laptop atau hp` is one thing."""
    found = list[GoodsWord]()
    position = words.index(main[-1]) + 1 if category and category not in word_list("carrier") else len(words)
    while position + 1 < len(words) and words[position].text in word_list("conjunction"):
        other = words[position + 1]
        if other.category in (None, category) or (other.is_brand and not _is_alternative(words, other)):
            break
        found.append(other)
        position += 2
    return found


def _is_alternative(words: Sequence[GoodsWord], one: GoodsWord) -> bool:
    """`laptop atau hp`, `laptop, hp, tablet`: a telephone, but in `laptop asus atau hp` the brand."""
    position = words.index(one)
    before, after = words[:position][::-1], words[position + 1 :]
    return any(
        len(beside) > 1
        and beside[0].text in word_list("conjunction")
        and bool(beside[1].category)
        and not beside[1].is_brand
        for beside in (before, after)
    )


def _is_category(nouns: Sequence[GoodsWord]) -> bool:
    return any(one.category for one in nouns) or nouns[0].phrase[0] in word_list("part")


def _category_of(nouns: Sequence[GoodsWord], words: Sequence[GoodsWord], index: GoodsIndex) -> str | None:
    """Of nouns beside each other. An Indonesian noun stands first, an English one last; components follow devices."""
    first, *rest = nouns
    rest = [one for one in rest if one.phrase[0] not in word_list("component") or one.category in word_list("carrier")]
    if first.category is None:
        if first.phrase[0] in word_list("part") or len(first.phrase) > 1:
            return None
        return main_category([one.category for one in rest if one.category])
    if first.phrase[0] in word_list("component") and first.category != "storage":
        return first.category
    parts = [one for one in rest if one.category is None and one.phrase[0] in word_list("part")]
    if parts and first.category not in word_list("carrier") and index.own_names.get(first.phrase):
        return None if _follows(words, first, parts[0]) else first.category
    beside = [one.category for one in (first, *rest) if one.category]
    return main_category(beside)


def _follows(words: Sequence[GoodsWord], first: GoodsWord, part: GoodsWord) -> bool:
    between = [one for one in words if first.end <= one.start < part.start]
    return not between


def _is_brand_here(words: Sequence[GoodsWord], position: int, found: SaidGoods, index: GoodsIndex) -> bool:
    """A brand that is a word, too, is one only behind the goods: `router tenda`, `printer hp`, `tv lg`."""
    one = words[position]
    if one.text in word_list("component maker") and found.category is not None:
        return False
    if one.category is not None:  # of a `casing hp` it is the telephone
        others = {other.category for other in words} - {one.category}
        is_beside = bool(others - word_list("phone thing") - {None}) and one.category != found.category
        return is_beside and not _is_alternative(words, one)
    is_word = one.is_noun or _says_nothing(one) or one.phrase in index.synonyms
    if not is_word:
        return True
    before = [other for other in words[:position] if not other.is_gap]
    if _says_nothing(one):
        return any(other.category == found.category is not None for other in before)
    follows_noun = bool(before) and bool(before[-1].category or before[-1].is_noun) and not words[position - 1].is_gap
    return follows_noun and not word_list("description").issuperset(one.phrase)
