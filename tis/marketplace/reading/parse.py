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
from tis.marketplace.reading.asked import asked_facts, only_asks
from tis.marketplace.reading.follow_ups import (
    going_on,
    is_new_topic,
    merged,
    spoken_of_before,
    take_changed_count,
    take_changes,
)
from tis.marketplace.reading.goods_nouns import SaidGoods, take_goods
from tis.marketplace.reading.measure_limits import take_measure_limits
from tis.marketplace.reading.negations import take_negations
from tis.marketplace.reading.orders_to_machine import take_orders
from tis.marketplace.reading.pointing import (
    asks_to_compare,
    compared_things,
    points_at_number,
    take_codes,
    take_comparison,
    take_ids,
    take_pointed,
)
from tis.marketplace.reading.said_places import take_places
from tis.marketplace.reading.sentence import Sentence, any_of
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
_SETTING = frozenset(StructuredQuery.model_fields) - {"intent"}


def parse_query(text: str, context: QueryContext, vocabulary: Vocabulary) -> ParsedQuery:
    """A pure function of its arguments."""
    return parse_sentence(Sentence(text[:MAX_QUERY_CHARS]), context, vocabulary)


def parse_sentence(sentence: Sentence, context: QueryContext, vocabulary: Vocabulary) -> ParsedQuery:
    """Takes words out of the sentence."""
    index = vocabulary.goods
    respell_amounts(sentence)
    take_orders(sentence)
    said, previous, shown = sentence.text, context.previous, context.last_results
    is_new = is_new_topic(sentence)
    asks_stock, asks_advice = bool(STOCK_QUESTION.search(said)), bool(RECOMMEND.search(said))
    new: dict[str, Any] = take_changed_count(sentence, previous) if previous else {}
    new |= take_codes(sentence)
    new |= take_ids(sentence, len(shown))
    things = compared_things(sentence)
    compares = asks_to_compare(sentence)
    is_besides = bool(_BESIDES.search(said))  # `selain itu` points at nothing
    if (
        "product_ids" not in new
        and not is_besides
        and (pointed := take_pointed(sentence, shown, previous, compares=compares))
    ):
        new["product_ids"] = pointed
    if compares and not things and shown and (other := _COMPARES_WITH.search(said)):
        things = ComparedThings(items=[other["other"]], product_ids=list(spoken_of_before(context)) or [shown[0].id])
    elif compares and not things and "product_ids" not in new and _COMPARES_ALL.search(said):
        new["product_ids"] = [one.id for one in shown[:_MAX_COMPARED]]  # `bandingkan dong`
    if compares and len(new.get("product_ids", ())) == 1 and previous and previous.product_ids:
        new["product_ids"] = list(
            dict.fromkeys([*previous.product_ids, *new["product_ids"]])
        )  # `bedanya sama nomor 1?`
    new |= take_measure_limits(sentence)
    if order := take_attribute_order(sentence, context, new.get("product_ids", [])):
        new["order_by"], compares = order, False
        new.pop("product_ids", None)
    compares = compares and bool(things or new.get("product_ids"))
    if compares:
        take_comparison(sentence)
    changes = {} if is_new else take_changes(sentence, context, new.get("product_ids", ()))
    if changes.keys() & {"min_price", "max_price"}:
        new.pop("product_ids", None)  # cheaper than number 3
    new |= changes
    if "measures" in new and (order := new.get("order_by")) and order.beyond:
        new.pop("order_by")  # `the bigger ones, at least 2 litres`: the limit says how big
    new |= take_amounts(sentence)
    measured, unwanted_measures = take_measures(sentence)
    new |= take_prices(sentence)
    if previous is not None:
        sentence.respell([(_city_alone(), lambda found: f"di {found[0]}")])
    new |= take_places(sentence, index)
    if new.get("radius_km"):
        new.pop("near_cities", None)  # the radius says how near
    if new.get("radius_km") and not new.keys() & {"cities", "provinces"}:
        new["near_user"] = True
    new |= {name: value for name, value in take_wishes(sentence).items() if name not in new}
    new |= take_leading_count(sentence) if "quantity" not in new else {}
    is_same_count = "quantity" not in new and previous is not None and previous.quantity is not None
    new |= price_of_one(said, new | ({"quantity": previous.quantity} if is_same_count and previous else {}))
    if unwanted_measures:
        new["exclude_terms"] = unwanted_measures
    for name, value in take_negations(sentence, index).items():
        new[name] = [*new.get(name, []), *value]
    if new.get("near_cities"):
        new.pop("near_user", None)
        if new.get("sort") is None:
            new["sort"] = "distance"
    goods = take_goods(sentence, index)
    if goods.category:
        new["category"] = goods.category
    if brands := [brand for brand in goods.brands if brand not in new.get("exclude_brands", [])]:
        new["brands"] = brands
    if words := [word for _, word in sorted((*goods.text, *measured))]:
        new["text"] = " ".join(dict.fromkeys(words))
    if goods.category and not compares and _is_of_another(goods.category, new.get("product_ids", ()), shown):
        new.pop("product_ids")  # a case for number 1
    if compares:
        new["intent"] = "compare"
        ids = new.pop("product_ids", [])
        new["compare"] = {"product_ids": ids} if ids else things.model_dump() if things else None
        if things and not ids:
            new.pop("brands", None)
            new.pop("text", None)
    elif asks_stock and (new.get("in_stock") is not False) and _is_question(said):
        new["intent"] = "stock"
        new.setdefault("in_stock", True)
    elif asks_advice:
        new["intent"] = "recommend"
    kept = None
    if previous is not None and not is_new:
        has_noun = goods.has_noun or (goods.has_component and previous.category not in word_list("device"))
        kept = going_on(said, new, previous, vocabulary, has_noun=has_noun, is_relative=bool(changes))
    facts = asked_facts(said)
    if facts and _asks_only(facts, new, previous) and not _NO_GOODS.search(said):
        new = _about(facts, new, context)
        kept = previous
    if says_goodbye(said) and not goods.has_noun and "?" not in said and new.keys() <= _OF_SMALL_TALK:
        new = {"intent": "other"}
    elif kept is not None and points_at_number(said) and (size := _size_of_wear(said, kept)):
        new = merged(kept, {"text": size})  # `nomor 42` of shoes
    elif points_at_number(said) and _says_only_numbers(new, goods):
        new = {"intent": "other"}  # no list has them: that is no wish for goods with a 2 in their names
    elif _SETTING.isdisjoint(new) and new.get("intent", "search") == "search" and "intent" not in new:
        new["intent"] = "other"
    elif not goods.has_noun and _SETTING & new.keys() <= {"text", "cities", "provinces"} and _NO_GOODS.search(said):
        new = {"intent": "other"}  # the weather in Jakarta
    elif _SETTING & new.keys() <= {"text", "brands"} and is_off_topic(said, has_noun=goods.has_noun):
        new = {"intent": "other"}
    elif new.keys() <= {"text"} and not goods.has_noun and _asks_of_the_world(said, new.get("text", ""), vocabulary):
        new = {"intent": "other"}
    elif kept is not None and new.get("intent") != "other":
        new = merged(kept, new)
    new["text"] = (new.get("text") or "")[:MAX_QUERY_CHARS]
    query = StructuredQuery.model_validate(new)
    return ParsedQuery(
        query=query, explain=sentence.explain, exact_category=goods.is_exact and query.category is not None
    )


