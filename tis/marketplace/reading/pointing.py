"""Which products a sentence points at: by SKU or id, by a place in the list that was shown, or to compare them."""

import re
from collections.abc import Sequence
from typing import Any

from tis.marketplace.reading.sentence import Sentence, any_of, whole_words
from tis.marketplace.reading.structured_query import ComparedThings, ShownProduct, StructuredQuery
from tis.marketplace.reading.word_lists import word_list

_ORDINALS = {"pertama": 1, "kesatu": 1, "kedua": 2, "ketiga": 3, "keempat": 4, "kelima": 5, "keenam": 6}
_ORDINALS |= {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "1st": 1, "2nd": 2, "3rd": 3}
_ORDINALS |= {"4th": 4, "5th": 5, "satu": 1, "dua": 2, "tiga": 3, "empat": 4, "lima": 5, "one": 1, "two": 2, "three": 3}
_ORDINALS |= {"four": 4, "five": 5, "1": 1, "2": 2, "3": 3, "4": 4, "5": 5, "6": 6, "7": 7, "8": 8, "9": 9, "10": 10}
_DIGIT = r"(?:[1-9]\d?|satu|dua|tiga|empat|lima|one|two|three|four|five)"
_AND = r"\s?(?:,|dan|and|sama|&|vs|dengan|atau|or|ama|with)\s?"
_NUMBER = rf"(?:no\.?\s?|nomor\s|number\s|nomer\s|#)?{_DIGIT}(?![^\W_])(?! (?:unit|pcs|buah|biji|karung|sak|box|kg))"
_MORE = rf"(?:{_AND}(?:yang |yg )?{_NUMBER}){{0,9}}"
_THING = "(?:produk|pilihan|opsi|barang|item|product|option)s?"
_NUMBERED = any_of(
    rf"""
    (?:(?:yang|yg|the|{_THING})\s)*(?:nomor|nomer|no\.?|nmr|number|num|urutan|#|{_THING})\s?(?:ke[- ]?)?{_DIGIT}{_MORE}
    """
)
_TH = whole_words(rf"(?:(?:yang|yg|produk|pilihan|opsi|barang)\s)*ke[- ]?[1-9]\d?{_MORE}")
_HASH = whole_words(rf"#[1-9]\d?{_MORE}")
_ONES = "(?:ones?|products?|options?|items?|tadi|itu)"
_ORDINAL_WORDS = (
    r"terakhir|last|pertama|kesatu|kedua|ketiga|keempat|kelima|first|third|fourth|fifth|1st|2nd|3rd|4th|5th"
    r"|(?<=the )second|second(?= (?:one|and|dan|product|option))"
)
_MORE_ORDINALS = f"(?:{_AND}(?:yang |yg |the )?(?:{_ORDINAL_WORDS}|second))*"
_ORDINAL = whole_words(rf"(?:(?:yang|yg|the|{_THING})\s)*(?:{_ORDINAL_WORDS}){_MORE_ORDINALS}(?:\s{_ONES})?")
_TWO_NUMBERS = whole_words(rf"{_DIGIT}\s?(?:,|dan|and|sama|&|vs|dengan|with|ama)\s?{_DIGIT}{_MORE}")
_FIRST_SOME = any_of(
    r"""
    (?:the )?(?:first|top) (?P<some>[2-9]|two|three|four|five)
    (?P<some2>[2-9]|dua|tiga|empat|lima) (?:yang )?(?:pertama|teratas)
    """
)
_LAST = whole_words(r"(?:yang |yg |the )?(?:terakhir|paling akhir|paling bawah|last(?: one| product| item)?)")
_TOP = whole_words(r"(?:yang |yg )(?:paling )?(?:atas|teratas)|the top one")
_BOTH = whole_words(r"(?:ke)?dua-?duanya|keduanya|dua-duanya|both(?: of them)?")
_ALL = whole_words(
    r"(?:ke)?(?:tiga|empat|lima)nya|semuanya|all of (?:them|these)|mereka|them all"
    r"|(?<=compare )(?:them|these|those)"
)
_THAT = any_of(
    r"""
    (?:yang |yg |produk |barang )(?:itu|ini|tadi|tsb|tersebut|barusan)(?: tadi)?
    (?:that|this)(?: one| product| item)|itu|tersebut|the one|(?<=is )it|(?<=does )it|(?<=of )it
    """
)
_CHEAPEST = any_of(
    r"""
    (?:yang |yg |the )(?:paling murah|termurah|cheapest)(?: one)?(?= (?:tadi|itu|masih|stok|ada|ready))
    """
)


