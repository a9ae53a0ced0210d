"""Questions about what was shown: `harganya brp?`, `which city is it in?`, `garansinya berapa lama?`."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from tis.marketplace.reading.previous_query import spoken_of_before
from tis.marketplace.reading.sentence import any_of
from tis.marketplace.reading.structured_query import QueryContext, StructuredQuery
from tis.marketplace.reading.word_lists import read_rows

_QUESTION = any_of(
    r"""
    berapa(?:an)?|brp(?:an|a)?|brapa|apa(?:kah)?|mana|dimana|dmn|siapa|gimana|bagaimana|sebutkan|info(?:nya)?
    how|what|what's|whats|which|where|who|tell me|is it|are they|does it|do they
    """
)
_ALONE = re.compile(
    r"^\W*(?:(?:kalau|kalo|terus|trus|jadi|lalu) )*(?:berapa(?:an)?|brp(?:an|a)?|how much)"
    r"(?: (?:ya|sih|tuh|itu|ini|is it|are they|is that|duit|duitnya))*\W*$"
)

_ENDING = r"(?:nya|ny|x|s)?"
_MORE = any_of(
    "lama|long|besar|big|large|banyak|many|much|jumlah|tinggal|masih|ada|inci|inch|kilo|kg|gram|gr|ml|cm|watt|mah|meter|liter|persen"
)


@cache
def fact_patterns() -> Mapping[str, "re.Pattern[str]"]:
    """What words of a seller or a buyer speak of each fact, in the order of `asked.csv`."""
    return {row["fact"]: any_of(rf"(?:{row['words']}){_ENDING}") for row in read_rows("asked.csv")}


def asked_facts(said: str) -> list[str]:
    """What a sentence asks of goods, in the order of `asked.csv`; nothing if it asks nothing."""
    if _ALONE.search(said):
        return ["price"]
    if "?" not in said and not _QUESTION.search(said):
        return []
    facts = [fact for fact, pattern in fact_patterns().items() if pattern.search(said)]
    return [fact for fact in facts if fact != "price" or len(facts) == 1 or "how much" not in said]


def _only_asks(facts: Iterable[str], words: Iterable[str]) -> bool:
    """Whether the words say nothing beside the facts."""
    left = " ".join(words)
    for fact in facts:
        left = fact_patterns()[fact].sub(" ", left)
    return all(_MORE.search(word) for word in left.split())


def asks_only(facts: Sequence[str], new: Mapping[str, Any], previous: StructuredQuery | None) -> bool:
    """`harganya berapa?` asks of goods that were shown; `harganya di bawah 5 juta?` and `harga laptop?` do not."""
    others = {"near_user", "sort"} if "distance" in facts else {"quantity"} if "price" in facts else set()
    if new.keys() - {"text", "product_ids", "in_stock", "intent", "category"} - others or new.get("in_stock") is False:
        return False
    if new.get("category") not in (None, previous.category if previous else None):
        return False
    known = previous.text.split() if previous else []
    return _only_asks(facts, [word for word in new.get("text", "").split() if word not in known])


def query_about(facts: Sequence[str], new: Mapping[str, Any], context: QueryContext) -> dict[str, Any]:
    """The products that the question is about: those pointed at, else the first in an order, else all of the list."""
    previous, shown = context.previous, [one.id for one in context.last_results]
    pointed = new.get("product_ids") or list(spoken_of_before(context))
    if not pointed and (previous is None or not shown):
        return {"intent": "other"}
    if list(facts) == ["stock"]:
        return {"intent": "stock", "in_stock": True} | ({"product_ids": pointed} if pointed else {})
    quantity = {"quantity": new["quantity"]} if new.get("quantity") else {}
    return {"product_ids": pointed or shown, "asked": list(facts)} | quantity
