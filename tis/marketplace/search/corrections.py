"""Words that the catalogue does not have, or hardly: with an ending, or with a slip."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy.orm import Session

from tis.marketplace.reading.vocabulary import Vocabulary
from tis.marketplace.search.backends.text_index import TextIndex
from tis.marketplace.search.spelling import correct_spelling, document_counts, is_known_prefix
from tis.marketplace.search.sql import run
from tis.marketplace.search.text_query import Term, TermGroup, TextMatch, TextQuery

_MAX_COUNT_OF_RARE = 2
_MIN_COUNT_OF_COMMON = 5
_MIN_TIMES_AS_COMMON = 5
_ENDINGS = ("nya", "2", "es", "s")
_MIN_STEM_CHARS = 3


@dataclass(frozen=True)
class AlsoMeant:
    """Common words that are like a rare one: those of `beside` are looked for, too, the others are only offered."""

    others: dict[str, str] = field(default_factory=dict)
    beside: dict[str, str] = field(default_factory=dict)


def corrected_word(
    session: Session, vocabulary: Vocabulary, word: str, counts: Mapping[str, int], may_go_on: str | None
) -> str:
    """The word itself if some product has it, or if it is the beginning of one that is still being typed."""
    if word in counts or (word == may_go_on and is_known_prefix(session, word)):
        return word
    if stem := _known_stem(session, vocabulary, word):
        return stem
    other = correct_spelling(session, vocabulary, word)
    return other if other and _finds_products(session, vocabulary, other) else word


def words_also_meant(
    session: Session, index: TextIndex, vocabulary: Vocabulary, words: Sequence[str], counts: Mapping[str, int]
) -> AlsoMeant:
    """A rare word that is in no name or label is a seller's slip, and its products are few."""
    found = AlsoMeant()
    for word in words:
        if not 0 < counts.get(word, 0) <= _MAX_COUNT_OF_RARE:
            continue
        other = correct_spelling(session, vocabulary, word)
        least = max(_MIN_COUNT_OF_COMMON, _MIN_TIMES_AS_COMMON * counts[word])
        if other is not None and document_counts(session, [other]).get(other, 0) >= least:
            found.others[word] = other
            if not _is_in_labels(session, index, word):
                found.beside[word] = other
    return found


def stems_of(word: str) -> list[str]:
    """The word without an ending: `laptopnya`, `buku2`, `laptops`, `watches`."""
    return [
        word.removesuffix(ending)
        for ending in _ENDINGS
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM_CHARS
    ]


def _known_stem(session: Session, vocabulary: Vocabulary, word: str) -> str | None:
    stems = [stem for stem in stems_of(word) if stem.isalpha()]
    counts = document_counts(session, stems) if stems else {}
    return next((stem for stem in stems if counts.get(stem) or (stem,) in vocabulary.synonyms), None)


def _finds_products(session: Session, vocabulary: Vocabulary, word: str) -> bool:
    """A word of the vocabulary may be one that no shop uses."""
    phrases = [(word,), *vocabulary.synonyms.get((word,), ())]
    counts = document_counts(session, [part for phrase in phrases for part in phrase])
    return (word,) in vocabulary.phrases or any(all(part in counts for part in phrase) for phrase in phrases)


def _is_in_labels(session: Session, index: TextIndex, word: str) -> bool:
    source = index.match_source(TextMatch(TextQuery((TermGroup((Term((word,)),)),)), "labels"))
    where = " AND ".join(source.conditions) or "1 = 1"
    sql = f"{source.with_clause}SELECT 1 FROM {source.tables} WHERE {where} LIMIT 1"
    return bool(run(session, sql, source.values))