def take_pointed(
    sentence: Sentence, shown: Sequence[ShownProduct], previous: StructuredQuery | None, *, compares: bool
) -> list[int]:
    """The ids that the sentence points at, in its order."""
    if not shown:
        return []
    if found := _FIRST_SOME.search(sentence.text):
        sentence.take_found(found, "first of the list", "product_ids")
        return [one.id for one in shown[: _ORDINALS[found["some"] or found["some2"]]]]
    for pattern in (_NUMBERED, _TH, _HASH, _ORDINAL, *([_TWO_NUMBERS] if compares else [])):
        if found := pattern.search(sentence.text):
            words = re.findall(r"\d+(?:st|nd|rd|th)?|[a-z]+", found[0])
            numbers = [_number(word, len(shown), is_ordinal=pattern is _ORDINAL) for word in words]
            ids = [shown[number - 1].id for number in numbers if number and number <= len(shown)]
            if ids:
                sentence.take_found(found, "number in the list", "product_ids")
                return list(dict.fromkeys(ids))
    for pattern, ids in (
        (_LAST, [shown[-1].id]),
        (_TOP, [shown[0].id]),
        (_BOTH, [one.id for one in shown[:2]]),
        (_ALL, [one.id for one in shown]),
        (_CHEAPEST, [min(shown, key=lambda one: (one.price is None, one.price or 0)).id]),
    ):
        if found := pattern.search(sentence.text):
            sentence.take_found(found, "place in the list", "product_ids")
            return ids
    if found := _THAT.search(sentence.text):
        ids = list(previous.product_ids) if previous and previous.product_ids else [shown[0].id]
        sentence.take_found(found, "what was spoken of", "product_ids")
        return ids
    return []


def points_at_number(text: str) -> bool:
    return any(pattern.search(text.lower()) for pattern in (_NUMBERED, _TH, _HASH))


def _number(word: str, num_shown: int, *, is_ordinal: bool) -> int | None:
    if word in ("terakhir", "last"):
        return num_shown
    if is_ordinal and word in ("one", "ones"):
        return None  # "the second one"
    return _ORDINALS.get(word) or (int(word) if word.isdecimal() else None)


_BETTER = (
    "mending(?:an)?|bagusan|enakan|pilih(?: mana)?|better|which(?: one)? is better"
    "|(?:mana )?(?:yang |yg )?lebih (?:bagus|baik|murah|kencang|awet|hemat|worth it|oke|cepat|kuat|ringan|enak|cocok)"
)
_COMPARE = any_of(
    rf"""
    (?:tolong )?(?:di ?)?banding(?:kan|in|an|kn)?(?:nya)?|perbandingan(?:nya)?
    compar(?:e|ed|ison)(?: of| between)?|versus|vs|(?:apa )?(?:beda|perbedaan|selisih)(?:nya)?
    (?:what(?:'s| is) the )?difference(?:s)?(?: between)?
    (?:{_BETTER})(?: mana)?(?=[^.?!]{{1,80}}(?: atau | or ))
    which(?: one)? is (?:better|cheaper)|mana (?:yang|yg) (?:lebih )?(?:bagus|baik|murah|oke|worth it)
    (?:lebih )?(?:bagus|baik|murah|oke|enak|awet|kencang|cepat|irit)(?:an)? mana|mending(?:an)? mana
    """
)
_BETWEEN = whole_words(r"vs\.?|versus|dan|sama|dengan|dgn|atau|and|or|with|ama|dibanding(?:kan)?|against|to")
_PURPOSE = whole_words(r"yang|yg|untuk|utk|buat|bwt|for|in terms of|dari segi|soal")
_MAX_ITEMS = 10


