"""Misspelt words: the word of the catalogue that was meant."""

from collections.abc import Iterable, Mapping, Sequence
from string import ascii_lowercase

from rapidfuzz import process
from rapidfuzz.distance import OSA, DamerauLevenshtein
from sqlalchemy.orm import Session

from tis.marketplace.reading.vocabulary import Vocabulary
from tis.marketplace.search.backends.text_index import TextIndex
from tis.marketplace.search.sql import placeholders, read_memo, run
from tis.marketplace.search.text_query import TextMatch, TextQuery

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
    known: dict[str, int | None] = read_memo(session).setdefault("lexicon", {})
    wanted = set(words)
    if unknown := sorted(wanted - known.keys()):
        names, values = placeholders("word", unknown)
        found = dict(run(session, f"SELECT term, count FROM lexicon WHERE term IN {names}", values))
        known |= {word: found.get(word) for word in unknown}
    return {word: count for word in wanted if (count := known[word]) is not None}


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


_MAX_COUNT_OF_RARE = 2
_MIN_COUNT_OF_COMMON = 5
_MIN_TIMES_AS_COMMON = 5
_ENDINGS = ("nya", "2", "es", "s")
_MIN_STEM_CHARS = 3


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
) -> tuple[dict[str, str], dict[str, str]]:
    """Common words that are like a rare one, to be offered; and those of them that are looked for, too.

    A rare word that is in no name or label is a seller's slip, and its products are few.
    """
    offered, beside = dict[str, str](), dict[str, str]()
    for word in words:
        if not 0 < counts.get(word, 0) <= _MAX_COUNT_OF_RARE:
            continue
        other = correct_spelling(session, vocabulary, word)
        least = max(_MIN_COUNT_OF_COMMON, _MIN_TIMES_AS_COMMON * counts[word])
        if other is not None and document_counts(session, [other]).get(other, 0) >= least:
            offered[word] = other
            if not _is_in_labels(session, index, word):
                beside[word] = other
    return offered, beside


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
    source = index.match_source(TextMatch(TextQuery.of_words(word), "labels"))
    return bool(run(session, source.select("1", "LIMIT 1"), source.values))
