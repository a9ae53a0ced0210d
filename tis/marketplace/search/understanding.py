"""Turns the text that a buyer types into a `TextQuery`: spelling correction, synonyms, prefixes, relaxation."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from sqlalchemy.orm import Session

from tis.marketplace.search.backends.text_index import TextIndex
from tis.marketplace.search.common_words import FUNCTION_WORDS, NEGATIONS, PRAISE_WORDS
from tis.marketplace.search.corrections import corrected_word, stems_of, words_also_meant
from tis.marketplace.search.long_texts import MIN_WORDS, telling_words, wished_clauses, wished_noun
from tis.marketplace.search.main_noun import nouns_of, purpose_of, with_main_noun, with_noun
from tis.marketplace.search.measures import UNIT_OF, equal_measures
from tis.marketplace.search.said_shops import with_shops, words_of_shops
from tis.marketplace.search.spelling import document_counts
from tis.marketplace.search.sql import run
from tis.marketplace.search.text_query import MAX_WORDS, Term, TermGroup, TextQuery
from tis.marketplace.search.tokens import SaidWord, category_token, head_token, said_words
from tis.marketplace.search.vocabulary import Phrase, Vocabulary

_MAX_PHRASE_WORDS = 3
# A last word that this many products contain is hardly a prefix, and looking up common prefixes is slow.
_MIN_COUNT_OF_WHOLE_WORD = 1000
_MAX_LONG_TEXT_CHARS = 2000
_MAX_NOUNS = 200
_LEAST_SHARE_OF_WISHED = 0.4
_MAX_CATEGORY_TOKENS = 40


@dataclass(frozen=True)
class UnderstoodText:
    text_query: TextQuery
    corrected: str | None = None
    did_you_mean: str | None = None  # the query with common words in place of rare ones that are like them
    is_cut: bool = False  # it has more words than are looked for


@dataclass
class QueryExpansions:
    """Synonyms of each phrase of a query, and the tokens of the categories that it names."""

    synonyms: dict[Phrase, list[Phrase]] = field(default_factory=dict)
    category_tokens: dict[Phrase, list[str]] = field(default_factory=dict)

    def __contains__(self, phrase: Phrase) -> bool:
        return phrase in self.synonyms or phrase in self.category_tokens

    def update(self, other: "QueryExpansions") -> None:
        self.synonyms |= other.synonyms
        self.category_tokens |= other.category_tokens

    def add_synonym(self, phrase: Phrase, other: Phrase) -> None:
        if phrase and other and other != phrase and other not in self.synonyms.setdefault(phrase, []):
            self.synonyms[phrase].append(other)

    def add_category(self, phrase: Phrase, slug: str, vocabulary: Vocabulary) -> None:
        """Sellers name a category by any of its names."""
        names = sorted(vocabulary.names.get(slug, ())) if phrase else ()
        tokens = self.category_tokens.setdefault(phrase, []) if names else []
        tokens += [token for name in names if (token := category_token(name)) and token not in tokens]
        del tokens[_MAX_CATEGORY_TOKENS:]


def understand(session: Session, index: TextIndex, vocabulary: Vocabulary, text: str) -> UnderstoodText:
    said = _known_forms(session, said_words(text))
    unsaid = FUNCTION_WORDS | PRAISE_WORDS
    if len(said) >= MIN_WORDS:
        return _understand_long(session, index, vocabulary, text)
    in_phrases = _in_known_phrases(vocabulary, [one.word for one in said])
    negated = _negated(vocabulary, [one.word for one in said])
    kept = [
        one
        for number, one in enumerate(said)
        if number not in negated and (one.word not in unsaid or number in in_phrases)
    ] or said
    words = list(dict.fromkeys(one.word for one in kept))
    is_cut = len(words) > MAX_WORDS
    del words[MAX_WORDS:]
    if not words:
        return UnderstoodText(TextQuery(()))
    parts = {one.word: one.parts for one in kept if one.parts and one.word in words}
    is_last_said = words[-1] == said[-1].word
    expansions, counts = _expansions(vocabulary, words), document_counts(session, words)
    shops = words_of_shops(session, vocabulary, words)
    meaningful = {word for phrase in (*expansions.synonyms, *expansions.category_tokens) for word in phrase}
    correctable = [word for word in words if not (word in shops or word in UNIT_OF or word in meaningful)]
    may_go_on = words[-1] if is_last_said else None
    corrections = {word: corrected_word(session, vocabulary, word, counts, may_go_on) for word in correctable}
    also_meant = words_also_meant(session, index, vocabulary, correctable, counts)
    corrected = [corrections.get(word, word) for word in words]
    if is_corrected := corrected != words:
        words = list(dict.fromkeys(corrected))
        expansions, counts = _expansions(vocabulary, words), document_counts(session, words)
        shops = words_of_shops(session, vocabulary, words)
    for word in words:
        expansions.add_synonym((word,), parts.get(word, ()))
        for measure in equal_measures(word):
            expansions.add_synonym((word,), (measure,))
        if other := also_meant.beside.get(word):
            for phrase in ((other,), *vocabulary.synonyms.get((other,), ())):
                expansions.add_synonym((word,), phrase)
    _add_compounds(session, words, expansions)
    _leave_brands(session, expansions)
    query = _text_query(words, expansions, counts, may_be_prefix=is_last_said)
    query = with_shops(query, shops, counts)
    names_shop = any(word not in counts for word in shops)
    query = with_main_noun(session, index, query, purpose_of([one.word for one in said]), names_shop=names_shop)
    did_you_mean = " ".join(also_meant.others.get(word, word) for word in words) if also_meant.others else None
    return UnderstoodText(query, " ".join(words) if is_corrected else None, did_you_mean, is_cut=is_cut)


def _in_known_phrases(vocabulary: Vocabulary, words: Sequence[str]) -> set[int]:
    """Where words stand that mean something together: a `telepon genggam`."""
    return {
        place
        for length in range(2, _MAX_PHRASE_WORDS + 1)
        for start in range(len(words) - length + 1)
        if (phrase := tuple(words[start : start + length])) in vocabulary.synonyms or phrase in vocabulary.phrases
        for place in range(start, start + length)
    }


def _negated(vocabulary: Vocabulary, words: Sequence[str]) -> set[int]:
    """Where words stand that the buyer does not want: `kursi kantor tanpa roda`, but not `bor tanpa kabel`."""
    return {
        place
        for start, word in enumerate(words[:-1])
        if start and word in NEGATIONS and (word, words[start + 1]) not in vocabulary.synonyms
        for place in (start, start + 1)
    }


def _understand_long(session: Session, index: TextIndex, vocabulary: Vocabulary, text: str) -> UnderstoodText:
    """Of a pasted text, the words that say most, as they are: nobody typed them, so they are not corrected."""
    clauses = wished_clauses(text[:_MAX_LONG_TEXT_CHARS])
    said = [word for clause in clauses for word in _content_words(clause)]
    meant = {word: [word, *_single_words(vocabulary, word), *stems_of(word)] for word in dict.fromkeys(said)}
    known = {one for others in meant.values() for one in others}
    counts = document_counts(session, [*known, *map(head_token, known)])
    stems = {word: next((one for one in others if one in counts), word) for word, others in meant.items()}

    def words_of(clause: str) -> list[str]:
        return [word if (word,) in vocabulary.synonyms else stems.get(word, word) for word in _content_words(clause)]

    said = [word for clause in clauses for word in words_of(clause)]
    own = {word: max((counts.get(one, 0) for one in meant.get(word, [word])), default=0) for word in said}
    heads = {word: sum(counts.get(head_token(one), 0) for one in meant.get(word, [word])) for word in said}
    known_words = [word for word in dict.fromkeys(said) if own[word]]
    if not known_words:
        return UnderstoodText(TextQuery(()), is_cut=True)
    expansions = _expansions(vocabulary, known_words)
    for clause in clauses:
        expansions.update(_expansions(vocabulary, words_of(clause)))
    _leave_brands(session, expansions)
    phrases = dict.fromkeys(phrase for clause in clauses for phrase in _phrases(words_of(clause)))
    named = [phrase for phrase in phrases if phrase in expansions or (len(phrase) == 1 and own.get(phrase[0]))]
    candidates = [_group_of(phrase, expansions) for phrase in named[:_MAX_NOUNS]]
    nouns = nouns_of(session, candidates, _LEAST_SHARE_OF_WISHED)
    nouns = [noun for noun in nouns if noun.terms[0].words not in vocabulary.broader] or nouns
    main = wished_noun(nouns, clauses, words_of)
    telling = telling_words(said, own, heads, max(counts.values(), default=1), main.terms[0].words if main else ())
    for word in telling:
        for measure in equal_measures(word):
            expansions.add_synonym((word,), (measure,))
    query = _text_query(telling, expansions, counts, may_be_prefix=False)
    if main:
        query = with_noun(session, index, query, main, is_sure=True)
    return UnderstoodText(query, is_cut=len(set(_content_words(text))) > len(telling))


def _content_words(clause: str) -> list[str]:
    unsaid = FUNCTION_WORDS | PRAISE_WORDS
    return [one.word for one in said_words(clause) if one.word not in unsaid and len(one.word) > 1]


def _single_words(vocabulary: Vocabulary, word: str) -> list[str]:
    return [other[0] for other in vocabulary.synonyms.get((word,), ()) if len(other) == 1]


def _add_compounds(session: Session, words: Sequence[str], expansions: QueryExpansions) -> None:
    """`mouse pad` is also `mousepad`, if the catalogue has that."""
    pairs = {(one, other): one + other for one, other in pairwise(words) if one.isalpha() and other.isalpha()}
    counts = document_counts(session, pairs.values()) if pairs else {}
    for pair, joined in pairs.items():
        if joined in counts:
            expansions.add_synonym(pair, (joined,))


def _leave_brands(session: Session, expansions: QueryExpansions) -> None:
    """`hp` is a telephone, but in `printer hp` it is a brand: beside another noun, a brand is nothing else."""
    nouns = [phrase for phrase, tokens in expansions.category_tokens.items() if tokens]
    if len(nouns) < 2:
        return
    sql = "SELECT 1 FROM product_search WHERE brand_key = :brand LIMIT 1"
    found = [phrase for phrase in nouns if run(session, sql, {"brand": " ".join(phrase)})]
    for phrase in found if len(found) < len(nouns) else ():
        expansions.category_tokens.pop(phrase)
        expansions.synonyms.pop(phrase, None)


def _known_forms(session: Session, said: Sequence[SaidWord]) -> list[SaidWord]:
    """`wi-fi` stays one word if the catalogue has it; else its parts are words of their own."""
    counts = document_counts(session, [one.word for one in said if one.parts])
    return [
        form for one in said for form in (map(SaidWord, one.parts) if one.parts and one.word not in counts else [one])
    ]


def _text_query(
    words: list[str], expansions: QueryExpansions, counts: dict[str, int], *, may_be_prefix: bool
) -> TextQuery:
    """Groups words, the longest phrase with a synonym or category first."""
    groups, start = [], 0
    while start < len(words):
        length = next(
            (size for size in range(_MAX_PHRASE_WORDS, 1, -1) if tuple(words[start : start + size]) in expansions), 1
        )
        phrase = tuple(words[start : start + length])
        start += length
        is_prefix = may_be_prefix and start >= len(words) and _may_be_prefix(phrase, expansions, counts)
        groups.append(_group_of(phrase, expansions, is_prefix=is_prefix))
    return TextQuery(tuple(groups))


def _group_of(phrase: Phrase, expansions: QueryExpansions, *, is_prefix: bool = False) -> TermGroup:
    synonyms = (Term(synonym) for synonym in expansions.synonyms.get(phrase, ()))
    return TermGroup((Term(phrase, is_prefix), *synonyms), tuple(expansions.category_tokens.get(phrase, ())))


def _may_be_prefix(phrase: Phrase, expansions: QueryExpansions, counts: dict[str, int]) -> bool:
    """Units and words with a meaning of their own are no beginning of a model: `gb` is not GB203."""
    word = phrase[-1]
    if len(word) < 2 or word in UNIT_OF or phrase in expansions:
        return False
    return counts.get(word, 0) < _MIN_COUNT_OF_WHOLE_WORD


def _expansions(vocabulary: Vocabulary, words: Sequence[str]) -> QueryExpansions:
    expansions = QueryExpansions()
    for phrase in _phrases(words):
        for other in vocabulary.synonyms.get(phrase, ()):
            expansions.add_synonym(phrase, other)
        for slug in vocabulary.phrases.get(phrase, ()):
            expansions.add_category(phrase, slug, vocabulary)
    return expansions


def _phrases(words: Sequence[str]) -> list[Phrase]:
    return [
        tuple(words[start : start + length])
        for length in range(1, _MAX_PHRASE_WORDS + 1)
        for start in range(len(words) - length + 1)
    ]
