"""Lets of a model's free text only those sentences pass that the cards prove.

It may drop a true sentence, as the answer does not need it: names, prices, stock and distances are rendered by code.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from tis.marketplace.assistant.card_words import CardWords, Meant, tokens_of
from tis.marketplace.assistant.clean_text import contact_in, has_markup
from tis.marketplace.assistant.goods import ProductCard
from tis.marketplace.assistant.name_claims import NameClaims
from tis.marketplace.assistant.number_claims import NumberClaims
from tis.marketplace.assistant.offer_claims import OfferClaims
from tis.marketplace.kit.suspicious_texts import instruction_like
from tis.marketplace.reading.structured_query import StructuredQuery

MAX_TEXT_CHARS = 2_000
_ABBREVIATIONS = r"(?<!\b[Rr]p)(?<!\bRP)(?<!\b[Nn]o)(?<!\b[Jj]l)(?<!\bKab)(?<!\bkab)"
_SENTENCE_END = re.compile(rf"{_ABBREVIATIONS}(?<=[.!?…])[\"”')]?\s+")
_MARKS = re.compile(r"^\s*(?:[-*•–]\s+|\d{1,2}[.)]\s+(?=\D))|[*_]{1,3}")  # of lists and emphasis
_NOT_PROSE = frozenset("@{}<>|\\`~^=[]")
_SPELT_ADDRESS = re.compile(r"\b(?:dot|titik)\s+(?:com|co|id|net|org)\b|\bhttps?\b|\bwww\b", re.IGNORECASE)


@dataclass(frozen=True)
class VerifiedText:
    kept: str
    reasons: list[str]  # of the sentences that were dropped


def verify(
    text: str, cards: Sequence[ProductCard], query: StructuredQuery, known_brands: Collection[str] = frozenset()
) -> VerifiedText:
    """`known_brands`: the keys of all brands of the catalogue; those of other products must not be named."""
    checker = _Checker(cards, query, known_brands)
    checked = [(sentence, checker.reason(sentence)) for sentence in _sentences(text[:MAX_TEXT_CHARS])]
    kept = " ".join(sentence for sentence, reason in checked if reason is None)
    return VerifiedText(kept, [reason for _, reason in checked if reason is not None])


class _Checker:
    def __init__(self, cards: Sequence[ProductCard], query: StructuredQuery, known_brands: Collection[str]) -> None:
        self._cards = [CardWords(card) for card in cards]
        self._query = query
        self._offers = OfferClaims(self._cards, query)
        self._names = NameClaims(self._cards, query, known_brands)

    def reason(self, sentence: str) -> str | None:
        if contact_in(sentence) or _SPELT_ADDRESS.search(sentence):
            return "contact"
        if has_markup(sentence) or not _NOT_PROSE.isdisjoint(sentence):
            return "markup"
        if instruction_like(sentence) is not None:
            return "instruction"
        if not all(map(_is_readable, sentence)):
            return "script"
        tokens = tokens_of(sentence)
        if not any(token.text.isalpha() for token in tokens):
            return "empty"
        meant = Meant(tokens, self._cards)
        return (
            NumberClaims(sentence, tokens, meant, self._query).reason(self._cards)
            or self._offers.reason(sentence, tokens, meant)
            or self._names.reason(sentence, tokens, meant)
        )


def _sentences(text: str) -> Iterator[str]:
    """What is drawn like another letter is that letter, and nothing is invisible."""
    plain = unicodedata.normalize("NFKC", text)
    visible = "".join(one for one in plain if one == "\n" or unicodedata.category(one)[0] != "C")
    for line in visible.splitlines():
        for part in _SENTENCE_END.split(_MARKS.sub("", line)):
            if sentence := " ".join(part.split()):
                yield sentence


def _is_readable(letter: str) -> bool:
    """Latin letters and the digits 0 to 9: others look like them."""
    if letter.isascii():
        return True
    if letter.isalpha():
        return unicodedata.name(letter, "").startswith("LATIN")
    return not letter.isnumeric()
