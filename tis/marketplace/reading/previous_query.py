"""The query of the turn before: what a sentence that goes on from it keeps, and the two made one."""

from collections.abc import Mapping, Sequence
from typing import Any

from tis.marketplace.reading.goods_kinds import GoodsKind, wanted_kind
from tis.marketplace.reading.goods_nouns import OR
from tis.marketplace.reading.measures import amounts_in
from tis.marketplace.reading.sentence import any_of
from tis.marketplace.reading.structured_query import QueryContext, StructuredQuery
from tis.marketplace.reading.vocabulary import GoodsIndex, Vocabulary
from tis.marketplace.reading.word_lists import word_list

_OPENING = any_of(
    r"""
    (?:(?:hmm+|oke?|ya|ya sudah|well|dan|terus|trus|and)\W+)*(?:(?:ada )?(?:yang|yg)|kalau|kalo|klo|how about|what about
    gimana|bagaimana|tapi|but|only|hanya|cuma|just|jangan|ganti|what if|maybe|mungkin)
    """
)
_WHICH = any_of(r"(?:(?:hmm+|oke?|ya|dan|and)\W+)*(?:(?:ada )?(?:yang|yg)|with|without|dengan|tanpa|pakai|pake)")
_PROPERTY = any_of(
    "warna(?:nya)?|ukuran(?:nya)?|motif|bahan(?:nya)?|tipe|type|model|size|colou?r|with|without|dengan|tanpa|ones?"
)
_NARROWS = any_of("saja|aja|only|just|hanya|cuma|dulu|the")
_THEIR = any_of(r"[a-z]{3,}nya(?: saja| aja| yang| yg| dong| dulu)")
_LISTS = {"exclude_brands": "brands", "exclude_terms": "text", "exclude_cities": "cities"}


def spoken_of_before(context: QueryContext) -> Sequence[int]:
    """The products that the turn before pointed at, or the first in the order that it asked for."""
    if context.previous is None:
        return ()
    first = [one.id for one in context.last_results[:1]] if context.previous.order_by else []
    return context.previous.product_ids or first


def going_on(
    said: str,
    new: Mapping[str, Any],
    previous: StructuredQuery,
    vocabulary: Vocabulary,
    *,
    has_noun: bool,
    is_relative: bool,
) -> StructuredQuery | None:
    """What a sentence keeps of the query before; None if it begins anew: it names the goods as a whole question does.

    Of other goods, with a word that goes on (`kalau keyboard?`), the place and the budget are kept. `is_relative`: it
    compares with what was shown.
    """
    if not has_noun and new.get("category") is None:
        return None if _names_unknown_goods(said, new, previous, vocabulary.goods) else previous
    alternatives = previous.text.split(f" {OR} ")
    wanted = wanted_kind(new.get("text", ""), new.get("category"), vocabulary)
    same = [text for text in alternatives if _is_same(wanted, wanted_kind(text, previous.category, vocabulary))]
    is_narrowed = bool(same) and len(alternatives) > 1 and _NARROWS.search(said) is not None
    if is_relative and same:
        return previous
    if not (_OPENING.match(said) or _WHICH.match(said) or _THEIR.search(said) or is_narrowed):
        return None
    if not same and _WHICH.match(said) and new.get("category") in (None, previous.category):
        return previous  # of shirts, `yang batik`
    if not same:
        former = ("text", "category", "brands", "exclude_brands", "exclude_terms", "min_rating", "sort")
        kept = previous.model_dump(exclude={*former, "measures"})
        if (kept["max_price"] or 0) % 1000 == 999 or (kept["min_price"] or 0) % 1000 == 1:
            kept |= {"max_price": None, "min_price": None}  # cheaper than the former goods that were shown
        return StructuredQuery(**kept)
    # What is said of the goods now holds.
    said_words = set(new.get("text", "").split())
    nearest = max(same, key=lambda text: len(said_words.intersection(text.split())))
    return previous.model_copy(update={"text": nearest if len(alternatives) > 1 or not said_words else ""})


