"""Reads a sentence of a buyer by rules: each takes its words out of the sentence, in a fixed order."""

from collections.abc import Mapping, Sequence
from typing import Any

from tis.marketplace.reading.amounts import (
    price_of_one,
    respell_amounts,
    take_amounts,
    take_leading_count,
    take_measures,
    take_prices,
)
from tis.marketplace.reading.follow_ups import goes_on, is_new_topic, merged, take_changed_count, take_changes
from tis.marketplace.reading.goods_nouns import SaidGoods, take_goods
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
from tis.marketplace.reading.said_places import take_places
from tis.marketplace.reading.sentence import Sentence, any_of
from tis.marketplace.reading.structured_query import (
    MAX_QUERY_CHARS,
    ParsedQuery,
    QueryContext,
    ShownProduct,
    StructuredQuery,
)
from tis.marketplace.reading.vocabulary import Vocabulary
from tis.marketplace.reading.wishes import RECOMMEND, STOCK_QUESTION, take_attribute_order, take_wishes

_SETTING = frozenset(StructuredQuery.model_fields) - {"intent"}


def parse_query(text: str, context: QueryContext, vocabulary: Vocabulary) -> ParsedQuery:
    """A pure function of its arguments."""
    return parse_sentence(Sentence(text[:MAX_QUERY_CHARS]), context, vocabulary)


def parse_sentence(sentence: Sentence, context: QueryContext, vocabulary: Vocabulary) -> ParsedQuery:
    """Takes words out of the sentence."""
    index = vocabulary.goods
    respell_amounts(sentence)
    said, previous, shown = sentence.text, context.previous, context.last_results
    is_new = is_new_topic(sentence)
    asks_stock, asks_advice = bool(STOCK_QUESTION.search(said)), bool(RECOMMEND.search(said))
    new: dict[str, Any] = take_changed_count(sentence, previous) if previous else {}
    new |= take_codes(sentence)
    new |= take_ids(sentence, len(shown))
    things = compared_things(sentence)
    compares = asks_to_compare(sentence)
    if "product_ids" not in new and (pointed := take_pointed(sentence, shown, previous, compares=compares)):
        new["product_ids"] = pointed
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
    new |= take_amounts(sentence)
    measured = take_measures(sentence)
    new |= take_prices(sentence)
    new |= take_places(sentence, index)
    if "radius_km" in new:
        new.pop("near_cities", None)  # the radius says how near
    if "radius_km" in new and not new.keys() & {"cities", "provinces"}:
        new["near_user"] = True
    new |= {name: value for name, value in take_wishes(sentence).items() if name not in new}
    new |= take_leading_count(sentence) if "quantity" not in new else {}
    new |= price_of_one(said, new)
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
    is_more = previous is not None and not is_new and goes_on(said, new, previous, has_noun=goods.has_noun)
    if points_at_number(said) and _says_only_numbers(new, goods):
        new = {"intent": "other"}  # no list has them: that is no wish for goods with a 2 in their names
    elif _SETTING.isdisjoint(new) and new.get("intent", "search") == "search" and "intent" not in new:
        new["intent"] = "other"
    elif _SETTING & new.keys() <= {"text", "brands"} and is_off_topic(said, has_noun=goods.has_noun):
        new = {"intent": "other"}
    elif is_more and previous is not None:
        new = merged(previous, new)
    new["text"] = (new.get("text") or "")[:MAX_QUERY_CHARS]
    query = StructuredQuery.model_validate(new)
    return ParsedQuery(
        query=query, explain=sentence.explain, exact_category=goods.is_exact and query.category is not None
    )


def _is_of_another(category: str, pointed: Sequence[int], shown: Sequence[ShownProduct]) -> bool:
    return any(one.id in pointed and one.category not in (None, category) for one in shown)


def _says_only_numbers(new: Mapping[str, Any], goods: SaidGoods) -> bool:
    if goods.has_noun or not _SETTING & new.keys() <= {"text", "in_stock", "compare"}:
        return False
    compared = new["compare"] if new.get("compare") else {}
    if compared.get("product_ids"):
        return False
    words = [*new.get("text", "").split(), *" ".join(compared.get("items", [])).split()]
    return all(word.isdecimal() or points_at_number(f"{word} 1") for word in words)


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
_NO_GOODS = any_of(
    r"""
    buat(?:kan|in)|tulis(?:kan|in)|ceritakan|terjemah(?:kan|in)|jelaskan|hitung(?:kan|in)
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
