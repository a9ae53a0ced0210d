"""Checks every number of a sentence against the cards that it speaks of: money, kilometres, stock, ratings, ids, units.

Amounts, stock, ratings and distances come from the columns of the product alone: what a seller writes about them in a
description proves nothing.
"""

from collections.abc import Sequence
from functools import cache

from tis.marketplace.assistant.card_words import CardWords, Meant, Token, says_in
from tis.marketplace.assistant.wording import word_list
from tis.marketplace.reading.structured_query import StructuredQuery
from tis.marketplace.reading.word_lists import word_list as reading_words

_SCALES = {"juta": 10**6, "jt": 10**6, "million": 10**6, "mio": 10**6, "ribu": 10**3, "rb": 10**3, "thousand": 10**3}
_SCALES |= {"k": 10**3, "miliar": 10**9, "milyar": 10**9, "billion": 10**9, "triliun": 10**12, "trillion": 10**12}
_FOREIGN_SIGNS = "$€£¥₹₩"
_MAX_BEFORE = 20
_WINDOW = 3  # words before a number that say what it counts
_LEAST_PRICE = 1000  # rupiah: smaller numbers without a currency are no prices


@cache
def _hard_words() -> frozenset[str]:
    """Beside them a number says what only the columns of a product say."""
    names = ("rupiah", "price", "stock before", "stock after", "rating before", "rating after", "reviews")
    return frozenset({*_SCALES, "km", "%", "id"}.union(*map(word_list, names)))