def _names_unknown_goods(said: str, new: Mapping[str, Any], previous: StructuredQuery, index: GoodsIndex) -> bool:
    """`drone DJI murah` behind laptops: its first word is no property that anyone names."""
    words = new.get("text", "").split()
    if not words or not words[0].isalpha() or _OPENING.match(said) or _PROPERTY.search(said):
        return False
    is_known = (words[0],) in index.synonyms or (words[0],) in index.brands or words[0] in previous.text.split()
    return not is_known and words[0] not in word_list("description", "plain", "filler") and previous.text != ""


def _without_replaced(text: str, new: str) -> str:
    """`5 meter` behind `2 meter`, blue behind red, 13 behind 15: the former value is meant no more."""
    kinds = [kind for word in new.split() if (kind := _value_kind(word))]
    words = text.split()
    replaced = {kind for kind in kinds if kinds.count(kind) == 1 and [*map(_value_kind, words)].count(kind) == 1}
    return " ".join(word for word in words if _value_kind(word) not in replaced)


def _value_kind(word: str) -> str:
    if word.isdecimal():
        return "number"
    if word in word_list("colour"):
        return "colour"
    return next((scale for _, _, scale, _ in amounts_in(word)), "")


def _is_same(one: GoodsKind | None, other: GoodsKind | None) -> bool:
    if one is None or other is None:
        return one is other
    is_of_category = one.category is not None and one.category == other.category
    return is_of_category or not one.phrases.isdisjoint(other.phrases) or not one.words.isdisjoint(other.words)


def merged(previous: StructuredQuery, new: dict[str, Any]) -> dict[str, Any]:
    """The fields of the query before, with what the sentence changes. What it says last holds."""
    fields = previous.model_dump(exclude_defaults=True)
    for name in ("product_ids", "compare", "sku", "order_by", "asked"):
        fields.pop(name, None)
    if fields.get("intent") not in ("search", "recommend"):
        fields.pop("intent", None)
    if new.get("cities") or new.get("provinces"):
        fields.pop("cities", None)
        fields.pop("provinces", None)
        fields.pop("near_cities", None)
        if not new.get("near_user"):
            fields.pop("near_user", None)
            fields.pop("radius_km", None)
            if fields.get("sort") == "distance":
                fields.pop("sort")
    for name, wanted in _LISTS.items():
        if name in new:
            kept = [one for one in fields.get(wanted, []) if one not in new[name]]
            fields |= {wanted: kept} if wanted in fields and wanted != "text" else {}
            new[name] = list(dict.fromkeys([*fields.get(name, []), *new[name]]))[:20]
    for name, wanted in _LISTS.items():  # what is wanted now
        said = new[wanted].split() if wanted == "text" and wanted in new else new.get(wanted, ())
        if name in fields and (rest := [one for one in fields[name] if one not in said]) != fields[name]:
            fields[name] = rest
    if new.get("text") and fields.get("text"):
        fields["text"] = _without_replaced(fields["text"], new["text"])
        known = fields["text"].split()
        more = " ".join(word for word in new["text"].split() if word not in known)
        new["text"] = f" {OR} ".join(f"{one} {more}".strip() for one in fields["text"].split(f" {OR} "))
    if "max_price" in new:
        fields.pop("total_price", None)
    elif new.get("quantity") and fields.get("total_price"):
        fields["max_price"] = fields["total_price"] // new["quantity"]
    if "measures" in new:
        changed = {one["attribute"] for one in new["measures"]}
        new["measures"] = [
            *(one for one in fields.get("measures", []) if one["attribute"] not in changed),
            *new["measures"],
        ][-10:]
    fields |= new
    least, most = fields.get("min_price"), fields.get("max_price")
    if least is not None and most is not None and least > most:
        fields.pop("max_price" if "min_price" in new else "min_price")
    return fields
