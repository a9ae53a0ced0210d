"""Sentences that go on from the turn before: what they change of its query."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tis.marketplace.reading.goods_kinds import GoodsKind, wanted_kind
from tis.marketplace.reading.goods_nouns import OR
from tis.marketplace.reading.measures import amounts_in
from tis.marketplace.reading.sentence import Sentence, any_of, whole_words
from tis.marketplace.reading.structured_query import QueryContext, StructuredQuery
from tis.marketplace.reading.vocabulary import GoodsIndex, Vocabulary
from tis.marketplace.reading.word_lists import word_list

_NEW_TOPIC = any_of(
    r"""
    sekarang (?:cari|mau|saya|aku|butuh|ganti)|ganti topik|now (?:i|show|find|look)|beda lagi|gak jadi
    (?<!yang )(?<!yg )lain lagi
    ga jadi|nggak jadi|forget (?:it|that)|lupakan|reset|(?:hapus|clear)(?: semua| all)? filters?
    mulai dari awal|start over|mulai lagi|pencarian baru|new search
    skrg (?:cari|mau)
    """
)
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
_CHEAPER = any_of(
    r"""
    (?:yang |yg |ada |lagi )*(?:lebih|lbh|rada|agak) (?:murah|murmer|terjangkau|hemat|miring)(?: lagi| dikit| sedikit)?
    cheaper(?: ones?)?|less expensive|murahan(?: dikit| lagi)?|lower price|kemahalan|too expensive|terlalu mahal
    mahal (?:banget|amat)|turunin harga(?:nya)?
    """
)
_WHICH_IS_CHEAPER = any_of(
    r"""
    mana (?:yang |yg )?(?:lebih|lbh|paling) murah|which (?:one |of them )?is (?:cheaper|the cheapest)
    the cheaper(?: one)?
    (?:yang |yg )?(?:lebih|lbh|paling) murah (?:yang |yg )?(?:mana|apa|nomor berapa)
    """
)
_DEARER = any_of(
    r"""
    (?:yang |yg )*(?:lebih|lbh) (?:mahal|premium)|more expensive|pricier|higher[ -]end|mahalan(?: dikit)?
    """
)
_NEARER = any_of(
    r"""
    (?:yang |yg )*(?:lebih|lbh) (?:dekat|deket|dkt)(?: lagi)?(?: dari (?:sini|rumah|saya|rumah saya))?
    closer(?: ones?)?(?: to me)?|nearer(?: ones?)?|dekatan|deketan
    """
)
_BETTER = any_of(
    r"""
    (?:yang |yg )*(?:rating(?:nya)? (?:lebih|lbh) (?:tinggi|bagus)|(?:lebih|lbh) (?:bagus|baik) (?:rating|ulasan))
    better rated|(?:yang |yg )*(?:lebih|lbh) (?:bagus|baik)(?: lagi)?|better ones?
    """
)
_ANY_BRAND = any_of(
    r"""
    (?:merk|merek|brand)(?:nya)? (?:apa saja|apa aja|apapun|bebas|terserah)
    (?:bebas|semua|any) (?:merk|merek|brand)|any brands?
    (?:tanpa|without|no) (?:filter )?(?:merk|merek|brand)(?: tertentu)?
    """
)
_OTHER_BRAND = whole_words(r"(?:merk|merek|brand)s? (?:yang |yg )?lain(?:nya)?|(?:other|another|different) brands?")
_ANYWHERE = any_of(
    r"""
    (?:di )?(?:kota|daerah|tempat) (?:mana saja|mana aja|manapun|lain)|di mana (?:saja|aja)|dimana (?:saja|aja)
    (?:seluruh|se) ?indonesia|anywhere
    (?:hapus|tanpa|remove|without) (?:filter )?(?:kota|lokasi|tempat|city|location)|any city
    other (?:cities|city)|semua kota
    """
)
_ANY_PRICE = any_of(
    r"""
    (?:tanpa batas(?:an)?|bebas|berapa(?:pun| saja| aja)) (?:harga|budget)
    (?:harga|budget)(?:nya)? (?:bebas|berapapun|berapa (?:saja|aja)|terserah|(?:tidak|ga|nggak) masalah)
    any price|no (?:price )?limit|no budget|price doesn'?t matter
    """
)
OTHERS = "others than those shown"  # the rule, in explanations
_OTHERS = any_of(
    r"""
    (?:ada )?(?:yang |yg )?(?:lain(?:nya)?)(?: lagi| ada| dong)?|others?(?: ones?)?|something else|another one
    (?:ada )?(?:alternatif|pilihan)(?: lain)?|more options|show more|any more|anything else|selain (?:itu|ini)
    ada lagi|lagi dong|else
    """
)
_LISTS = {"exclude_brands": "brands", "exclude_terms": "text", "exclude_cities": "cities"}


_GOING_ON = (
    r"(?:(?:kalau|kalo|klo|kl|gimana|bagaimana|jadi|jadinya|what about|how about|make it|and for|for|if|what if|and|ok"
    r"|oke|ya|yaudah|ya udah|ya sudah)\s)*"
)
_PEOPLE = "orang|people|persons?|tamu|guests?|anak|kids|children|karyawan|staff|siswa|students?|peserta|undangan"
_NUMBERS = dict(zip("two three four five six seven eight nine ten".split(), range(2, 11), strict=True))
_NUMBERS |= dict(zip("dua tiga empat lima enam tujuh delapan sembilan sepuluh".split(), range(2, 11), strict=True))
_COUNT_ALONE = re.compile(
    rf"^\W*{_GOING_ON}(?P<count>[1-9]\d{{0,5}}|{'|'.join(_NUMBERS)})(?:\s?(?:unit|buah|pcs|biji|pieces|units|lusin|dus|pasang|sak|botol|kg))?"
    r"(?:\s(?:of (?:them|those|these|it)|aja|saja|gimana|ada|cukup|instead|only|dulu))*\W*$"
)
_COUNT_OF_PEOPLE = re.compile(
    rf"^\W*{_GOING_ON}(?:(?:untuk|utk|buat|bwt|for)\s)(?P<count>[1-9]\d{{0,5}})\s(?:{_PEOPLE})(?:\s(?:gimana|aja|saja|ada))*\W*$"
)


_COUNT_INSIDE = any_of(
    r"(?:kalau|kalo|klo|kl|jadi|for|untuk|buat) (?P<count>[1-9]\d{0,5})"
    r"(?=(?: (?:gimana|aja|saja|unit|buah|pcs|biji|of))|\W*$)"
)


def take_changed_count(sentence: Sentence, previous: StructuredQuery) -> dict[str, Any]:
    """`kalau 50?` behind `saya butuh 10 mouse`."""
    text = sentence.text
    found = _COUNT_ALONE.match(text) or _COUNT_OF_PEOPLE.match(text) or _COUNT_INSIDE.search(text)
    if found is None or (previous.quantity is None and " of " not in found[0]):
        return {}
    sentence.take_found(found, "another quantity", "quantity")
    return {"quantity": _NUMBERS.get(found["count"]) or int(found["count"])}


def take_changes(sentence: Sentence, context: QueryContext, pointed: Sequence[int] = ()) -> dict[str, Any]:
    """What is said in relation to what was shown. Without a turn before, words of comparison only sort."""
    spoken_of = pointed or spoken_of_before(context)
    meant = [one for one in context.last_results if one.id in spoken_of] or context.last_results
    prices = [one.price for one in meant if one.price is not None]
    changes: dict[str, Any] = {}
    if found := _WHICH_IS_CHEAPER.search(sentence.text):
        changes["sort"] = "price_asc"
        if context.previous and context.previous.compare:
            changes["product_ids"] = [one.id for one in context.last_results]
        sentence.take_found(found, "which is the cheapest", "sort")
    elif found := _CHEAPER.search(sentence.text):
        changes["max_price" if prices else "sort"] = max(0, min(prices) - 1) if prices else "price_asc"
        sentence.take_found(found, "cheaper than what was shown", *changes)
    elif found := _DEARER.search(sentence.text):
        changes["min_price" if prices else "sort"] = max(prices) + 1 if prices else "price_desc"
        sentence.take_found(found, "dearer than what was shown", *changes)
    if found := _NEARER.search(sentence.text):
        changes |= {"sort": "distance", "near_user": True}
        sentence.take_found(found, "nearer", "sort", "near_user")
    if found := _BETTER.search(sentence.text):
        changes["sort"] = "rating"
        sentence.take_found(found, "better rated", "sort")
    for pattern, names in (
        (_ANY_BRAND, ("brands",)),
        (_ANYWHERE, ("cities", "provinces", "near_cities", "near_user", "radius_km")),
        (_ANY_PRICE, ("min_price", "max_price")),
    ):
        if found := pattern.search(sentence.text):
            changes |= {name: getattr(StructuredQuery(), name) for name in names}
            sentence.take_found(found, "any", *names)
    if found := _OTHER_BRAND.search(sentence.text):
        shown = [one.brand.lower() for one in context.last_results if one.brand]
        said = context.previous.brands if context.previous else []
        changes |= {"brands": [], "exclude_brands": list(dict.fromkeys(said or shown))[:20]}
        sentence.take_found(found, "another brand", "brands", "exclude_brands")
    elif context.previous and (found := _OTHERS.search(sentence.text)):
        sentence.take_found(found, OTHERS, "intent")
        changes["intent"] = "search"
    return changes


def spoken_of_before(context: QueryContext) -> Sequence[int]:
    """The products that the turn before pointed at, or the first in the order that it asked for."""
    if context.previous is None:
        return ()
    first = [one.id for one in context.last_results[:1]] if context.previous.order_by else []
    return context.previous.product_ids or first


def is_new_topic(sentence: Sentence) -> bool:
    return _NEW_TOPIC.search(sentence.text) is not None


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
