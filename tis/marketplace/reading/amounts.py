"""Numbers of a sentence: a radius, a rating, a quantity, measures and prices; each digit is used once."""

import re
from collections.abc import Mapping
from typing import Any

from tis.marketplace.reading.measures import measures
from tis.marketplace.reading.prices import AMOUNT_SPELLINGS, FoundPrice, find_price, foreign_amounts
from tis.marketplace.reading.sentence import Sentence, any_of, whole_words
from tis.marketplace.tables import MAX_RUPIAH

_NUMBER = r"\d{1,5}(?:[.,]\d{1,2})?"
_NOT_MORE = "(?:ga|gak|nggak|tidak|not|no) (?:lebih dari|more than|sampai)|less than|kurang dari|under|di ?bawah"
_WITHIN = (
    f"(?:dalam|dlm|within|in|with|di|maks(?:imal)?|max(?:imum)?|paling jauh|up to|sekitar|seputar|a|<|{_NOT_MORE})"
)
_KM = r"(?:km|kilometers?|kilometres?|kilo ?meter)(?!\s?/|\s?per)"
_RADIUS = any_of(
    rf"""
    (?:(?:{_WITHIN}|(?:jarak|radius)(?:nya)?)\s?)*(?P<km>{_NUMBER})\s?{_KM}(?:\s(?:radius|saja|aja))?
    """
)
_METRES = any_of(
    rf"""
    (?:(?:dalam|radius|within|jarak|maksimal|max|di)\s)+(?P<m>{_NUMBER})\s?(?:m|meter|metres?|meters?)
    (?P<m2>{_NUMBER})\s?(?:m|meter|metres?|meters?)(?= (?:dari|from) (?:sini|rumah|lokasi|saya|here|me|my))
    """
)
_AT_LEAST = (
    "(?:minimal|minimum|min\\.?|at least|di ?atas|lebih dari|above|over|more than|dari|mulai|setidaknya|>=?|of|nya)"
)
_OR_MORE = "(?:ke ?atas|(?:and|or) (?:above|up|more|higher|better)|plus|\\+)"
_STARS = r"(?P<stars>[0-5](?:[.,]\d)?)"
_RATED = f"(?:rating|bintang|rate|rated|ratingnya|ulasan|review|nilai|skor)(?: bintang)?\\s?(?:{_AT_LEAST}\\s?){{0,2}}"
_RATING = whole_words(rf"(?:{_AT_LEAST}\s)?{_RATED}{_STARS}(?:\s?(?:/\s?5|bintang|stars?|{_OR_MORE}))?")
_STARRED = whole_words(rf"(?:{_AT_LEAST}\s)?{_STARS}\s?\+?[ -]?(?:bintang|stars?(?: rating)?)(?:\s?{_OR_MORE})?")
_COUNTED = "|".join(
    """
    units? pcs pieces? buah biji bijik bh karung sak zak dus kardus box(?:es)? kotak botol bungkus bks pack paket lembar
    rim ekor pasang pairs? set rol roll kaleng sachet lusin dozens? kodi batang bags? ea kantong keping renteng
    sacks? bottles? potong helai stel
    """.split()
)
_WORD_NUMBERS = dict(
    zip(
        "satu dua tiga empat lima enam tujuh delapan sembilan sepuluh sebelas selusin sekodi".split(),
        [*range(1, 12), 12, 20],
        strict=True,
    )
)
_WORD_NUMBERS |= dict(zip("one two three four five six seven eight nine ten".split(), range(1, 11), strict=True))
_WORD_NUMBERS |= {"seribu": 1000, "seratus": 100, "twenty": 20, "fifty": 50, "lima puluh": 50, "dua puluh": 20}
_WORD_NUMBERS |= {"tiga puluh": 30, "dua belas": 12, "lima belas": 15, "a dozen": 12, "hundred": 100}
_COUNT = rf"\d{{1,6}}|{'|'.join(sorted(_WORD_NUMBERS, key=len, reverse=True))}"
_QUANTITY = any_of(
    rf"""
    (?<!isi )(?<!per )(?<!of )(?P<count>{_COUNT})\s?(?P<unit>{_COUNTED})(?!\s?/|-in-)(?: of(?= ))?
    """
)
_CUE = (
    "butuh|perlu|beli|order|pesan|ambil|need|buy|want|sebanyak|jumlah(?:nya)?|qty|quantity|borong|ada|minta"
    "|stok(?:nya)?"
)
_NOT_COUNTED = "|".join(
    """
    gb tb inch inci inchi kg kilo gram gr liter lt pk watt w hz mah mm cm m meter ml km jt juta rb ribu k pintu tahun
    orang bulan hari jam menit cc volt va mp core million people persons years in port tabung tingkat lantai musim
    """.split()
)
_OR_SO = "(?:minimal |min |at least |sekitar |lebih dari |di ?atas )?"
_END_OF_COUNT = rf"(?=\s(?!(?:{_NOT_COUNTED})(?!\w))|\s?[?.,!]|$)"
_WANTED = whole_words(rf"(?P<cue>{_CUE})\s{_OR_SO}(?P<count>{_COUNT})(?!\s?[-.,/]?\d){_END_OF_COUNT}")
_IN_STOCK = any_of(
    rf"""
    (?:at least|minimum|minimal|min\.?)\s(?P<count>{_COUNT})(?= (?:in stock|available|ready|stok))
    """
)
_GOING_ON = "(?:(?:kalau|kalo|klo|gimana|jadi|what about|how about|make it|and|ok|oke|dan|saya|aku|i)\\s)*"
_NO_GOODS = "ada|aja|saja|gimana|bisa|dong"  # `kalau 42 ada?` asks for a size
_ONLY_COUNT = re.compile(
    rf"^\W*{_GOING_ON}(?P<count>{_COUNT})(?: ?x)?\s(?=(?!(?:{_NOT_COUNTED}|{_NO_GOODS})(?!\w))[^\W\d]{{3,}})"
)
# In English "5m" is of millions; Indonesian says metres.
_ENGLISH = any_of("under|below|less than|for|with|the|budget of|need|looking|around|between|cheap|at most")
_MILLIONS = re.compile(r"(?<=\d)(?:m|mn)(?!\w)")
_NOT_BEFORE = re.compile(
    r"(?<!\w)(?:bukan|selain|kecuali|jangan|jgn|not|except|without)"
    r"(?: (?:yang|yg|the|ones?|with|size|ukuran|ram|layar))* $"
)
_TIMES = {"lusin": 12, "dozen": 12, "dozens": 12, "kodi": 20}
_PIECES = ("pcs", "lembar")  # the search counts them as a measure
_MAX_QUANTITY, _MAX_PRICES = 1_000_000, 3
_MAX_RADIUS_KM = 20_000.0


