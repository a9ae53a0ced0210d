"""Turns the text that a buyer types into a `TextQuery`: spelling correction, synonyms, prefixes, the main noun."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from sqlalchemy.orm import Session

from tis.marketplace.reading.measures import units
from tis.marketplace.reading.tokens import SaidWord, said_words
from tis.marketplace.reading.vocabulary import Phrase, Vocabulary
from tis.marketplace.reading.word_lists import word_list
from tis.marketplace.search.backends.text_index import TextIndex
from tis.marketplace.search.expansions import MAX_PHRASE_WORDS, QueryExpansions, compounds_of
from tis.marketplace.search.index_tokens import head_token, shop_token
from tis.marketplace.search.main_noun import MIN_WORDS, purpose_of, understand_long, with_main_noun
from tis.marketplace.search.spelling import corrected_word, document_counts, words_also_meant
from tis.marketplace.search.supplier_index import shop_counts
from tis.marketplace.search.text_query import MAX_WORDS, TermGroup, TextQuery, UnderstoodText

# A sentence has words that no product has, and short ones are like many others.
_MAX_WORDS_OF_A_NAME = 4
_MIN_CHARS_IN_A_SENTENCE = 6
_MIN_CHARS_OF_A_SHOP = 3
_OR = frozenset({"atau", "or"})


def understand(session: Session, index: TextIndex, vocabulary: Vocabulary, text: str) -> UnderstoodText:
    said = _known_forms(session, said_words(text))
    if len(said) >= MIN_WORDS:
        return understand_long(session, index, vocabulary, text)
    kept = _telling(vocabulary, said)
    every = list(dict.fromkeys(one.word for one in kept))
    words, is_cut = every[:MAX_WORDS], len(every) > MAX_WORDS
    if not words:
        return UnderstoodText(TextQuery(()))
    is_last_said = words[-1] == said[-1].word  # nothing stands behind it, so it may go on
    expansions = QueryExpansions.of(vocabulary, words)
    counts = _counts(session, words, expansions)
    shops = words_of_shops(session, vocabulary, words)
    least_chars = 0 if len(words) <= _MAX_WORDS_OF_A_NAME else _MIN_CHARS_IN_A_SENTENCE
    known = {*shops, *units(), *expansions.words}
    correctable = [word for word in words if word not in known and len(word) >= least_chars]
    may_go_on = words[-1] if is_last_said else None
    corrections = {word: corrected_word(session, vocabulary, word, counts, may_go_on) for word in correctable}
    others_meant, beside = words_also_meant(session, index, vocabulary, correctable, counts)
    corrected = [corrections.get(word, word) for word in words]
    if is_corrected := corrected != words:
        words = list(dict.fromkeys(corrected))
        expansions = QueryExpansions.of(vocabulary, words)
        counts = _counts(session, words, expansions)
        shops = words_of_shops(session, vocabulary, words)
    for word, other in beside.items():
        for phrase in ((other,), *vocabulary.synonyms.get((other,), ())):
            expansions.add_synonym((word,), phrase)
    for one in kept:
        if one.word in words:
            expansions.add_synonym((one.word,), one.parts)
    expansions.add_measures(words)
    expansions.add_compounds(words, counts)
    pairs = _alternatives(
        [one.word for one in said], [one for one, tokens in expansions.category_tokens.items() if tokens]
    )
    expansions.leave_brands(session, {word for pair in pairs for word in pair})
    query = _joined(expansions.grouped(words, counts, may_be_prefix=is_last_said), pairs)
    query = with_shops(query, shops, counts)
    names_shop = any(word not in counts for word in shops)
    query = with_main_noun(session, index, query, purpose_of([one.word for one in said]), names_shop=names_shop)
    did_you_mean = " ".join(others_meant.get(word, word) for word in words) if others_meant else None
    return UnderstoodText(query, " ".join(words) if is_corrected else None, did_you_mean, is_cut=is_cut)


def _alternatives(words: Sequence[str], categories: Sequence[Phrase]) -> set[tuple[str, str]]:
    """The words around `atau`, between names of categories."""
    last, first = {phrase[-1] for phrase in categories}, {phrase[0] for phrase in categories}
    pairs = {(words[at - 1], words[at + 1]) for at in range(1, len(words) - 1) if words[at] in _OR}
    return {(one, other) for one, other in pairs if one in last and other in first}


def _joined(query: TextQuery, pairs: Collection[tuple[str, str]]) -> TextQuery:
    """`laptop atau hp`: goods of either category."""
    groups, last = list[TermGroup](), ""
    for group in query.groups:
        said = group.terms[0].words
        if groups and (last, said[0]) in pairs and group.category_tokens and groups[-1].category_tokens:
            tokens = dict.fromkeys((*groups[-1].category_tokens, *group.category_tokens))
            groups[-1] = TermGroup((*groups[-1].terms, *group.terms), tuple(tokens))
        else:
            groups.append(group)
        last = said[-1]
    return replace(query, groups=tuple(groups))


def _counts(session: Session, words: Sequence[str], expansions: QueryExpansions) -> dict[str, int]:
    """Also of what the choice of the noun and of the order ask later: synonyms, and first words of names."""
    synonyms = {word for phrases in expansions.synonyms.values() for phrase in phrases for word in phrase}
    every = {*words, *compounds_of(words).values(), *synonyms}
    return document_counts(session, [*every, *map(head_token, every)])


def _telling(vocabulary: Vocabulary, said: Sequence[SaidWord]) -> Sequence[SaidWord]:
    """The words that say something about goods; all of them if none does."""
    in_phrases = _in_known_phrases(vocabulary, [one.word for one in said])
    unsaid = word_list("function", "praise")
    return [one for number, one in enumerate(said) if one.word not in unsaid or number in in_phrases] or said


def _in_known_phrases(vocabulary: Vocabulary, words: Sequence[str]) -> set[int]:
    """Where words stand that mean something together: a `telepon genggam`."""
    return {
        place
        for length in range(2, MAX_PHRASE_WORDS + 1)
        for start in range(len(words) - length + 1)
        if (phrase := tuple(words[start : start + length])) in vocabulary.synonyms or phrase in vocabulary.phrases
        for place in range(start, start + length)
    }


def _known_forms(session: Session, said: Sequence[SaidWord]) -> list[SaidWord]:
    """`wi-fi` stays one word if the catalogue has it; else its parts are words of their own."""
    counts = document_counts(session, [one.word for one in said if one.parts])
    return [
        form for one in said for form in (map(SaidWord, one.parts) if one.parts and one.word not in counts else [one])
    ]


def words_of_shops(session: Session, vocabulary: Vocabulary, words: Sequence[str]) -> Collection[str]:
    """Not the words for goods: who looks for a laptop does not want the mice of "Toko Laptop Jaya"."""
    return shop_counts(session, [word for word in words if _may_name_a_shop(word, vocabulary)])


def _may_name_a_shop(word: str, vocabulary: Vocabulary) -> bool:
    is_common = word in units() or word in word_list("function", "praise")
    is_of_goods = (word,) in vocabulary.synonyms or (word,) in vocabulary.phrases
    return len(word) >= _MIN_CHARS_OF_A_SHOP and not word[0].isdecimal() and not is_common and not is_of_goods


def with_shops(query: TextQuery, words: Collection[str], counts: Mapping[str, int]) -> TextQuery:
    """These words also match the products of shops that have them, behind all others.

    `counts`: a word that stands alone means the products that have it, if there are any.
    """
    if len(query.groups) == 1 and counts.get(query.groups[0].terms[0].words[0]):
        return query
    return replace(query, groups=tuple(_with_shop(group, words) for group in query.groups))


def _with_shop(group: TermGroup, words: Collection[str]) -> TermGroup:
    said = group.terms[0].words
    if len(said) > 1 or said[0] not in words or group.category_tokens:
        return group
    return replace(group, shop_tokens=(shop_token(said[0]),))