def _is_of_another(category: str, pointed: Sequence[int], shown: Sequence[ShownProduct]) -> bool:
    return any(one.id in pointed and one.category not in (None, category) for one in shown)


def _size_of_wear(said: str, previous: StructuredQuery) -> str | None:
    numbers = [word for word in re.findall(r"\d+", said) if int(word) in _SIZES_OF_WEAR]
    return numbers[0] if len(numbers) == 1 and previous.category in ("shoes", "clothing") else None


def _says_only_numbers(new: Mapping[str, Any], goods: SaidGoods) -> bool:
    if goods.has_noun or not _SETTING & new.keys() <= {"text", "in_stock", "compare"}:
        return False
    compared = new["compare"] if new.get("compare") else {}
    if compared.get("product_ids"):
        return False
    words = [*new.get("text", "").split(), *" ".join(compared.get("items", [])).split()]
    return all(word.isdecimal() or points_at_number(f"{word} 1") for word in words)


def _asks_only(facts: Sequence[str], new: Mapping[str, Any], previous: StructuredQuery | None) -> bool:
    """`harganya berapa?` asks of goods that were shown; `harganya di bawah 5 juta?` and `harga laptop?` do not."""
    others = {"near_user", "sort"} if "distance" in facts else {"quantity"} if "price" in facts else set()
    if new.keys() - {"text", "product_ids", "in_stock", "intent", "category"} - others or new.get("in_stock") is False:
        return False
    if new.get("category") not in (None, previous.category if previous else None):
        return False
    known = previous.text.split() if previous else []
    return only_asks(facts, [word for word in new.get("text", "").split() if word not in known])


