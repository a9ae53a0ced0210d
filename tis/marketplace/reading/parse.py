"""Reads a sentence of a buyer by rules: each takes its words out of the sentence, in a fixed order."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from tis.marketplace.reading.amounts import (
    price_of_one,
    respell_amounts,
    take_amounts,
    take_leading_count,
    take_measures,
    take_prices,
)
from tis.marketplace.reading.asked import asked_facts, asks_only, query_about
from tis.marketplace.reading.follow_ups import is_new_topic, take_changed_count, take_changes
from tis.marketplace.reading.goods_nouns import SaidGoods, take_goods
from tis.marketplace.reading.measure_limits import take_measure_limits
from tis.marketplace.reading.negations import take_negations
from tis.marketplace.reading.pointing import (
    asks_to_compare,
    compared_things,
    points_at_number,
    take_codes,
    take_comparison,
    take_ids,
    take_pointed,
)
from tis.marketplace.reading.previous_query import going_on, merged, spoken_of_before
from tis.marketplace.reading.said_places import take_places
from tis.marketplace.reading.sentence import Sentence, any_of
from tis.marketplace.reading.small_talk import (
    asks_of_the_world,
    is_off_topic,
    names_no_goods,
    says_goodbye,
    take_orders,
)
from tis.marketplace.reading.structured_query import (
    MAX_QUERY_CHARS,
    ComparedThings,
    ParsedQuery,
    QueryContext,
    ShownProduct,
    StructuredQuery,
)
from tis.marketplace.reading.vocabulary import Vocabulary
from tis.marketplace.reading.wishes import RECOMMEND, STOCK_QUESTION, take_attribute_order, take_wishes
from tis.marketplace.reading.word_lists import word_list

_MAX_COMPARED = 4
_SIZES_OF_WEAR = range(16, 51)
_ASKS = any_of(
    r"""
    apakah|apa|masih|ga|gak|nggak|ngga|tidak|kah|berapa|brp|cek|check|is|are|do|does|how many
    stok(?:nya)? (?:ada|berapa)|ada stok|sisa
    """
)
_BESIDES = any_of("(?:selain|kecuali|besides|other than|except) (?:yang |yg )?(?:itu|ini|that|this|those|these)")
_COMPARES_WITH = re.compile(
    r"(?:banding(?:kan|in)|compare)(?:nya| it| that| this| itu| ini)? (?:dengan|dgn|sama|ama|with|to) "
    r"(?P<other>[a-z0-9][a-z0-9 -]{2,80})"
)
_COMPARES_ALL = any_of("(?:di ?)?banding(?:kan|in|an)?|perbandingan(?:nya)?|compare|comparison")
_OF_SMALL_TALK = {"text", "brands", "product_ids", "intent", "in_stock", "sort"}


def parse_query(text: str, context: QueryContext, vocabulary: Vocabulary) -> ParsedQuery:
    """A pure function of its arguments."""
    return parse_sentence(Sentence(text[:MAX_QUERY_CHARS]), context, vocabulary)


def parse_sentence(sentence: Sentence, context: QueryContext, vocabulary: Vocabulary) -> ParsedQuery:
    """Takes words out of the sentence."""
    respell_amounts(sentence)
    take_orders(sentence)
    return _SentenceReading(sentence, context, vocabulary).parsed()


class _SentenceReading:
    """`said` is the sentence before any rule took a word, `new` are the fields that it fills."""

    def __init__(self, sentence: Sentence, context: QueryContext, vocabulary: Vocabulary) -> None:
        self.sentence, self.context, self.vocabulary = sentence, context, vocabulary
        self.said, self.previous, self.shown = sentence.text, context.previous, context.last_results
        self.is_new = is_new_topic(sentence)
        self.new: dict[str, Any] = {}
        self.compares = False
        self.things: ComparedThings | None = None

    def parsed(self) -> ParsedQuery:
        self._read_pointers()
        self._read_comparison()
        is_relative = self._read_changes()
        measured = self._read_amounts()
        self._read_places()
        self._read_wishes()
        goods = self._read_goods(measured)
        self._read_intent()
        kept = self._kept(goods, is_relative=is_relative)
        fields = self._fields(goods, kept)
        fields["text"] = (fields.get("text") or "")[:MAX_QUERY_CHARS]
        query = StructuredQuery.model_validate(fields)
        is_exact = goods.is_exact and query.category is not None
        return ParsedQuery(query=query, explain=self.sentence.explain, exact_category=is_exact)

    def _read_pointers(self) -> None:
        """Numbers, codes and words that mean products which were shown, and what is compared."""
        sentence, previous, shown, new = self.sentence, self.previous, self.shown, self.new
        new |= take_changed_count(sentence, previous) if previous else {}
        new |= take_codes(sentence)
        new |= take_ids(sentence, len(shown))
        self.things = compared_things(sentence)
        self.compares = asks_to_compare(sentence)
        is_besides = bool(_BESIDES.search(self.said))  # `selain itu` points at nothing
        if "product_ids" not in new and not is_besides:
            pointed = take_pointed(sentence, shown, previous, compares=self.compares)
            new |= {"product_ids": pointed} if pointed else {}

    def _read_comparison(self) -> None:
        new, shown, previous = self.new, self.shown, self.previous
        if self.compares and not self.things:
            if shown and (other := _COMPARES_WITH.search(self.said)):
                ids = list(spoken_of_before(self.context)) or [shown[0].id]
                self.things = ComparedThings(items=[other["other"]], product_ids=ids)
            elif "product_ids" not in new and _COMPARES_ALL.search(self.said):
                new["product_ids"] = [one.id for one in shown[:_MAX_COMPARED]]  # `bandingkan dong`
        if self.compares and len(new.get("product_ids", ())) == 1 and previous and previous.product_ids:
            # `bedanya sama nomor 1?`
            new["product_ids"] = list(dict.fromkeys([*previous.product_ids, *new["product_ids"]]))
        new |= take_measure_limits(self.sentence)
        if order := take_attribute_order(self.sentence, self.context, new.get("product_ids", [])):
            new["order_by"], self.compares = order, False
            new.pop("product_ids", None)
        self.compares = self.compares and bool(self.things or new.get("product_ids"))
        if self.compares:
            take_comparison(self.sentence)

    def _read_changes(self) -> bool:
        """Returns whether it compares with what was shown."""
        new = self.new
        changes = {} if self.is_new else take_changes(self.sentence, self.context, new.get("product_ids", ()))
        if changes.keys() & {"min_price", "max_price"}:
            new.pop("product_ids", None)  # cheaper than number 3
        new |= changes
        if "measures" in new and (order := new.get("order_by")) and order.beyond:
            new.pop("order_by")  # `the bigger ones, at least 2 litres`: the limit says how big
        return bool(changes)

    def _read_amounts(self) -> Sequence[tuple[int, str]]:
        """Returns the measures, which are words of the text, with their places."""
        self.new |= take_amounts(self.sentence)
        measured, unwanted = take_measures(self.sentence)
        self.new |= take_prices(self.sentence)
        if unwanted:
            self.new["exclude_terms"] = unwanted
        return measured

    def _read_places(self) -> None:
        new = self.new
        if self.previous is not None:
            self.sentence.respell([(_city_alone(), lambda found: f"di {found[0]}")])
        new |= take_places(self.sentence, self.vocabulary.goods)
        if new.get("radius_km"):
            new.pop("near_cities", None)  # the radius says how near
            if not new.keys() & {"cities", "provinces"}:
                new["near_user"] = True

    def _read_wishes(self) -> None:
        new, previous = self.new, self.previous
        new |= {name: value for name, value in take_wishes(self.sentence).items() if name not in new}
        new |= take_leading_count(self.sentence) if "quantity" not in new else {}
        former = previous.quantity if previous is not None and "quantity" not in new else None
        new |= price_of_one(self.said, new | ({"quantity": former} if former is not None else {}))
        for name, value in take_negations(self.sentence, self.vocabulary.goods).items():
            new[name] = [*new.get(name, []), *value]
        if new.get("near_cities"):
            new.pop("near_user", None)
            if new.get("sort") is None:
                new["sort"] = "distance"

    def _read_goods(self, measured: Sequence[tuple[int, str]]) -> SaidGoods:
        new = self.new
        goods = take_goods(self.sentence, self.vocabulary.goods)
        if goods.category:
            new["category"] = goods.category
        if brands := [brand for brand in goods.brands if brand not in new.get("exclude_brands", [])]:
            new["brands"] = brands
        if words := [word for _, word in sorted((*goods.text, *measured))]:
            new["text"] = " ".join(dict.fromkeys(words))
        if goods.category and not self.compares:
            if _is_of_another(goods.category, new.get("product_ids", ()), self.shown):
                new.pop("product_ids")  # a case for number 1
        return goods

    def _read_intent(self) -> None:
        new = self.new
        if self.compares:
            new["intent"] = "compare"
            ids = new.pop("product_ids", [])
            new["compare"] = {"product_ids": ids} if ids else self.things.model_dump() if self.things else None
            if self.things and not ids:
                new.pop("brands", None)
                new.pop("text", None)
        elif STOCK_QUESTION.search(self.said) and new.get("in_stock") is not False and _is_question(self.said):
            new["intent"] = "stock"
            new.setdefault("in_stock", True)
        elif RECOMMEND.search(self.said):
            new["intent"] = "recommend"

    def _kept(self, goods: SaidGoods, *, is_relative: bool) -> StructuredQuery | None:
        """Of the query before; a question about what was shown keeps all of it."""
        said, previous, kept = self.said, self.previous, None
        if previous is not None and not self.is_new:
            has_noun = goods.has_noun or (goods.has_component and previous.category not in word_list("device"))
            kept = going_on(said, self.new, previous, self.vocabulary, has_noun=has_noun, is_relative=is_relative)
        facts = asked_facts(said)
        if facts and asks_only(facts, self.new, previous) and not names_no_goods(said):
            self.new = query_about(facts, self.new, self.context)
            kept = previous
        return kept

    def _fields(self, goods: SaidGoods, kept: StructuredQuery | None) -> dict[str, Any]:
        """Those of the query; none but the intent if the sentence is no wish for goods."""
        said, new = self.said, self.new
        is_goodbye = says_goodbye(said) and not goods.has_noun and "?" not in said and new.keys() <= _OF_SMALL_TALK
        if not is_goodbye and kept is not None and points_at_number(said) and (size := _size_of_wear(said, kept)):
            return merged(kept, {"text": size})  # `nomor 42` of shoes
        if is_goodbye or self._is_no_wish(goods):
            return {"intent": "other"}
        return merged(kept, new) if kept is not None and new.get("intent") != "other" else new

    def _is_no_wish(self, goods: SaidGoods) -> bool:
        said, new = self.said, self.new
        fields = new.keys() - {"intent"}
        if not new or (points_at_number(said) and _says_only_numbers(new, goods)):
            return True  # no list has these numbers: that is no wish for goods with a 2 in their names
        if not goods.has_noun and fields <= {"text", "cities", "provinces"} and names_no_goods(said):
            return True  # the weather in Jakarta
        if fields <= {"text", "brands"} and is_off_topic(said, has_noun=goods.has_noun):
            return True
        is_bare = new.keys() <= {"text"} and not goods.has_noun
        return is_bare and asks_of_the_world(said, new.get("text", ""), self.vocabulary)


def _is_of_another(category: str, pointed: Sequence[int], shown: Sequence[ShownProduct]) -> bool:
    return any(one.id in pointed and one.category not in (None, category) for one in shown)


def _size_of_wear(said: str, previous: StructuredQuery) -> str | None:
    numbers = [word for word in re.findall(r"\d+", said) if int(word) in _SIZES_OF_WEAR]
    return numbers[0] if len(numbers) == 1 and previous.category in ("shoes", "clothing") else None


def _says_only_numbers(new: Mapping[str, Any], goods: SaidGoods) -> bool:
    if goods.has_noun or not new.keys() - {"intent"} <= {"text", "in_stock", "compare"}:
        return False
    compared = new["compare"] if new.get("compare") else {}
    if compared.get("product_ids"):
        return False
    words = [*new.get("text", "").split(), *" ".join(compared.get("items", [])).split()]
    return all(word.isdecimal() or points_at_number(f"{word} 1") for word in words)


@cache
def _city_alone() -> "re.Pattern[str]":
    """`Medan ada?` behind another question is the city, whatever else the word means."""
    names = "|".join(sorted(word_list("city like a word") - {"palu", "batu", "batang", "padang"}))
    return re.compile(rf"^(?:{names})(?=(?: (?:ada|aja|saja|gimana|dong|bisa|gmn))*\W*$)")


def _is_question(said: str) -> bool:
    return "?" in said or bool(_ASKS.search(said))
