"""Corrects misspelt words by the lexicon, the table of all words of the catalogue."""

from collections.abc import Iterable
from string import ascii_lowercase

from sqlalchemy.orm import Session

from tis.marketplace.search.sql import placeholders, run
from tis.marketplace.search.tokens import tokenize

_MIN_WORD_CHARS = 4
_MIN_CHARS_FOR_TWO_TYPOS = 8


def document_counts(session: Session, words: Iterable[str]) -> dict[str, int]:
    """How many products contain each word. Words that no product contains are missing."""
    names, values = placeholders("word", sorted(set(words)))
    if not values:
        return {}
    return dict(run(session, f"SELECT term, count FROM lexicon WHERE term IN {names}", values))


def is_known_prefix(session: Session, prefix: str) -> bool:
    sql = "SELECT 1 FROM lexicon WHERE term >= :prefix AND term < :prefix_end LIMIT 1"
    return bool(run(session, sql, {"prefix": prefix, "prefix_end": _prefix_end(prefix)}))


def correct_spelling(session: Session, word: str) -> str | None:
    """The closest other word, the most common one among equally close ones. Words with digits are not corrected."""
    if len(word) < _MIN_WORD_CHARS or any(letter.isdigit() for letter in word):
        return None
    max_distance = 1 if len(word) < _MIN_CHARS_FOR_TWO_TYPOS else 2
    return _closest(word, max_distance, _same_first_letter(session, word, max_distance)) or _closest(
        word, 1, _typo_in_first_letter(session, word)
    )


def _closest(word: str, max_distance: int, known: Iterable[tuple[str, int]]) -> str | None:
    from rapidfuzz.distance import DamerauLevenshtein

    candidates = [
        (distance, -count, term)
        for term, count in known
        if term != word
        and (distance := DamerauLevenshtein.distance(word, term, score_cutoff=max_distance)) <= max_distance
    ]
    return min(candidates)[2] if candidates else None


def _same_first_letter(session: Session, word: str, max_distance: int) -> list[tuple[str, int]]:
    sql = (
        "SELECT term, count FROM lexicon WHERE term >= :first AND term < :prefix_end"
        " AND length(term) BETWEEN :min_length AND :max_length"
    )
    values = {
        "first": word[0],
        "prefix_end": _prefix_end(word[0]),
        "min_length": len(word) - max_distance,
        "max_length": len(word) + max_distance,
    }
    known = [(term, count) for term, count in run(session, sql, values)]
    return [(term, count) for term, count in known + _synonyms(session) if term.isalpha()]


def _synonyms(session: Session) -> list[tuple[str, int]]:
    sql = "SELECT term FROM synonyms UNION SELECT name_id FROM categories UNION SELECT name_en FROM categories"
    terms = run(session, sql)
    return [(words[0], 0) for [term] in terms if len(words := tokenize(term)) == 1]


def _typo_in_first_letter(session: Session, word: str) -> list[tuple[str, int]]:
    """The words that a typo at the first letter can come from are few enough to look each up."""
    rest = word[1:]
    guesses = {rest, word[1] + word[0] + word[2:]}
    guesses |= {letter + tail for letter in ascii_lowercase for tail in (rest, word)}
    names, values = placeholders("guess", sorted(guesses))
    rows = run(session, f"SELECT term, count FROM lexicon WHERE term IN {names}", values)
    return [(term, count) for term, count in rows]


def _prefix_end(prefix: str) -> str:
    """Greater than every word with this prefix."""
    return prefix + "\U0010ffff"
