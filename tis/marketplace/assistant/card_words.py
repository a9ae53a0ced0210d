"""The words of cards, in the order in which they stand there: what a sentence may say is looked up in them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

from tis.marketplace.assistant.goods import ProductCard
from tis.marketplace.assistant.wording import word_list
from tis.marketplace.reading.structured_query import StructuredQuery
from tis.marketplace.reading.word_lists import word_list as reading_words

_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+|%")
_GROUPED = re.compile(r"\d{1,3}(?:[.,]\d{3})+")
_UNITS = ("inch", "w", "l", "kg", "g", "%", "km", "m", "tahun", "bulan")


@cache
def _spellings() -> Mapping[str, str]:
    return {spelling: unit for unit in _UNITS for spelling in word_list(f"spelling {unit}")}


@dataclass(frozen=True)
class Token:
    """`key` is equal for spellings of one word or number: `15,6` and `15.6`, `inci` and `inch`."""

    text: str
    start: int
    end: int

    @property
    def is_number(self) -> bool:
        return self.text[0].isdigit()

    @property
    def is_capital(self) -> bool:
        return any(letter.isupper() for letter in self.text)

    @cached_property
    def key(self) -> str:
        if self.is_number:
            return f"{number_of(self.text):.10g}"
        word = self.text.casefold()
        return _spellings().get(word, word)

    @property
    def number(self) -> float:
        return number_of(self.text)


def number_of(text: str) -> float:
    """`1.500` and `1,500` are thousands, `15,6` and `15.6` are not."""
    if _GROUPED.fullmatch(text) and not text.startswith("0"):
        return float(re.sub(r"[.,]", "", text))
    head, *rest = re.split(r"[.,]", text)
    return float("".join((head, *rest[:-1])) + (f".{rest[-1]}" if rest else ""))


def tokens_of(text: str) -> list[Token]:
    return [Token(found[0], found.start(), found.end()) for found in _TOKEN.finditer(text)]


def keys_of(text: str) -> tuple[str, ...]:
    return tuple(token.key for token in tokens_of(text))


class CardWords:
    """`fields` are sequences of words that may be repeated as they are; `labels` of them say which card is meant."""

    def __init__(self, card: ProductCard) -> None:
        self.card = card
        self.names = tuple(filter(None, map(keys_of, (card.name, card.brand or ""))))
        self.shop = tuple(filter(None, map(keys_of, (card.supplier_name, card.city))))
        self.labels = (*self.names, *self.shop)
        self.fields = (*self.labels, *self._texts(card))
        self.words = frozenset(word for field in self.fields for word in field)

    def says(self, keys: Sequence[str]) -> bool:
        return says_in(keys, self.fields)

    @staticmethod
    def _texts(card: ProductCard) -> Iterator[tuple[str, ...]]:
        yield keys_of(card.category)
        yield keys_of(card.description)
        yield keys_of(card.condition)
        if card.fulfilment is not None:
            yield keys_of(card.fulfilment.reason)
        for name, value in card.attributes.items():
            label, shown = keys_of(name), keys_of(str(value))
            yield (*label, *shown)
            for word in label:  # `ram_gb: 16` says RAM 16 and 16 GB
                yield (word, *shown)
                yield (*shown, word)


def says_in(keys: Sequence[str], fields: Iterable[Sequence[str]]) -> bool:
    """Whether the words stand side by side in one of the fields."""
    wanted, length = tuple(keys), len(keys)
    return any(
        tuple(field[start : start + length]) == wanted
        for field in fields
        for start in range(len(field) - length + 1)
        if field[start] == wanted[0]
    )


def query_fields(query: StructuredQuery) -> list[tuple[str, ...]]:
    """What the buyer said, which an answer may repeat: words and places, no number."""
    compared = query.compare.items if query.compare else []
    said = (query.text, query.category or "", *query.brands, *query.cities, *query.provinces, *compared)
    excluded = (*query.exclude_brands, *query.exclude_terms, *query.exclude_cities)
    fields = (tuple(key for key in keys_of(text) if not key[0].isdigit()) for text in (*said, *excluded))
    return [field for field in fields if field]


@dataclass(frozen=True)
class Mention:
    """Words that name some of the cards, from the token `start` on: by product or brand, else by shop or city."""

    start: int
    cards: Sequence[CardWords]
    is_product: bool


class Meant:
    """Which cards each place of a sentence speaks of: those that the words before it name, else those after it."""

    def __init__(self, tokens: Sequence[Token], cards: Sequence[CardWords]) -> None:
        self._cards = cards
        self.is_contradictory = False  # a shop or city that is not that of the product before it
        self.mentions: list[Mention] = []
        product: Mention | None = None
        for mention in _mentions(tokens, cards):
            if mention.is_product:
                product = mention
            elif product is not None:
                both = [card for card in mention.cards if card in product.cards]
                self.is_contradictory = self.is_contradictory or not both
                mention = Mention(mention.start, both, is_product=False)
            self.mentions.append(mention)

    def at(self, position: int) -> Sequence[CardWords]:
        before = [mention.cards for mention in self.mentions if mention.start <= position]
        if before:
            return before[-1]
        return self.mentions[0].cards if self.mentions else self._cards

    @property
    def named(self) -> list[Sequence[CardWords]]:
        """The cards of each mention of a product, in turn."""
        return [mention.cards for mention in self.mentions if mention.is_product]


def _mentions(tokens: Sequence[Token], cards: Sequence[CardWords]) -> Iterator[Mention]:
    """Words side by side that the same cards have are one mention."""
    mention: Mention | None = None
    for position in range(len(tokens)):
        own = _mention_at(tokens, position, cards)
        if own and mention and own.is_product == mention.is_product:
            if both := [card for card in mention.cards if card in own.cards]:
                mention = replace(mention, cards=both)
                continue
        if mention:
            yield mention
        mention = own
    if mention:
        yield mention


def _mention_at(tokens: Sequence[Token], position: int, cards: Sequence[CardWords]) -> Mention | None:
    """None if the word says nothing, since all cards have it or none."""
    token = tokens[position]
    wanted = [token.key]
    if token.is_number:
        wanted += [one.key for one in tokens[position + 1 : position + 2]]
    if len("".join(wanted)) < 2 or token.key in reading_words("function") or (token.is_number and len(wanted) < 2):
        return None
    for is_product in (True, False):
        own = [card for card in cards if says_in(wanted, card.names if is_product else card.shop)]
        if own:
            return Mention(position, own, is_product) if len(own) < len(cards) else None
    return None
