"""Corrects misspelt words by the lexicon, the table of all words of the catalogue."""

from collections.abc import Iterable, Sequence
from string import ascii_lowercase

from sqlalchemy.orm import Session

from tis.marketplace.reading.vocabulary import Vocabulary
from tis.marketplace.search.sql import placeholders, run

_MIN_WORD_CHARS = 4
_MIN_CHARS_FOR_TWO_TYPOS = 8
_MAX_EQUALLY_CLOSE = 1000
_JOINED_TERMS = {
    "sqlite": "group_concat(term, ' ')",
    "postgresql": "string_agg(term, ' ')",
    "mysql": "group_concat(term SEPARATOR ' ')",
}
_MAX_JOINED_BYTES = 2**24


def document_counts(session: Session, words: Iterable[str]) -> dict[str, int]:
    """How many products contain each word. Words that no product contains are missing."""
    names, values = placeholders("word", sorted(set(words)))
    if not values:
        return {}
    return dict(run(session, f"SELECT term, count FROM lexicon WHERE term IN {names}", values))


def is_known_prefix(session: Session, prefix: str) -> bool:
    sql = "SELECT 1 FROM lexicon WHERE term >= :prefix AND term < :prefix_end LIMIT 1"
    return bool(run(session, sql, {"prefix": prefix, "prefix_end": _prefix_end(prefix)}))


def correct_spelling(session: Session, vocabulary: Vocabulary, word: str) -> str | None:
    """The closest other word, the most common one among equally close ones. Words with digits are not corrected."""
    if len(word) < _MIN_WORD_CHARS or any(letter.isdigit() for letter in word):
        return None
    max_distance = 1 if len(word) < _MIN_CHARS_FOR_TWO_TYPOS else 2
    known = [*_same_first_letter(session, word, max_distance), *vocabulary.single_words]
    found = {term: distance for term, distance in _close_terms(word, max_distance, known).items() if term.isalpha()}
    found = found or _close_terms(word, 1, _typo_in_first_letter(session, word))
    nearest = sorted(term for term, distance in found.items() if distance == min(found.values()))[:_MAX_EQUALLY_CLOSE]
    counts = document_counts(session, nearest)
    return min(nearest, key=lambda term: (-counts.get(term, 0), term), default=None)


def _close_terms(word: str, max_distance: int, terms: Sequence[str]) -> dict[str, int]:
    """Other words, by their distance of Damerau and Levenshtein."""
    from rapidfuzz import process
    from rapidfuzz.distance import OSA, DamerauLevenshtein

    # OSA is five times faster, and counts 3 where letters change places around another one and the distance is 2.
    max_osa = max_distance + (max_distance > 1)
    near = process.extract(word, terms, scorer=OSA.distance, score_cutoff=max_osa, limit=None)
    distances = {term: DamerauLevenshtein.distance(word, term) for term, _, _ in near if term != word}
    return {term: distance for term, distance in distances.items() if distance <= max_distance}


def _same_first_letter(session: Session, word: str, max_distance: int) -> list[str]:
    values = {
        "first": word[0],
        "prefix_end": _prefix_end(word[0]),
        "min_length": len(word) - max_distance,
        "max_length": len(word) + max_distance,
    }
    dialect = session.get_bind().dialect.name
    length = "char_length" if dialect == "mysql" else "length"  # of letters, not of bytes
    where = f"term >= :first AND term < :prefix_end AND {length}(term) BETWEEN :min_length AND :max_length"
    if dialect == "mysql":
        run(session, f"SET SESSION group_concat_max_len = {_MAX_JOINED_BYTES}")  # else MySQL cuts the text after a KB
    # One long text is read three times faster than thousands of rows.
    [(terms,)] = run(session, f"SELECT {_JOINED_TERMS[dialect]} FROM lexicon WHERE {where}", values)
    return terms.split() if terms else []


def _typo_in_first_letter(session: Session, word: str) -> list[str]:
    """The words that a typo at the first letter can come from are few enough to look each up."""
    rest = word[1:]
    guesses = {rest, word[1] + word[0] + word[2:]}
    guesses |= {letter + tail for letter in ascii_lowercase for tail in (rest, word)}
    return list(document_counts(session, guesses))


def _prefix_end(prefix: str) -> str:
    """Greater than every word with this prefix."""
    return prefix + "\U0010ffff"
