"""Writes an answer: its names, prices, stock and distances come from the cards, by templates in both languages."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tis.marketplace.assistant.goods import FACTS_OF_LINES, MAX_CARDS, FoundGoods, ProductCard
from tis.marketplace.assistant.goods_search import without_unused_radius
from tis.marketplace.assistant.limit_texts import joined_names, limits_text, relaxation_text, suggestions_of
from tis.marketplace.assistant.viewers import Viewer
from tis.marketplace.assistant.wording import (
    condition_text,
    decimal_text,
    kilometres_text,
    rating_text,
    rupiah,
    say,
    value_text,
    whole_text,
)
from tis.marketplace.products.compare import HIGHER, LOWER, best_index
from tis.marketplace.products.delivery import Language
from tis.marketplace.reading.asked import asked_facts
from tis.marketplace.reading.attribute_values import attribute_label
from tis.marketplace.reading.pointing import points_at_number
from tis.marketplace.reading.small_talk import says_goodbye
from tis.marketplace.reading.structured_query import StructuredQuery

NUM_PICKS = 3  # where no model picks
_MAX_TRIED = 4
_GREETING = re.compile(
    r"\b(?:halo|hallo|hai|hi|hello|hey|selamat|pagi|siang|sore|malam|good (?:morning|evening)|assalamualaikum)\b"
    r"|\b(?:kamu|anda|you) (?:siapa|bisa)|apa kabar|siapa (?:kamu|anda)|what can you|who are you|bantuan|help",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class AnswerText:
    """`sentences` are shown in turn, a line each. `cited_ids`: the products that they name, in their order."""

    sentences: list[str]
    cited_ids: list[int]
    suggestions: list[str]


def render_answer(
    found: FoundGoods,
    picks: Sequence[int],
    query: StructuredQuery,
    viewer: Viewer,
    intro: str = "",
    whys: Mapping[int, str] | None = None,
    sentence: str = "",
) -> AnswerText:
    """`picks` are ids of cards, best first; without any, the first cards. `intro` and `whys`, of products by their ids,
    are what a model wrote, verified. `sentence` is what the buyer wrote.
    """
    writer = _Writer(found, query, viewer, whys or {})
    cards = writer.picked(picks)
    if query.intent == "other":
        cards, found = [], FoundGoods([], total=0)
        sentences = writer.other(sentence or query.text)
    elif not cards:
        sentences, cards = writer.nothing(), list(found.nearest)
    else:
        sentences = [*writer.notices(), *([intro] if intro else writer.intro(cards)), *writer.body(cards)]
        if not found.total:
            sentences += writer.alternatives(len(cards))
            cards += found.nearest
    cited = list(dict.fromkeys(card.id for card in cards))
    return AnswerText(sentences, cited, suggestions_of(found, cited, query, viewer.language))


@dataclass(frozen=True)
class _Writer:
    found: FoundGoods
    query: StructuredQuery
    viewer: Viewer
    whys: Mapping[int, str]

    @property
    def language(self) -> Language:
        return self.viewer.language

    @property
    def limits(self) -> str:
        query = without_unused_radius(self.query, self.viewer)
        return limits_text(query, self.language, self.found.category_name)

    @property
    def is_comparison(self) -> bool:
        return self.query.intent == "compare" or self.query.compare is not None

    @property
    def near_place(self) -> str | None:
        """The city from which the distances are measured."""
        return self.query.cities[0] if self.query.near_cities and self.query.cities else None

    def say(self, template: str, /, **values: object) -> str:
        return say(self.language, template, **values)

    def count(self, number: int, *, is_exact: bool = True) -> str:
        text = whole_text(number, self.language)
        return text if is_exact else self.say("at least", total=text)

    def picked(self, picks: Sequence[int]) -> list[ProductCard]:
        by_id = {card.id: card for card in self.found.cards}
        if chosen := [by_id[one] for one in dict.fromkeys(picks) if one in by_id]:
            return chosen
        first = MAX_CARDS if self.query.intent == "compare" or self.query.product_ids else NUM_PICKS
        if self.found.unverified_words and self.found.total:
            first = min(first, self.found.total)  # the others match only some of the words
        return list(self.found.cards[:first])

    def is_partial(self, cards: Sequence[ProductCard]) -> bool:
        """Some of the cards, or all, match only a part of the words."""
        return self.found.unverified_words and self.found.total < len(cards)

    def notices(self) -> Iterator[str]:
        if self.found.corrected and self.found.cards:
            yield self.say("corrected", text=self.found.corrected)
        query = self.query
        is_around_user = query.radius_km is not None and not (query.cities or query.provinces)
        wants_distance = query.near_user or query.sort == "distance" or is_around_user
        has_distance = any(card.distance_km is not None for card in self.found.cards)
        if wants_distance and not has_distance and self.viewer.measured_from is None:
            yield self.say("no place")

    def intro(self, cards: Sequence[ProductCard]) -> Iterator[str]:
        found, query, limits = self.found, self.query, self.limits
        total = self.count(found.total, is_exact=found.total_is_exact)
        if self.is_comparison:
            if found.missing:
                yield self.missing()
            yield self.say("comparison", count=len(cards)) if len(cards) > 1 else self.say("one to compare")
        elif query.intent == "stock" and not self.is_partial(cards) and not query.asked:
            return
        elif not found.is_beaten:
            yield self.say("none beyond", order=self.order())
        elif query.order_by is not None:
            yield self.say("unmeasured" if found.is_unmeasured else "in order", order=self.order())
        elif query.product_ids:
            untold = bool(found.told) and not any(found.told.values())
            yield self.say("untold", asked=self.asked()) if untold else self.say("pointed at")
        elif found.lacks_near:
            yield self.say("none near", names=joined_names(query.cities, self.language), total=total)
        elif found.lacks_stock:
            yield self.say("short of stock", limits=limits)
        elif self.is_partial(cards):
            yield self.say("few with all words" if found.total else "some words", total=total, limits=limits)
        elif found.skipped:
            yield self.say("found others", total=total, limits=limits)
        elif found.total == 1:
            yield self.say("found one", limits=limits)
        else:
            name = "found more" if found.total > len(cards) else "found"
            yield self.say(name, total=total, limits=limits, shown=len(cards))

    def body(self, cards: Sequence[ProductCard]) -> Iterator[str]:
        for number, card in enumerate(cards, start=1):
            if self.query.intent == "stock" and (number <= self.found.total or not self.is_partial(cards)):
                yield self.stock_answer(card)
            yield self.line(card, number, self.near_place)
        if self.is_comparison:
            yield from self.bests(cards)
        yield from self.preferred(cards)

    def line(self, card: ProductCard, number: int, place: str | None = None) -> str:
        stock = self.say("stock", count=self.count(card.available_quantity))
        line = self.say(
            "line",
            number=number,
            name=card.name,
            price=rupiah(card.price),
            stock=stock if card.available_quantity > 0 else self.say("sold out"),
            shop=card.supplier_name,
            city=card.city,
            extras="".join(f", {one}" for one in self.extras(card, place)),
        )
        advice = card.fulfilment.reason if card.fulfilment else ""
        return " ".join(filter(None, (line, advice, self.whys.get(card.id, ""))))

    def extras(self, card: ProductCard, place: str | None) -> Iterator[str]:
        """The distance only where no advice on delivery says it."""
        if measure := self.found.values.get(card.id):
            yield f"{attribute_label(measure.key)}: {value_text(measure.value, self.language)}"
        yield from self.found.told.get(card.id, ())
        if "price" in self.query.asked and (quantity := self.query.quantity or 1) > 1:
            yield self.say("together", count=self.count(quantity), total=rupiah(quantity * card.price))
        if promotion := card.promotion:
            prices = {"normal": rupiah(promotion.normal_price), "lowest": rupiah(promotion.lowest_price_30d)}
            yield self.say("promotion", **prices)
        if card.condition == "used":
            yield condition_text(card.condition, self.language)
        if card.distance_km is not None and card.fulfilment is None:
            km = kilometres_text(card.distance_km, self.language)
            yield self.say("distance from", km=km, place=place) if place else km
        if card.rating is not None:
            yield rating_text(card.rating, card.rating_count, self.language)

    def stock_answer(self, card: ProductCard) -> str:
        available, wanted = card.available_quantity, self.query.quantity
        if available <= 0:
            return self.say("none left", name=card.name)
        if wanted is None or wanted == 1:
            return self.say("in stock", name=card.name, count=self.count(available))
        name = "enough" if available >= wanted else "not enough"
        return self.say(name, name=card.name, count=self.count(available), wanted=self.count(wanted))

    def bests(self, cards: Sequence[ProductCard]) -> Iterator[str]:
        """Marked as `GET /api/products/compare` marks them: nobody is best where two are alike."""
        if (best := best_index([card.price for card in cards], LOWER)) is not None:
            yield self.say("cheapest", name=cards[best].name, value=rupiah(cards[best].price))
        if (best := best_index([card.distance_km for card in cards], LOWER)) is not None:
            value = kilometres_text(cards[best].distance_km or 0.0, self.language)
            yield self.say("nearest", name=cards[best].name, value=value)
        if (best := best_index([card.rating for card in cards], HIGHER)) is not None:
            value = decimal_text(cards[best].rating or 0.0, self.language)
            yield self.say("best rated", name=cards[best].name, value=value)

    def preferred(self, cards: Sequence[ProductCard]) -> Iterator[str]:
        """Of the first product that meets any preference."""
        likes = self.viewer.preferences
        for card in cards:
            if met := likes.met_by(card.brand, card.price, card.city, card.condition):
                values = {
                    "brand": card.brand,
                    "max_price": rupiah(likes.max_price or 0),
                    "city": card.city,
                    "condition": condition_text(card.condition, self.language),
                }
                said = ", ".join(self.say(f"met {name}", value=values[name]) for name in met)
                yield self.say("preferences", name=card.name, met=said)
                return

    def nothing(self) -> list[str]:
        query = self.query
        if self.found.skipped:
            return [self.say("no others", limits=limits_text(query, self.language, self.found.category_name))]
        if query.order_by is not None and query.order_by.beyond:
            return [self.say("none beyond", order=self.order())]
        if query.product_ids or (query.compare and query.compare.product_ids):
            return [self.say("gone")]
        if self.found.missing:
            return [self.missing()]
        limits = self.limits
        nothing = self.say("nothing", limits=limits) if limits else self.say("nothing at all")
        return [*self.notices(), nothing, *(list(self.alternatives()) or [self.say("nothing to try")])]

    def order(self) -> str:
        """`paling ringan`."""
        order = self.query.order_by
        assert order is not None
        return self.say(f"{'least' if order.least else 'most'} {order.attribute}")

    def asked(self) -> str:
        return ", ".join(self.say(f"fact {fact}") for fact in self.query.asked if fact not in FACTS_OF_LINES)

    def missing(self) -> str:
        return self.say("missing", names=joined_names(self.found.missing, self.language))

    def alternatives(self, num_before: int = 0) -> Iterator[str]:
        """What was really searched for, and how many products it found; and what is near the place that was named."""
        found = self.found
        said = set[str]()
        for tried in found.relaxations[:_MAX_TRIED]:
            count = self.count(tried.count, is_exact=tried.count_is_exact)
            if count in said:
                continue  # nothing more than what was said
            said.add(count)
            name = "would find one" if tried.count == 1 else "would find"
            yield self.say(name, change=relaxation_text(self.query, tried, self.language), count=count)
        if found.nearest and found.nearest_place:
            yield self.say("elsewhere", place=found.nearest_place)
            for number, card in enumerate(found.nearest, start=num_before + 1):
                yield self.line(card, number, found.nearest_place)

    def other(self, sentence: str) -> list[str]:
        if says_goodbye(sentence.lower()):
            return [self.say("thanks")]
        if asked_facts(sentence.lower()):
            return [self.say("which product")]
        if points_at_number(sentence):
            return [self.say("no such number")]
        return [self.say("hello" if _GREETING.search(sentence) else "no shopping"), self.say("example")]