def take_amounts(sentence: Sentence) -> dict[str, Any]:
    """Without prices; those are taken once the measures are protected."""
    fields: dict[str, Any] = {}
    for pattern, metres in ((_RADIUS, False), (_METRES, True)):
        if "radius_km" not in fields and (found := pattern.search(sentence.text)):
            number = float((found["m"] or found["m2"] if metres else found["km"]).replace(",", ".")) / (
                1000 if metres else 1
            )
            if 0 < number <= _MAX_RADIUS_KM:
                fields["radius_km"] = number
                sentence.take_found(found, "radius", "radius_km")
    for pattern in (_RATING, _STARRED):
        if "min_rating" not in fields and (found := pattern.search(sentence.text)):
            fields["min_rating"] = min(5.0, float(found["stars"].replace(",", ".")))
            sentence.take_found(found, "rating", "min_rating")
    for pattern in (_IN_STOCK, _QUANTITY, _WANTED):
        if "quantity" not in fields and (found := pattern.search(sentence.text)):
            _take_quantity(sentence, found, fields)
    return fields


def take_leading_count(sentence: Sentence) -> dict[str, Any]:
    """`10 laptop`: after prices, measures and all other numbers are taken."""
    fields: dict[str, Any] = {}
    if found := _ONLY_COUNT.search(sentence.text):
        _take_quantity(sentence, found, fields)
    return fields