class NumberClaims:
    """The numbers of one sentence. `reason` is why it must go, or None."""

    def __init__(self, sentence: str, tokens: Sequence[Token], meant: Meant, query: StructuredQuery) -> None:
        self._sentence = sentence
        self._tokens = tokens
        self._keys = [token.key for token in tokens]
        self._meant = meant
        self._query = query

    def reason(self, all_cards: Sequence[CardWords]) -> str | None:
        reasons = (self._reason_at(position, all_cards) for position, one in enumerate(self._tokens) if one.is_number)
        return next(filter(None, reasons), None)

    def _reason_at(self, position: int, all_cards: Sequence[CardWords]) -> str | None:
        number, previous, following = self._tokens[position].number, self._key(position - 1), self._key(position + 1)
        cards = self._meant.at(position)
        before = self._words_before(position, cards)
        is_measure = following in word_list("units")
        if self._is_in_name(position, cards):
            return None
        if self._sign_before(position) == "#" or previous == "id":
            return None if any(number == one.card.id for one in all_cards) else "id"
        if self._is_foreign(position):
            return "amount"
        if self._is_money(position, before, cards):
            return None if self._is_right_amount(position, cards) else "amount"
        if following == "%":
            return None if self._is_written(position, cards) else "percentage"
        if following in ("km", "m") and self._is_right_distance(position, cards):
            return None
        if following == "km":
            return "distance"
        if following in word_list("reviews"):
            return None if any(number == one.card.rating_count for one in cards) else "rating"
        if self._is_the_five(position):
            return None
        is_rating = following in word_list("rating after") or self._is_out_of_five(position)
        if is_rating or (before & word_list("rating before") and not is_measure):
            return None if any(number == one.card.rating for one in cards) else "rating"
        is_stock = following in word_list("stock after") or (following, self._key(position + 2)) == ("in", "stock")
        if is_stock or (before & word_list("stock before") and not is_measure):
            if before & word_list("wanted") and number == self._query.quantity:
                return None
            return None if any(number == one.card.available_quantity for one in cards) else "stock"
        is_ordinal = previous in word_list("ordinal before")
        if following in word_list("counted") and number <= len(all_cards) and not is_ordinal:
            return None
        if is_ordinal and 1 <= number <= len(all_cards):
            return None
        return None if self._is_written(position, cards) else "number"

    def _words_before(self, position: int, cards: Sequence[CardWords]) -> set[str]:
        """The last three, without those of names: `rating ASUS TUF Gaming 4,6`."""
        labels = {word for one in cards for label in one.labels for word in label} - _hard_words()
        before = [key for key in self._keys[max(0, position - _MAX_BEFORE) : position] if key not in labels]
        return set(before[-_WINDOW:])

    def _is_in_name(self, position: int, cards: Sequence[CardWords]) -> bool:
        """The 15 of `ASUS TUF A15`, not what a name says of prices or stock."""
        previous, own, following = (self._key(position + step) for step in (-1, 0, 1))
        for neighbour, pair in ((previous, (previous, own)), (following, (own, following))):
            is_plain = neighbour and neighbour not in _hard_words() and neighbour not in reading_words("function")
            if is_plain and any(says_in(pair, one.labels) for one in cards):
                return True
        return False

    def _is_the_five(self, position: int) -> bool:
        """Of `4,6/5` and `4,6 dari 5`: the other number is checked."""
        if self._keys[position] != "5" or position < 2:
            return False
        step = 2 if self._key(position - 1) in ("dari", "of") else 1
        step = 3 if self._key(position - 2) == "out" else step
        is_joined = step > 1 or self._sign_before(position) == "/"
        return is_joined and position >= step and self._tokens[position - step].is_number

    def _is_out_of_five(self, position: int) -> bool:
        if self._key(position + 1) in ("dari", "out", "of"):
            return "5" in self._keys[position + 2 : position + 4]
        return self._key(position + 1) == "5" and self._text_after(position).startswith("/")

    def _key(self, position: int) -> str:
        return self._keys[position] if 0 <= position < len(self._keys) else ""

    def _sign_before(self, position: int) -> str:
        return self._sentence[: self._tokens[position].start].rstrip()[-1:]

    def _text_after(self, position: int) -> str:
        return self._sentence[self._tokens[position].end :].lstrip()

    def _is_foreign(self, position: int) -> bool:
        neighbours = {self._key(position + step) for step in (-1, 1, 2)}
        signs = self._sign_before(position) + self._text_after(position)[:1]
        return any(sign in _FOREIGN_SIGNS for sign in signs) or bool(neighbours & word_list("foreign money"))

    def _is_money(self, position: int, before: set[str], cards: Sequence[CardWords]) -> bool:
        following = self._key(position + 1)
        is_priced = before & (word_list("rupiah") | word_list("price"))
        if is_priced or following == "rupiah" or following in word_list("rough scales"):
            return following not in word_list("units") or self._key(position - 1) in word_list("rupiah")
        if following == "k" and self._is_written(position, cards):
            return False  # a 4K screen
        is_much = self._tokens[position].number >= _LEAST_PRICE
        return is_much or following in _SCALES or self._is_range_of_money(position)

    def _is_range_of_money(self, position: int) -> bool:
        """The 8 of `8-10 juta`."""
        between = self._key(position + 1)
        other = position + (2 if between in ("sampai", "hingga", "to", "dan", "and") else 1)
        is_number = other < len(self._tokens) and self._tokens[other].is_number
        return is_number and self._key(other + 1) in _SCALES

    def _is_right_amount(self, position: int, cards: Sequence[CardWords]) -> bool:
        token, following = self._tokens[position], self._key(position + 1)
        if following in word_list("rough scales") or self._continues_without_space(position + 1):
            return False  # `2jt5`: nobody checks what can be read in two ways
        scale = _SCALES.get(following, 1)
        if scale == 1 and self._is_range_of_money(position):
            scale = next(_SCALES[key] for key in self._keys[position + 1 : position + 5] if key in _SCALES)
        amount = token.number * scale
        if any(amount == one.card.price for one in cards):
            return True
        if scale == 1 and amount < _LEAST_PRICE * 1000 and self._key(position - 1) not in word_list("rupiah"):
            if self._is_written(position, cards):  # the 4060 of RTX 4060
                return True
        return self._is_limit(amount, position)

    def _continues_without_space(self, position: int) -> bool:
        if position + 1 >= len(self._tokens):
            return False
        one, other = self._tokens[position], self._tokens[position + 1]
        return one.end == other.start and other.is_number

    def _is_limit(self, amount: float, position: int) -> bool:
        """A limit of the buyer, said as a limit: it is no price."""
        around = set(self._keys[max(0, position - 5) : position])
        before = self._keys[max(0, position - _WINDOW - 1) : position]
        said = [key for key in before if key in word_list("at most") | word_list("at least")]
        if not said:
            limits = {self._query.min_price, self._query.max_price}
            is_range = bool(around & {"antara", "between", "kisaran", "range", "rentang"})
            return is_range and amount in limits and None not in limits
        # "tidak lebih dari 12 juta", "not over"
        is_negated = bool(around & {"tidak", "tak", "not", "no", "ga", "gak"})
        is_ceiling = ("kurang" in said or "less" in said or said[-1] in word_list("at most")) != is_negated
        return amount == (self._query.max_price if is_ceiling else self._query.min_price)

    def _is_right_distance(self, position: int, cards: Sequence[CardWords]) -> bool:
        token, unit = self._tokens[position], self._key(position + 1)
        kilometres = token.number * (0.001 if unit == "m" else 1.0)
        if any(one.card.distance_km is not None and abs(kilometres - one.card.distance_km) < 1e-9 for one in cards):
            return True
        before = set(self._keys[max(0, position - _WINDOW - 1) : position])
        if kilometres == self._query.radius_km and before & word_list("at most"):
            return True
        if unit == "m":
            return False  # it may be a measure
        reasons = (one.card.fulfilment.reason for one in cards if one.card.fulfilment)
        return bool(before & {"jangkauan", "kurir", "courier", "reach"}) and any(
            f"({token.text} km)" in reason for reason in reasons
        )

    def _is_written(self, position: int, cards: Sequence[CardWords]) -> bool:
        """Whether the number stands beside the same word in a card: `16 GB`, `RTX 4060`."""
        previous, own, following = (self._key(position + step) for step in (-1, 0, 1))
        if following in word_list("units") or following == "%":
            return any(one.says((own, following)) for one in cards)
        pairs = [pair for pair in ((previous, own), (own, following)) if all(pair)]
        return any(one.says(pair) for one in cards for pair in pairs)
