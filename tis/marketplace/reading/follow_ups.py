"""Sentences that go on from the turn before: what they change of its query."""

import re
from collections.abc import Sequence
from typing import Any

from tis.marketplace.reading.sentence import Sentence, any_of, whole_words
from tis.marketplace.reading.structured_query import QueryContext, StructuredQuery

_NEW_TOPIC = any_of(
    r"""
    sekarang (?:cari|mau|saya|aku|butuh|ganti)|ganti topik|now (?:i|show|find|look)|beda lagi|gak jadi
    (?<!yang )(?<!yg )lain lagi
    ga jadi|nggak jadi|forget (?:it|that)|lupakan|reset|(?:hapus|clear)(?: semua| all)? filters?
    mulai dari awal|start over|mulai lagi|pencarian baru|new search
    skrg (?:cari|mau)
    """
)
_MARKERS = any_of(
    r"""
    yang|yg|kalau|kalo|klo|kl|gimana|bagaimana|gmn|how about|what about|lebih|kurang|tapi|tp|but|jangan|jgn
    selain|kecuali|ada yang|ganti(?:nya)?|only|just|hanya|cuma|aja|saja|ones?|nya|same|sama|lain(?:nya)?|lagi
    more|instead|any|make it|filter|urutkan|sort|dan|terus|trus|atau|warna(?:nya)?|versi|ukuran|bukan|tanpa
    except|without|merk|merek|brand|di mana|its?|them|those|these
    """
)
_OPENING = any_of(
    r"""
    (?:ada )?(?:yang|yg)|kalau|kalo|klo|how about|what about|gimana|bagaimana|tapi|but|only|hanya|jangan
    """
)
_CHEAPER = any_of(
    r"""
    (?:yang |yg |ada |lagi )*(?:lebih|lbh|rada|agak) (?:murah|murmer|terjangkau|hemat|miring)(?: lagi| dikit| sedikit)?
    cheaper(?: ones?)?|less expensive|murahan(?: dikit| lagi)?|lower price|kemahalan|too expensive|terlalu mahal
    mahal (?:banget|amat)|turunin harga(?:nya)?
    """
)
_WHICH_IS_CHEAPER = any_of("mana (?:yang |yg )?(?:lebih|lbh|paling) murah|which (?:one )?is (?:cheaper|the cheapest)")
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


_COUNT_ALONE = re.compile(
    r"^\W*(?:(?:kalau|kalo|klo|kl|gimana|bagaimana|jadi|jadinya|what about|how about|make it|and for|for|if)\s)*"
    r"(?P<count>[1-9]\d{0,5})(?:\s?(?:unit|buah|pcs|biji|pieces|units))?(?:\s(?:aja|saja|gimana|ada|cukup|instead))?\W*$"
)


def take_changed_count(sentence: Sentence, previous: StructuredQuery) -> dict[str, Any]:
    """`kalau 50?` behind `saya butuh 10 mouse`."""
    found = _COUNT_ALONE.match(sentence.text) if previous.quantity is not None else None
    if found is None:
        return {}
    sentence.take_found(found, "another quantity", "quantity")
    return {"quantity": int(found["count"])}


def take_changes(sentence: Sentence, context: QueryContext, pointed: Sequence[int] = ()) -> dict[str, Any]:
    """What is said in relation to what was shown. Without a turn before, words of comparison only sort."""
    meant = [one for one in context.last_results if one.id in pointed] or context.last_results
    prices = [one.price for one in meant if one.price is not None]
    changes: dict[str, Any] = {}
    if found := _WHICH_IS_CHEAPER.search(sentence.text):
        changes["sort"] = "price_asc"
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
        (_ANYWHERE, ("cities", "provinces")),
        (_ANY_PRICE, ("min_price", "max_price")),
    ):
        if found := pattern.search(sentence.text):
            changes |= {name: None if "price" in name else [] for name in names}
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


def is_new_topic(sentence: Sentence) -> bool:
    return _NEW_TOPIC.search(sentence.text) is not None


def goes_on(said: str, new: dict[str, Any], previous: StructuredQuery, *, has_noun: bool) -> bool:
    """Whether a sentence refines the query before: not if it names other goods, or is a whole question of its own."""
    category = new.get("category")
    if category is not None and category != previous.category:
        return False
    if category is None and has_noun:
        return bool(_OPENING.match(said)) or (bool(_MARKERS.search(said)) and len(said.split()) <= 4)
    return category is None or bool(_MARKERS.search(said))


def merged(previous: StructuredQuery, new: dict[str, Any]) -> dict[str, Any]:
    """The fields of the query before, with what the sentence changes. What it says last holds."""
    fields = previous.model_dump(exclude_defaults=True)
    for name in ("product_ids", "compare", "sku", "order_by"):
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
    if new.get("text") and fields.get("text"):
        words = [*fields["text"].split(), *(word for word in new["text"].split() if word not in fields["text"].split())]
        new["text"] = " ".join(words)
    fields |= new
    least, most = fields.get("min_price"), fields.get("max_price")
    if least is not None and most is not None and least > most:
        fields.pop("max_price" if "min_price" in new else "min_price")
    return fields
