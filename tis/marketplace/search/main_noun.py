"""Which noun of a text is wanted: a `tas laptop` is a bag, and so is a `laptop bag`.

Of a pasted message or specification also which of its words say what is wanted.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sqlalchemy.orm import Session

from tis.marketplace.reading.tokens import said_words
from tis.marketplace.reading.vocabulary import Vocabulary
from tis.marketplace.reading.word_lists import word_list
from tis.marketplace.search.backends.text_index import TextIndex
from tis.marketplace.search.expansions import QueryExpansions, phrases_of
from tis.marketplace.search.index_tokens import category_token, head_token
from tis.marketplace.search.spelling import document_counts, stems_of
from tis.marketplace.search.sql import run
from tis.marketplace.search.text_query import MAX_WORDS, TermGroup, TextMatch, TextQuery, UnderstoodText

_LEAST_SHARE_OF_HEADS = 0.3  # of the products with a word, whose name it must begin
_MIN_SHOWING_ORDER, _NUM_SHOWING_ORDER = 2, 20  # products that show which noun stands for the goods
_NUM_SHOWING_CATEGORY = 200
_LEAST_SHARE_OF_CATEGORY = 0.6
_MAX_GROUPS = 8  # a longer text names many goods
MIN_WORDS = 25  # of a long text
_SENTENCE = re.compile(r"[.!?;\n]+(?=\s|$)|\n")
_CLAUSE = re.compile(r",\s|[()–]|\s-\s|\b(?:tapi|but)\b")
# What somebody has already, or does not want: in a whole sentence, for it goes on with a list.
_UNWANTED = re.compile(
    r"\b(?:(?:sudah|udah|udh) (?:punya|ada|lengkap|beli)|(?:ga|gak|nggak|enggak|tidak|tdk) (?:usah|perlu|butuh|cari)"
    r"|(?:do not|don't|does not|doesn't) need|not (?:wanted|needed|looking for|included|be included)|no need"
    r"|already (?:have|own|got)|separate order"
    r"|kecuali|selain|except|excluding|instead of|jangan|kemarin|last (?:time|year|week|month))\b"
)
_NEGATION = re.compile(
    r"\b(?:bukan|bkn|ga|gak|nggak|enggak|tidak|tdk|tanpa|not|no|never|nor|neither|without|don't|skip)\b"
)
_WISH = re.compile(
    r"\b(?:cari\w*|nyari|butuh\w*|perlu|beli|pengen|ingin|mau|upgrade|target|jenis|type|tipe|item|looking for|need\w*"
    r"|want\w*|recommend\w*|rekomendasi\w*|market for|advice on|order|should be)\b"
)
_WEIGHT_OF_NOUNS = 2.0
_WEIGHT_OF_MEASURES = 1.0
_WEIGHT_OF_OTHERS = 0.5
_WEIGHT_OF_REPEATED = 1.5
_MENTIONS_OF_A_WISH = 2
_MIN_CLAUSES = 2
_MAX_CHARS = 2000
_MAX_NOUNS = 200
_LEAST_SHARE_OF_WISHED = 0.4


def purpose_of(said: Sequence[str]) -> frozenset[str]:
    """The words behind `untuk`: what the goods are for, not what they are."""
    start = next((number for number, word in enumerate(said) if number and word in word_list("goal")), len(said))
    return frozenset(said[start:]) - frozenset(said[:start])


def with_main_noun(
    session: Session, index: TextIndex, query: TextQuery, purpose: frozenset[str], *, names_shop: bool = False
) -> TextQuery:
    """First the goods that the main noun says, then others that match the words."""
    if len(query.groups) > _MAX_GROUPS:
        return query
    nouns = nouns_of(session, query.groups)
    before = [one for one in nouns if one.terms[0].words[0] not in purpose]
    if not before:
        return query
    main, *others = before
    if (
        others
        and main.terms[0].words[0] not in word_list("component")
        and _is_english_order(session, index, main, others[-1])
    ):
        main = others[-1]
    return with_noun(session, index, query, main, is_sure=len(nouns) > 1 or bool(purpose) or names_shop)


def with_noun(session: Session, index: TextIndex, query: TextQuery, main: TermGroup, *, is_sure: bool) -> TextQuery:
    """With `is_sure`, goods that are something else come behind all that are."""
    heads = tuple(dict.fromkeys(head_token(term.words[0]) for term in main.terms))
    if not any(group.category_tokens for group in query.groups if group != main):
        query = replace(query, likely_categories=_likely_categories(session, index, main, heads))
    query = replace(query, heads=heads)
    if not is_sure:
        return query
    kind, everything = TermGroup((), (*heads, *main.category_tokens)), (1 << len(query.groups)) - 1
    stages = (everything | 1 << len(query.groups), everything)
    return replace(query, groups=(*query.groups, kind), stages=stages)


def nouns_of(
    session: Session, groups: Sequence[TermGroup], least_share: float = _LEAST_SHARE_OF_HEADS
) -> list[TermGroup]:
    """Words that names of products begin with, of so large a share of the products with the word."""
    words = {word for group in groups for term in group.terms for word in term.words}
    counts = document_counts(session, [*words, *map(head_token, words)])

    def is_noun(group: TermGroup) -> bool:
        heads = sum(counts.get(head_token(term.words[0]), 0) for term in group.terms)
        num = max(min(counts.get(word, 0) for word in term.words) for term in group.terms)
        return bool(group.category_tokens) or (heads > 0 and heads >= least_share * num)

    return [group for group in groups if is_noun(group)]


def _is_english_order(session: Session, index: TextIndex, first: TermGroup, last: TermGroup) -> bool:
    """Names say it: there is a "Charger Laptop", and no laptop's name has a charger in it."""

    def num_named(head: TermGroup, other: TermGroup) -> int:
        tokens = tuple(head_token(term.words[0]) for term in head.terms)
        match = TextMatch(TextQuery((TermGroup(other.terms),)), scope="name", required_tokens=(tokens,))
        return len(_categories(session, index, match, _NUM_SHOWING_ORDER))

    in_english = num_named(last, first)
    return in_english >= _MIN_SHOWING_ORDER and in_english > 2 * num_named(first, last)


