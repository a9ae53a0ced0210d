"""Checks the names in a sentence: of products, brands, shops and places."""

import re
from collections.abc import Collection, Iterator, Sequence

from tis.marketplace.assistant.card_words import CardWords, Meant, Token, query_fields, says_in
from tis.marketplace.assistant.wording import word_list
from tis.marketplace.kit.fields import key_of
from tis.marketplace.places.gazetteer import gazetteer
from tis.marketplace.reading.structured_query import StructuredQuery
from tis.marketplace.reading.word_lists import word_list as reading_words
from tis.marketplace.search.city_filter import city_test

_QUOTED = re.compile(r"(?<!\d)[\"“”„«]([^\"“”»]{2,120})[\"“”»]|(?<!\w)['‘]([^'‘’]{2,120})['’](?!\w)")
_FREE_NAMES = frozenset("anda saya kami i rp idr wib wita wit indonesia ok kak bapak ibu kota".split())


class NameClaims:
    """`reason` is why a sentence must go, or None. `known_brands`: keys of all brands of the catalogue."""

    def __init__(self, cards: Sequence[CardWords], query: StructuredQuery, known_brands: Collection[str]) -> None:
        self._cards = cards
        self._brands = known_brands
        said = query_fields(query)
        # What may be named together: the words of one card and of the buyer.
        self._fields = [said, *((*card.fields, *said) for card in cards)]
        self._known = {word for fields in self._fields for field in fields for word in field}

    def reason(self, sentence: str, tokens: Sequence[Token], meant: Meant) -> str | None:
        if meant.is_contradictory or self._has_unknown_name(sentence, tokens):
            return "name"
        return "place" if self._has_wrong_place(tokens, meant) else None

    def _has_unknown_name(self, sentence: str, tokens: Sequence[Token]) -> bool:
        for quoted in _QUOTED.finditer(sentence):
            keys = [one.key for one in tokens if quoted.start() <= one.start and one.end <= quoted.end()]
            if keys and not any(says_in(keys, fields) for fields in self._fields):
                return True
        if any(self._is_foreign_brand(token) for token in tokens):
            return True
        return any(not self._is_name(run) for run in _capital_runs(sentence, tokens))

    def _is_foreign_brand(self, token: Token) -> bool:
        if token.key in self._known or token.is_number:
            return False
        is_brand = token.key in self._brands and len(token.key) > 3 and token.key not in reading_words("function")
        return token.key in word_list("brands") or is_brand

    def _is_name(self, run: Sequence[Token]) -> bool:
        """Made of pieces of one card, or of what the buyer said. A sentence may begin with any word, in capitals."""
        keys = [token.key for token in run]
        if run[0].start == 0 and keys[0] not in self._known and not run[0].text.isupper():
            keys = keys[1:]
        keys = [key for key in keys if key not in _FREE_NAMES]
        return any(_is_made_of(keys, fields) for fields in self._fields)

    def _has_wrong_place(self, tokens: Sequence[Token], meant: Meant) -> bool:
        """None of the cards that are spoken of is there: the city of the buyer is not that of a shop."""
        for place in gazetteer().named_in([token.text for token in tokens], reading_words("function")):
            keys = [token.key for token in tokens[place.start : place.end]]
            if not place.is_certain or place.is_corrected:
                continue
            if not any(_is_there(card, keys) for card in meant.at(place.start - 1)):
                return True
        return False


def _is_there(card: CardWords, keys: Sequence[str]) -> bool:
    is_found = city_test(" ".join(keys))
    return card.words.issuperset(keys) or (is_found is not None and is_found(key_of(card.card.city)))


def _capital_runs(sentence: str, tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Words with capitals that stand side by side, with the numbers between them: `RTX 4060`, `i7-13700H`."""
    run: list[Token] = []
    for token in tokens:
        is_beside = bool(run) and not sentence[run[-1].end : token.start].strip(" -/'’")
        if run and not (is_beside and (token.is_capital or token.is_number)):
            yield run
            run = []
        if token.is_capital or run:
            run.append(token)
    if run:
        yield run


def _is_made_of(keys: Sequence[str], fields: Sequence[Sequence[str]]) -> bool:
    """Numbers alone are checked elsewhere."""
    rest = list(keys)
    while rest:
        length = next((n for n in range(len(rest), 0, -1) if says_in(rest[:n], fields)), int(rest[0][0].isdigit()))
        if not length:
            return False
        rest = rest[length:]
    return True