def asks_to_compare(sentence: Sentence) -> bool:
    return _COMPARE.search(sentence.text) is not None


def compared_things(sentence: Sentence) -> ComparedThings | None:
    """The phrases that are compared, as the buyer says them; None if there are not two. Nothing is taken."""
    text = _COMPARE.sub(" vs ", sentence.text)
    parts = re.split(r"[,;:?!&\0]+", _BETWEEN.sub(",", text))
    items = [" ".join(_without_edges(_PURPOSE.split(part)[0].split())) for part in parts]
    items = [item[:100] for item in dict.fromkeys(items) if item][:_MAX_ITEMS]
    return ComparedThings(items=items) if len(items) > 1 else None


def take_comparison(sentence: Sentence) -> None:
    """Takes the words that ask for it, and not what is compared."""
    while found := _COMPARE.search(sentence.text):
        sentence.take_found(found, "comparison", "intent")


def _without_edges(words: list[str]) -> list[str]:
    while words and words[0] in word_list("beside compared"):
        words = words[1:]
    while words and words[-1] in word_list("beside compared"):
        words = words[:-1]
    return words


_CODE = r"[a-z0-9](?:[a-z0-9]|[-._/](?=[a-z0-9])){1,48}"
_SKU = re.compile(
    r"(?<![^\W_])(?:sku|kode(?: barang| produk| sku)?|(?:product|item) code)(?:nya)?"
    rf"\s?(?:is|adalah|nomor|no\.?)?\s?[:=#]?\s?(?P<code>(?=[^\s]*\d){_CODE})(?![^\W_])"
)
# Written in capitals, with signs between at least two parts: `RNJ-G15`, `ASUS.LAP.3685`.
_BARE_SKU = re.compile(r"(?<![\w.-])[A-Z]{2,10}(?:[-./][A-Z0-9]{1,12}){1,4}(?![\w-])")
_SERIES_IN_CAPITALS = {"RTX", "GTX", "RX", "USB", "DDR", "WI", "TYPE", "WH", "HDMI", "PS", "AC", "PC", "ATX", "SSD"}
_MIN_DIGITS_OF_SKU = 2
_PRODUCT = "(?:produk|product|barang|item)s?"
_PRODUCT_ID = any_of(
    rf"""
    (?:{_PRODUCT}\s?)?(?:dengan |with )?(?:id|ids|#id)\s?[:=#]?\s?(?P<ids>\d{{1,18}}(?:{_AND}#?\d{{1,18}}){{0,9}})
    """
)
_HASH_ID = re.compile(r"(?<!\w)#(?P<ids>\d{1,18})(?!\w)")
_IDS = rf"(?P<ids>\d{{1,18}}(?:{_AND}(?:produk |product )?#?\d{{1,18}}){{0,9}})"
_PRODUCT_NUMBER = any_of(
    rf"""
    {_PRODUCT}\s(?:no\.?\s?|nomor\s|number\s)?#?{_IDS}(?!\s?(?:unit|pcs|buah|jt|juta|rb|ribu))
    """
)
_MAX_IDS = 20


def take_codes(sentence: Sentence) -> dict[str, Any]:
    """A SKU, and products by their ids."""
    fields: dict[str, Any] = {}
    if found := _SKU.search(sentence.text):
        fields["sku"] = sentence.said_at(*found.span("code"))
        sentence.take_found(found, "SKU", "sku")
    elif span := _bare_sku(sentence):
        fields["sku"] = sentence.said_at(*span)
        sentence.take(*span, "SKU", "sku")
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


def _bare_sku(sentence: Sentence) -> tuple[int, int] | None:
    """Looked for as it was typed; returned as a place in the text."""
    for found in _BARE_SKU.finditer(sentence.said):
        parts = re.split("[-./]", found[0])
        digits = sum(letter.isdigit() for letter in found[0])
        if digits >= _MIN_DIGITS_OF_SKU and parts[0] not in _SERIES_IN_CAPITALS:
            places = [place for place, origin in enumerate(sentence.origins) if found.start() <= origin < found.end()]
            return places[0], places[-1] + 1
    return None