def _about(facts: Sequence[str], new: Mapping[str, Any], context: QueryContext) -> dict[str, Any]:
    """The products that the question is about: those pointed at, else the first in an order, else all of the list."""
    previous, shown = context.previous, [one.id for one in context.last_results]
    pointed = new.get("product_ids") or list(spoken_of_before(context))
    if not pointed and (previous is None or not shown):
        return {"intent": "other"}
    if list(facts) == ["stock"]:
        return {"intent": "stock", "in_stock": True} | ({"product_ids": pointed} if pointed else {})
    quantity = {"quantity": new["quantity"]} if new.get("quantity") else {}
    return {"product_ids": pointed or shown, "asked": list(facts)} | quantity


@cache
def _city_alone() -> "re.Pattern[str]":
    """`Medan ada?` behind another question is the city, whatever else the word means."""
    names = "|".join(sorted(word_list("city like a word") - {"palu", "batu", "batang", "padang"}))
    return re.compile(rf"^(?:{names})(?=(?: (?:ada|aja|saja|gimana|dong|bisa|gmn))*\W*$)")


def says_goodbye(said: str) -> bool:
    return bool(_GOODBYE.search(said))


def _asks_of_the_world(said: str, text: str, vocabulary: Vocabulary) -> bool:
    """`will it rain tomorrow?`: a question without a word of buying, and of words that no goods are named by."""
    index = vocabulary.goods
    known = [word for word in text.split() if (word,) in index.nouns or (word,) in index.brands or not word.isalpha()]
    is_described = any(word in word_list("description", "plain") for word in text.split())
    return bool(_ASKS_OF_ANYTHING.match(said)) and not (known or is_described or _BUYS.search(said))


def is_off_topic(said: str, *, has_noun: bool) -> bool:
    """Of a sentence that sets no filter: small talk, and questions about anything but goods."""
    return bool(_NO_GOODS.search(said)) or (not has_noun and bool(_SMALL_TALK.search(said)))


def _is_question(said: str) -> bool:
    return "?" in said or bool(_ASKS.search(said))


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
_GOODBYE = any_of(
    r"""
    thanks?|thank you|thx|makasih|mksh|makasi|terima ?kasih|trims|tengkyu|thankyou|tq|nuhun|suwun|bye|goodbye|dadah
    sampai jumpa|see you|that'?s (?:all|it)|that is all
    (?<!yang )(?<!yg )(?:itu|segitu|udah|sudah|cukup) (?:saja|aja|dulu|cukup)
    """
)
_ASKS_OF_ANYTHING = any_of(
    r"""
    will|would|is|are|am|do|does|did|can|could|should|was|were|has|have you|who|whom|whose|why|when|how|what|where
    apakah|apa|kenapa|mengapa|kapan|siapa|bagaimana|gimana|berapa|di ?mana
    """
)
_BUYS = any_of(
    r"""
    ada|jual(?:an)?|cari(?:kan|in)?|beli|butuh|punya|stok|harga(?:nya)?|toko|ready|murah|have|has|sells?|stock|there
    any|buy|price|cost|shop|store|find|need|carry|offer|got|cheap(?:er|est)?|rekomendasi|recommend|merk|merek|brand
    """
)
_NO_GOODS = any_of(
    r"""
    buat(?:kan|in)|tulis(?:kan|in)|ceritakan|terjemah(?:kan|in)|jelaskan|hitung(?:kan|in)?
    (?:write|tell) (?:me )?an? (?:poem|story|joke|essay|song|letter)|translate|puisi|pantun|ibu ?kota|capital of
    (?:berapa|what is|what'?s) \d+ ?[-+x*/:] ?\d+|menang(?:nya)? (?:siapa|pemilu|piala)|skor (?:bola|pertandingan)
    siapa (?:kamu|presiden|nama)|presiden|no ?resi|nomor resi|(?:pesanan|orderan|order)(?:an)? (?:saya|aku|gue)
    my order|komplain|refund|apa kabar|how are you|joke|lelucon|jam (?:berapa|buka|tutup|operasional)|buka jam
    what time|opening hours|weather|cuaca|nama(?:mu| kamu)|your name|kamu (?:siapa|robot|bot)
    are you (?:a )?(?:robot|bot|human)|cara (?:bayar|pesan|order|daftar|retur)|ganti password|lupa password
    login|daftar akun
    """
)
_SMALL_TALK = any_of(
    r"""
    halo|hallo|hai|hi|hello|hey|thanks?|thank you|thx|makasih|mksh|makasi|terima ?kasih|trims|tengkyu|thankyou
    tq|selamat|pagi|siang|sore|malam|good (?:morning|afternoon|evening|night)|assalamualaikum|siapa|kenapa
    mengapa|kapan|who|why|when|cara|how (?:do|to|can)|cerita|bye|dadah|sampai jumpa|ok|oke|sip|mantap|apa itu
    what is|what are you|bantuan|help|haha\w*|wkwk\w*|lol
    """
)