def _likely_categories(session: Session, index: TextIndex, main: TermGroup, heads: tuple[str, ...]) -> tuple[str, ...]:
    """The category of most products whose name begins with the noun: a `coffee table` is no coffee."""
    match = TextMatch(TextQuery((TermGroup((), heads),)))
    found = Counter(_categories(session, index, match, _NUM_SHOWING_CATEGORY))
    category, count = max(found.items(), key=lambda one: (one[1], one[0]), default=("", 0))
    token = category_token(category)
    return (token,) if token and count >= _LEAST_SHARE_OF_CATEGORY * found.total() else ()


def _categories(session: Session, index: TextIndex, match: TextMatch, most: int) -> list[str]:
    """Of each product that matches, but at most so many."""
    source = index.match_source(match)
    rows = run(session, source.select("p.category_key", "LIMIT :most"), {**source.values, "most": most})
    return [category for [category] in rows]


def understand_long(session: Session, index: TextIndex, vocabulary: Vocabulary, text: str) -> UnderstoodText:
    """Of a pasted text, the words that say most, as they are: nobody typed them, so they are not corrected."""
    clauses = wished_clauses(text[:_MAX_CHARS])
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
    expansions = QueryExpansions.of(vocabulary, known_words)
    for clause in clauses:
        expansions.update(QueryExpansions.of(vocabulary, words_of(clause)))
    expansions.leave_brands(session)
    phrases = dict.fromkeys(phrase for clause in clauses for phrase in phrases_of(words_of(clause)))
    named = [phrase for phrase in phrases if phrase in expansions or (len(phrase) == 1 and own.get(phrase[0]))]
    candidates = [expansions.group_of(phrase) for phrase in named[:_MAX_NOUNS]]
    nouns = nouns_of(session, candidates, _LEAST_SHARE_OF_WISHED)
    nouns = [noun for noun in nouns if noun.terms[0].words not in vocabulary.broader] or nouns
    main = wished_noun(nouns, clauses, words_of)
    telling = telling_words(said, own, heads, max(counts.values(), default=1), main.terms[0].words if main else ())
    expansions.add_measures(telling)
    query = expansions.grouped(telling, counts, may_be_prefix=False)
    if main:
        query = with_noun(session, index, query, main, is_sure=True)
    return UnderstoodText(query, is_cut=len(set(_content_words(text))) > len(telling))


def wished_clauses(text: str) -> list[str]:
    """Without the sentences and clauses about other goods; the whole text if nothing else is left."""
    sentences = (sentence for sentence in _SENTENCE.split(text.lower()) if not _UNWANTED.search(sentence))
    clauses = [clause for sentence in sentences for clause in _CLAUSE.split(sentence)]
    wished = [clause for clause in clauses if clause.strip() and not _NEGATION.search(clause)]
    return wished if len(wished) >= _MIN_CLAUSES else [text]


def telling_words(
    words: Sequence[str], counts: Mapping[str, int], heads: Mapping[str, int], num: int, main: Sequence[str]
) -> list[str]:
    """Those of the catalogue that say most, in the order of the text: rare ones, nouns, and what is said again."""
    mentions = Counter(words)

    def telling(word: str) -> float:
        is_noun = heads.get(word, 0) * 3 >= counts[word]
        weight = _WEIGHT_OF_NOUNS if is_noun else _WEIGHT_OF_MEASURES if word[0].isdecimal() else _WEIGHT_OF_OTHERS
        return math.log1p(num / counts[word]) * weight * (_WEIGHT_OF_REPEATED if mentions[word] > 1 else 1)

    known = [word for word in mentions if counts.get(word)]
    best = set(sorted(known, key=lambda word: (-telling(word), word))[: MAX_WORDS - len(main)]) | set(main)
    return [word for word in known if word in best]


def wished_noun(
    nouns: Sequence[TermGroup], clauses: Sequence[str], words_of: Callable[[str], Sequence[str]]
) -> TermGroup | None:
    """The goods that the text speaks of again and again, most of all where it says that it looks for them."""
    scores = [0] * len(nouns)
    for number, clause in enumerate(clauses):
        said = set(words_of(clause))
        weight = _MENTIONS_OF_A_WISH if number == 0 or _WISH.search(clause) else 1
        for place, group in enumerate(nouns):
            scores[place] += weight * any(said.issuperset(term.words) for term in group.terms)
    # Of equals the longest: a power bank, no power.
    best = max(range(len(nouns)), key=lambda place: (scores[place], len(nouns[place].terms[0].words)), default=None)
    return nouns[best] if best is not None and scores[best] else None


def _content_words(clause: str) -> list[str]:
    return [
        one.word for one in said_words(clause) if one.word not in word_list("function", "praise") and len(one.word) > 1
    ]


def _single_words(vocabulary: Vocabulary, word: str) -> list[str]:
    return [other[0] for other in vocabulary.synonyms.get((word,), ()) if len(other) == 1]
