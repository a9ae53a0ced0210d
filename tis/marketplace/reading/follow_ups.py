"""Sentences that go on from the turn before: what they change of its query."""

import re
from collections.abc import Sequence
from typing import Any

from tis.marketplace.reading.previous_query import spoken_of_before
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


def is_new_topic(sentence: Sentence) -> bool:
    return _NEW_TOPIC.search(sentence.text) is not None
