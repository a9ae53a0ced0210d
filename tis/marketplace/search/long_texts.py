"""A pasted message or specification: which of its words say what is wanted."""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from tis.marketplace.search.text_query import MAX_WORDS, TermGroup

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
