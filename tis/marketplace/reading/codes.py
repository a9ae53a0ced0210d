"""Codes of products: a SKU, and ids."""

import re
from typing import Any

from tis.marketplace.reading.sentence import Sentence, any_of

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
_AND = r"\s?(?:,|dan|and|sama|&|vs|dengan)\s?"
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