def take_measures(sentence: Sentence) -> tuple[list[tuple[int, str]], list[str]]:
    """Where each is, and it as one word: `16gb` of `16 GB`; and those that are not wanted: `bukan yang 17 inch`."""
    words, unwanted = list[tuple[int, str]](), list[str]()
    for start, end, word in list(measures(sentence.text)):
        is_count = word.endswith(_PIECES)
        said = sentence.text[start:end]
        if not is_count and (negation := _NOT_BEFORE.search(sentence.text[:start])):
            unwanted.append(said)
            sentence.take(negation.start(), end, "measure that is not wanted", "exclude_terms")
            continue
        if not is_count:
            words.append((start, said.replace(" ", "").replace("-", "")))
        sentence.take(start, end, "count" if is_count else "measure", *([] if is_count else ["text"]))
    return words, unwanted


def respell_amounts(sentence: Sentence) -> None:
    sentence.respell(AMOUNT_SPELLINGS)
    if _ENGLISH.search(sentence.text):
        sentence.respell([(_MILLIONS, lambda _: " million")])


def take_prices(sentence: Sentence, *, is_sentence: bool = True) -> dict[str, Any]:
    for start, end in foreign_amounts(sentence.text):
        sentence.take(start, end, "another currency is no rupiah", "text")
    fields: dict[str, Any] = {}
    for _ in range(_MAX_PRICES):
        found = find_price(sentence.text, is_sentence=is_sentence)
        if found is None:
            break
        values = {"min_price": found.least, "max_price": found.most}
        new = {name: min(value, MAX_RUPIAH) for name, value in values.items() if value is not None}
        if fields.keys() & new.keys():
            sentence.take(found.start, found.end, "another amount")  # its digits are no words to look for
            break
        fields |= new
        sentence.take(found.start, found.end, _rule_of(found), *new)
    if fields.get("min_price", 0) > fields.get("max_price", MAX_RUPIAH):
        fields["min_price"], fields["max_price"] = fields["max_price"], fields["min_price"]
    return fields


_TOTAL = any_of(
    """
    total(?:nya)?|semuanya|seluruhnya|untuk semua(?:nya)?|in total|altogether|all together|for all(?: of them)?|overall
    """
)


def price_of_one(said: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Of `3 keyboards, total 2 million`: what one may cost."""
    quantity, prices = fields.get("quantity", 1), [fields.get(name) for name in ("min_price", "max_price")]
    if quantity < 2 or prices == [None, None] or not _TOTAL.search(said):
        return {}
    most = prices[1] if prices[1] is not None else prices[0]
    return {"min_price": None, "max_price": most // quantity if most is not None else None, "total_price": most}


def _rule_of(found: FoundPrice) -> str:
    rules = {"most": "ceiling", "least": "floor", "bare": "a bare amount is a ceiling", "named": "ceiling"}
    return rules.get(found.form, "rough amount" if found.is_rough else found.form)


def _take_quantity(sentence: Sentence, found: "re.Match[str]", fields: dict[str, Any]) -> None:
    said, unit = found["count"], found.groupdict().get("unit") or ""
    count = (int(said) if said.isdecimal() else _WORD_NUMBERS[said]) * _TIMES.get(unit, 1)
    if 1 <= count <= _MAX_QUANTITY:
        fields["quantity"] = count
        start = found.end("cue") if "cue" in found.groupdict() and found["cue"] else found.start()
        sentence.take(start, found.end(), "quantity", "quantity")
