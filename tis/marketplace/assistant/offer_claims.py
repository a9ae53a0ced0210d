"""Checks what a sentence says of an offer: superlatives, promises, whether it is in stock, how it gets to the buyer."""

import re
from collections.abc import Callable, Sequence

from tis.marketplace.assistant.card_words import CardWords, Meant, Token, keys_of, says_in
from tis.marketplace.assistant.goods import ProductCard
from tis.marketplace.assistant.wording import claim_pattern
from tis.marketplace.reading.structured_query import StructuredQuery

# The card must have a word that begins as the promise does.
_SHORT_PROMISES = {"bergaransi": "garansi", "dijamin": "jamin", "terjamin": "jamin"}
_NEAR_KM = 15.0
_GOOD_RATING = 4.0
_Value = Callable[[ProductCard], float | None]
# What a superlative counts: the product with the least is meant.
_SUPERLATIVES: dict[str, _Value] = {
    "cheapest": lambda card: card.price,
    "dearest": lambda card: -card.price,
    "nearest": lambda card: card.distance_km,
    "best rated": lambda card: None if card.rating is None else -card.rating,
    "most in stock": lambda card: -card.available_quantity,
}
# What a sentence says of goods in words that the columns of a product decide, and the reason to drop it.
_FACTS: dict[str, tuple[str, Callable[[ProductCard], bool]]] = {
    "used": ("condition", lambda card: card.condition == "used"),
    "new": ("condition", lambda card: card.condition == "new"),
    "near": ("distance", lambda card: card.distance_km is not None and card.distance_km <= _NEAR_KM),
    "well rated": ("rating", lambda card: card.rating is not None and card.rating >= _GOOD_RATING),
}
_COUNTS = {"dua": 2, "tiga": 3, "empat": 4, "lima": 5, "enam": 6, "tujuh": 7, "delapan": 8, "two": 2, "three": 3}
_COUNTS |= {"four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8}
_COUNTED = {"pilihan", "produk", "barang", "opsi", "options", "products", "choices", "items", "toko", "shops", "hasil"}
_TIMES = {"ini", "today", "besok", "tomorrow", "instan", "instant", "day"}


class OfferClaims:
    """`reason` is why a sentence must go, or None."""

    def __init__(self, cards: Sequence[CardWords], query: StructuredQuery) -> None:
        self._cards = cards
        self._query = query

    def reason(self, sentence: str, tokens: Sequence[Token], meant: Meant) -> str | None:
        if self._is_too_high(sentence, meant):
            return "superlative"
        if self._is_promise(sentence, meant):
            return "promise"
        if self._is_wrong_stock(sentence, tokens, meant):
            return "stock"
        for fact, (reason, is_so) in _FACTS.items():
            for found in claim_pattern(fact).finditer(sentence):
                if not all(is_so(one.card) for one in meant.at(_position(tokens, found.start()))):
                    return reason
        if self._is_wrong_delivery(sentence, tokens, meant):
            return "delivery"
        return "number" if self._has_number_words(sentence) else None

    def _is_too_high(self, sentence: str, meant: Meant) -> bool:
        if claim_pattern("market").search(sentence):
            return True
        for name, value in _SUPERLATIVES.items():
            if claim_pattern(name).search(sentence) and not self._is_first(meant, value):
                return True
        if not claim_pattern("comparison").search(sentence):
            return False
        is_asked = self._query.max_price is not None or self._query.sort in ("price_asc", "price_desc", "distance")
        return bool(meant.named) or not (is_asked or self._query.near_user)

    def _is_first(self, meant: Meant, value: _Value) -> bool:
        """One product is named, and it has the best value of all."""
        if len(meant.named) != 1 or len(meant.named[0]) != 1 or len(self._cards) < 2:
            return False
        values = [value(one.card) for one in self._cards]
        known = [one for one in values if one is not None]
        return bool(known) and value(meant.named[0][0].card) == min(known)

    def _is_promise(self, sentence: str, meant: Meant) -> bool:
        cards = [card for cards in meant.named for card in cards] or list(self._cards)
        for found in claim_pattern("promise").finditer(sentence):
            begin = found[0].casefold()
            begin = _SHORT_PROMISES.get(begin, begin)
            if not any(word.startswith(begin[:6]) for card in cards for word in card.words):
                return True
        return False

    def _is_wrong_stock(self, sentence: str, tokens: Sequence[Token], meant: Meant) -> bool:
        if claim_pattern("vague stock").search(sentence):
            return True
        for name, is_there in (("sold out", False), ("in stock", True)):
            for found in claim_pattern(name).finditer(sentence):
                if is_there and claim_pattern("sold out").search(sentence):
                    continue
                cards = meant.at(_position(tokens, found.start()))
                if not cards or any((card.card.available_quantity > 0) != is_there for card in cards):
                    return True
        return False

    def _is_wrong_delivery(self, sentence: str, tokens: Sequence[Token], meant: Meant) -> bool:
        """What the card advises may be said, or what its seller writes."""
        for suggestion in ("pickup", "courier"):
            for found in claim_pattern(suggestion).finditer(sentence):
                keys = tuple(found[0].casefold().replace("-", " ").split())
                for card in meant.at(_position(tokens, found.start())):
                    advice = card.card.fulfilment
                    if not card.says(keys) and (
                        advice is None or advice.suggestion != suggestion or keys[-1] in _TIMES
                    ):
                        return True
        return False

    def _has_number_words(self, sentence: str) -> bool:
        for found in claim_pattern("number").finditer(sentence):
            counted = re.match(r"\s+(\w+)", sentence[found.end() :])
            if counted and any(says_in(keys_of(found[0] + counted[0]), card.labels) for card in self._cards):
                continue  # the name of a fridge of `dua pintu`
            count = _COUNTS.get(found[0].casefold())
            if count is None or count > len(self._cards) or not counted or counted[1].casefold() not in _COUNTED:
                return True
        return False


def _position(tokens: Sequence[Token], character: int) -> int:
    return sum(token.start < character for token in tokens)
