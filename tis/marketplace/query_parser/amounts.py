"""Numbers of a sentence: SKUs, ids, a radius, a rating, a quantity, measures and prices; each digit is used once."""

import re
from typing import Any

from tis.marketplace.query_parser.sentence import Sentence, whole_words
from tis.marketplace.search.measures import measures
from tis.marketplace.search.prices import AMOUNT_SPELLINGS, FoundPrice, find_price, foreign_amounts
from tis.marketplace.tables import MAX_RUPIAH

_CODE = r"[a-z0-9](?:[a-z0-9]|[-._/](?=[a-z0-9])){1,48}"
_SKU = re.compile(
    rf"(?<![^\W_])(?:sku|kode(?: barang| produk| sku)?|(?:product|item) code)(?:nya)?\s?(?:is|adalah|nomor|no\.?)?\s?[:=#]?\s?"
    rf"(?P<code>(?=[^\s]*\d){_CODE})(?![^\W_])"
)
# Written in capitals, with signs between at least two parts: `RNJ-G15`, `ASUS.LAP.3685`.
_BARE_SKU = re.compile(r"(?<![\w.-])[A-Z]{2,10}(?:[-./][A-Z0-9]{1,12}){1,4}(?![\w-])")
_SERIES_IN_CAPITALS = {"RTX", "GTX", "RX", "USB", "DDR", "WI", "TYPE", "WH", "HDMI", "PS", "AC", "PC", "ATX", "SSD"}
_MIN_DIGITS_OF_SKU = 2
_PRODUCT_ID = whole_words(
    r"(?:(?:produk|product|barang|item)s?\s?)?(?:dengan |with )?(?:id|ids|#id)\s?[:=#]?\s?(?P<ids>\d{1,18}"
    r"(?:\s?(?:,|dan|and|sama|&|vs|dengan)\s?#?\d{1,18}){0,9})"
)
_HASH_ID = re.compile(r"(?<!\w)#(?P<ids>\d{1,18})(?!\w)")
_PRODUCT_NUMBER = whole_words(
    r"(?:produk|product|barang|item)s?\s(?:no\.?\s?|nomor\s|number\s)?#?(?P<ids>\d{1,18}"
    r"(?:\s?(?:,|dan|and|sama|&|vs|dengan)\s?(?:produk |product )?#?\d{1,18}){0,9})(?!\s?(?:unit|pcs|buah|jt|juta|rb|ribu))"
)
_NUMBER = r"\d{1,5}(?:[.,]\d{1,2})?"
_RADIUS = whole_words(
    r"(?:(?:dalam|dlm|di|within|in|with|maks(?:imal)?|max(?:imum)?|paling jauh|kurang dari|ga lebih dari|gak lebih dari|nggak"
    r" lebih dari|tidak lebih dari|less than|under|di ?bawah|sekitar|not more than|no more than|up to|jarak(?:nya)?|radius(?:nya)?"
    r"|seputar|a|<)\s?)*"
    rf"(?P<km>{_NUMBER})\s?(?:km|kilometers?|kilometres?|kilo ?meter)(?!\s?/|\s?per)(?:\s(?:radius|saja|aja|an))?"
)
_METRES = whole_words(
    rf"(?:(?:dalam|radius|within|jarak|maksimal|max|di)\s)+(?P<m>{_NUMBER})\s?(?:m|meter|metres?|meters?)"
)
_AT_LEAST = (
    r"(?:minimal|minimum|min\.?|at least|di ?atas|lebih dari|above|over|more than|dari|mulai|setidaknya|>=?|of|nya)"
)
_STARS = r"[0-5](?:[.,]\d)?"
_RATING = whole_words(
    rf"(?:{_AT_LEAST}\s)?(?:rating|bintang|rate|rated|ratingnya|ulasan|review|nilai|skor)(?: bintang)?\s?(?:{_AT_LEAST}\s?){{0,2}}"
    rf"(?P<stars>{_STARS})(?:\s?(?:/\s?5|ke ?atas|(?:and|or) (?:above|up|more|higher)|bintang|stars?|plus|\+))?"
)
_STARRED = whole_words(
    rf"(?:{_AT_LEAST}\s)?(?P<stars>{_STARS})\s?\+?[ -]?(?:bintang|stars?(?: rating)?)"
    r"(?:\s?(?:ke ?atas|(?:and|or) (?:above|up|more|higher)|\+))?"
)
_COUNTED = (
    r"units?|pcs|pieces?|buah|biji|bh|karung|sak|zak|dus|kardus|box(?:es)?|kotak|botol|bungkus|bks|pack|paket|lembar|rim|ekor"
    r"|pasang|pairs?|set|rol|roll|kaleng|sachet|lusin|dozens?|kodi|batang|galon|bags?|ea|kantong|keping|bijik|renteng|sacks?"
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
_WORD_NUMBERS |= {"tiga puluh": 30, "dua belas": 12, "lima belas": 15, "a dozen": 12, "half a dozen": 6, "hundred": 100}
_COUNT = rf"\d{{1,6}}|{'|'.join(sorted(_WORD_NUMBERS, key=len, reverse=True))}"
_QUANTITY = whole_words(
    rf"(?<!isi )(?<!per )(?<!of )(?P<count>{_COUNT})\s?(?P<unit>{_COUNTED})(?!\s?/|-in-)(?: of(?= ))?"
)
_WANTED = whole_words(
    rf"(?P<cue>butuh|perlu|beli|order|pesan|ambil|need|buy|want|sebanyak|jumlah(?:nya)?|qty|quantity|borong|stok(?:nya)? "
    rf"(?:minimal |min |at least )?|ada)\s(?:minimal |at least |sekitar )?(?P<count>{_COUNT})(?!\s?[-.,/]?\d)"
    r"(?=\s(?!gb|tb|inch|inci|inchi|kg|kilo|gram|gr|liter|lt|pk|watt|w|hz|mah|mm|cm|m|meter|ml|km|jt|juta|rb|ribu|k|pintu|tahun"
    r"|orang|bulan|hari|jam|menit|cc|volt|va|mp|core|million|people|persons|years|in|port|tabung|tingkat|lantai|musim)|\s?[?.,!]|$)"
)
_ONLY_COUNT = re.compile(rf"^\W*(?P<count>{_COUNT})\s(?=(?!gb|tb|inch|jt|juta|rb|ribu)[^\W\d]{{3,}})")
# In English "5m" is of millions; Indonesian says metres.
_ENGLISH = whole_words(r"under|below|less than|for|with|the|budget of|need|looking|around|between|cheap|at most")
_MILLIONS = re.compile(r"(?<=\d)(?:m|mn)(?!\w)")
_TIMES = {"lusin": 12, "dozen": 12, "dozens": 12, "kodi": 20}
_MAX_QUANTITY, _MAX_IDS, _MAX_PRICES = 1_000_000, 20, 3
_MAX_RADIUS_KM = 20_000.0


def take_codes(sentence: Sentence) -> dict[str, Any]:
    """A SKU, and products by their ids."""
    fields: dict[str, Any] = {}
    if found := _SKU.search(sentence.text):
        fields["sku"] = sentence.said_at(*found.span("code"))
        sentence.take_found(found, "SKU", "sku")
    elif found := _bare_sku(sentence):
        fields["sku"] = sentence.said_at(*found)
        sentence.take(*found, "SKU", "sku")
    return fields


def take_ids(sentence: Sentence, num_shown: int) -> dict[str, Any]:
    """`produk 12` is a place in the list that was shown, if that is so long; `id 12` and `#12` never are."""
    ids: list[int] = []
    for pattern in (_PRODUCT_ID, _HASH_ID, _PRODUCT_NUMBER):
        for found in list(pattern.finditer(sentence.text)):
            numbers = [int(number) for number in re.findall(r"\d+", found["ids"])]
            if pattern is not _PRODUCT_ID and all(number <= num_shown for number in numbers):
                continue
            ids += [number for number in numbers if 1 <= number < 2**63]
            sentence.take_found(found, "id of a product", "product_ids")
    return {"product_ids": list(dict.fromkeys(ids))[:_MAX_IDS]} if ids else {}


def take_amounts(sentence: Sentence) -> dict[str, Any]:
    """Without prices; those are taken once the measures are protected."""
    fields: dict[str, Any] = {}
    for pattern, metres in ((_RADIUS, False), (_METRES, True)):
        if "radius_km" not in fields and (found := pattern.search(sentence.text)):
            number = float(found["m" if metres else "km"].replace(",", ".")) / (1000 if metres else 1)
            if 0 < number <= _MAX_RADIUS_KM:
                fields["radius_km"] = number
                sentence.take_found(found, "radius", "radius_km")
    for pattern in (_RATING, _STARRED):
        if "min_rating" not in fields and (found := pattern.search(sentence.text)):
            fields["min_rating"] = min(5.0, float(found["stars"].replace(",", ".")))
            sentence.take_found(found, "rating", "min_rating")
    for pattern in (_QUANTITY, _WANTED):
        if "quantity" not in fields and (found := pattern.search(sentence.text)):
            _take_quantity(sentence, found, fields)
    return fields


def take_leading_count(sentence: Sentence) -> dict[str, Any]:
    """`10 laptop`: after prices, measures and all other numbers are taken."""
    fields: dict[str, Any] = {}
    if found := _ONLY_COUNT.search(sentence.text):
        _take_quantity(sentence, found, fields)
    return fields


def take_measures(sentence: Sentence) -> list[tuple[int, str]]:
    """Where each is, and it as one word: `16gb` of `16 GB`."""
    words: list[tuple[int, str]] = []
    for start, end, _ in list(measures(sentence.text)):
        words.append((start, sentence.text[start:end].replace(" ", "").replace("-", "")))
        sentence.take(start, end, "measure", "text")
    return words


def respell_amounts(sentence: Sentence) -> None:
    sentence.respell(AMOUNT_SPELLINGS)
    if _ENGLISH.search(sentence.text):
        sentence.respell([(_MILLIONS, lambda _: " million")])


def take_prices(sentence: Sentence) -> dict[str, Any]:
    for start, end in foreign_amounts(sentence.text):
        sentence.take(start, end, "another currency is no rupiah", "text")
    fields: dict[str, Any] = {}
    for _ in range(_MAX_PRICES):
        found = find_price(sentence.text, is_sentence=True)
        if found is None:
            break
        values = {"min_price": found.least, "max_price": found.most}
        new = {name: min(value, MAX_RUPIAH) for name, value in values.items() if value is not None}
        if fields.keys() & new.keys():
            break
        fields |= new
        sentence.take(found.start, found.end, _rule_of(found), *new)
    if fields.get("min_price", 0) > fields.get("max_price", MAX_RUPIAH):
        fields["min_price"], fields["max_price"] = fields["max_price"], fields["min_price"]
    return fields


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


def _bare_sku(sentence: Sentence) -> tuple[int, int] | None:
    """Looked for as it was typed; returned as a place in the text."""
    for found in _BARE_SKU.finditer(sentence.said):
        parts = re.split("[-./]", found[0])
        digits = sum(letter.isdigit() for letter in found[0])
        if digits >= _MIN_DIGITS_OF_SKU and parts[0] not in _SERIES_IN_CAPITALS:
            places = [place for place, origin in enumerate(sentence.origins) if found.start() <= origin < found.end()]
            return places[0], places[-1] + 1
    return None
