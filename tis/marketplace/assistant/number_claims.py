"""Checks every number of a sentence against the cards that it speaks of: money, kilometres, stock, ratings, ids, units.

Amounts, stock, ratings and distances come from the columns of the product alone: what a seller writes about them in a
description proves nothing.
"""

from collections.abc import Sequence

from tis.marketplace.assistant import claim_tables as words
from tis.marketplace.assistant.card_words import CardWords, Meant, Token, says_in
from tis.marketplace.reading.structured_query import StructuredQuery
from tis.marketplace.reading.word_lists import word_list


class NumberClaims:
    """The numbers of one sentence. `reason` is why it must go, or None."""

    def __init__(self, sentence: str, tokens: Sequence[Token], meant: Meant, query: StructuredQuery) -> None:
        self._sentence = sentence
        self._tokens = tokens
        self._keys = [token.key for token in tokens]
        self._meant = meant
        self._query = query

    def reason(self, all_cards: Sequence[CardWords]) -> str | None:
        for position, token in enumerate(self._tokens):
            if token.is_number and (reason := self._reason_at(position, all_cards)):
                return reason
        return None

    def _reason_at(self, position: int, all_cards: Sequence[CardWords]) -> str | None:
        token, following = self._tokens[position], self._key(position + 1)
        cards = self._meant.at(position)
        before = self._words_before(position, cards)
        if self._is_in_name(position, cards):
            return None
        if self._sign_before(position) == "#" or self._key(position - 1) == "id":
            return None if any(token.number == one.card.id for one in all_cards) else "id"
        if self._is_foreign(position):
            return "amount"
        if self._is_money(position, before, cards):
            return None if self._is_right_amount(position, cards) else "amount"
        if following == "%":
            return None if self._is_written(position, cards) else "percentage"
        if following in words.DISTANCE_UNITS and self._is_right_distance(position, cards):
            return None
        if following == "km":
            return "distance"
        if following in words.REVIEWS:
            return None if any(token.number == one.card.rating_count for one in cards) else "rating"
        if self._is_the_five(position):
            return None
        is_rating = bool(before & words.RATING_BEFORE) and following not in words.UNITS
        if is_rating or following in words.RATING_AFTER or self._is_out_of_five(position):
            return None if any(token.number == one.card.rating for one in cards) else "rating"
        is_in_stock = following == "in" and self._key(position + 2) == "stock"
        if (
            is_in_stock
            or following in words.STOCK_AFTER
            or (before & words.STOCK_BEFORE and following not in words.UNITS)
        ):
            if before & words.WANTED and token.number == self._query.quantity:
                return None
            return None if any(token.number == one.card.available_quantity for one in cards) else "stock"
        if (
            following in words.COUNTED
            and token.number <= len(all_cards)
            and self._key(position - 1) not in words.ORDINAL_BEFORE
        ):
            return None
        if self._key(position - 1) in words.ORDINAL_BEFORE and 1 <= token.number <= len(all_cards):
            return None
        return None if self._is_written(position, cards) else "number"

    def _words_before(self, position: int, cards: Sequence[CardWords]) -> set[str]:
        """The last three, without those of names: `rating ASUS TUF Gaming 4,6`."""
        labels = {word for one in cards for label in one.labels for word in label} - words.HARD_WORDS
        return set(
            [key for key in self._keys[max(0, position - words.MAX_BEFORE) : position] if key not in labels][
                -words.WINDOW :
            ]
        )

    def _is_in_name(self, position: int, cards: Sequence[CardWords]) -> bool:
        """The 15 of `ASUS TUF A15`, not what a name says of prices or stock."""
        own = self._key(position)
        for pair in ((self._key(position - 1), own), (own, self._key(position + 1))):
            neighbour = pair[0] if pair[1] == own else pair[1]
            is_plain = neighbour and neighbour not in words.HARD_WORDS and neighbour not in word_list("function")
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

    def _key(self, position: int) -> str:
        return self._keys[position] if 0 <= position < len(self._keys) else ""

    def _sign_before(self, position: int) -> str:
        return self._sentence[: self._tokens[position].start].rstrip()[-1:]

    def _is_foreign(self, position: int) -> bool:
        after = self._sentence[self._tokens[position].end :].lstrip()[:1]
        neighbours = {self._key(position - 1), self._key(position + 1), self._key(position + 2)}
        signs = self._sign_before(position) + after
        return any(sign in words.FOREIGN_SIGNS for sign in signs) or bool(neighbours & words.FOREIGN)

    def _is_money(self, position: int, before: set[str], cards: Sequence[CardWords]) -> bool:
        following = self._key(position + 1)
        if (
            before & words.RUPIAH
            or before & words.PRICE_WORDS
            or following == "rupiah"
            or following in words.ROUGH_SCALES
        ):
            return following not in words.UNITS or self._key(position - 1) in words.RUPIAH
        if following == "k" and self._is_written(position, cards):
            return False  # a 4K screen
        return (
            following in words.SCALES
            or self._is_range_of_money(position)
            or self._tokens[position].number >= words.LEAST_PRICE
        )

    def _is_range_of_money(self, position: int) -> bool:
        """The 8 of `8-10 juta`."""
        between = self._key(position + 1)
        other = position + (2 if between in ("sampai", "hingga", "to", "dan", "and") else 1)
        is_number = other < len(self._tokens) and self._tokens[other].is_number
        return is_number and self._key(other + 1) in words.SCALES

    def _is_right_amount(self, position: int, cards: Sequence[CardWords]) -> bool:
        token, following = self._tokens[position], self._key(position + 1)
        if following in words.ROUGH_SCALES or self._continues_without_space(position + 1):
            return False  # `2jt5`: nobody checks what can be read in two ways
        scale = words.SCALES.get(following, 1)
        if scale == 1 and self._is_range_of_money(position):
            scale = next(words.SCALES[key] for key in self._keys[position + 1 : position + 5] if key in words.SCALES)
        amount = token.number * scale
        if any(amount == one.card.price for one in cards):
            return True
        if scale == 1 and amount < words.LEAST_PRICE * 1000 and self._key(position - 1) not in words.RUPIAH:
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
        before = self._keys[max(0, position - words.WINDOW - 1) : position]
        said = [key for key in before if key in words.AT_MOST | words.AT_LEAST]
        if not said:
            return self._is_said_range(amount, position)
        # "tidak lebih dari 12 juta", "not over"
        is_negated = bool(set(self._keys[max(0, position - 5) : position]) & {"tidak", "tak", "not", "no", "ga", "gak"})
        is_ceiling = ("kurang" in said or "less" in said or said[-1] in words.AT_MOST) != is_negated
        return amount == (self._query.max_price if is_ceiling else self._query.min_price)

    def _is_said_range(self, amount: float, position: int) -> bool:
        limits = {self._query.min_price, self._query.max_price}
        around = set(self._keys[max(0, position - 5) : position]) & {"antara", "between", "kisaran", "range", "rentang"}
        return bool(around) and amount in limits and None not in limits

    def _is_right_distance(self, position: int, cards: Sequence[CardWords]) -> bool:
        token, unit = self._tokens[position], self._key(position + 1)
        kilometres = token.number * words.DISTANCE_UNITS[unit]
        if any(one.card.distance_km is not None and abs(kilometres - one.card.distance_km) < 1e-9 for one in cards):
            return True
        before = set(self._keys[max(0, position - words.WINDOW - 1) : position])
        if kilometres == self._query.radius_km and before & words.AT_MOST:
            return True
        if unit == "m":
            return False  # it may be a measure
        reasons = (one.card.fulfilment.reason for one in cards if one.card.fulfilment)
        return bool(before & {"jangkauan", "kurir", "courier", "reach"}) and any(
            f"({token.text} km)" in reason for reason in reasons
        )

    def _is_out_of_five(self, position: int) -> bool:
        rest = self._sentence[self._tokens[position].end :].lstrip()
        is_fraction = rest.startswith("/") and self._key(position + 1) == "5"
        return is_fraction or (
            self._key(position + 1) in ("dari", "out", "of") and "5" in self._keys[position + 2 : position + 4]
        )

    def _is_written(self, position: int, cards: Sequence[CardWords]) -> bool:
        """Whether the number stands beside the same word in a card: `16 GB`, `RTX 4060`."""
        own, previous, following = (self._key(position + step) for step in (0, -1, 1))
        if following in words.UNITS or following == "%":
            return any(one.says((own, following)) for one in cards)
        pairs = [pair for pair in ((previous, own), (own, following)) if all(pair)]
        return any(one.says(pair) for one in cards for pair in pairs)
