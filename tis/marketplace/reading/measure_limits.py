"""Limits of measures: `minimal 1,8 liter`, `RAM di atas 8 GB`, `under 2 kg`. An exact measure is a word to look for."""

import re
from typing import Any

from tis.marketplace.reading.measures import units
from tis.marketplace.reading.sentence import Sentence
from tis.marketplace.reading.structured_query import Measured, MeasureLimit

_LEAST = (
    "minimal(?:nya)?|minimum|min\\.?|at least|di ?atas|lebih (?:besar )?(?:dari|dr)|above|over|more than|larger than"
    "|bigger than|mulai(?: dari)?|setidaknya|paling (?:sedikit|kecil)|>=?|no less than|tidak kurang dari"
)
_MOST = (
    "maksimal(?:nya)?|maksimum|maks?\\.?|max(?:imum)?|at most|di ?bawah|kurang dari|lebih (?:kecil|ringan) dari|under"
    "|below|less than|lighter than|smaller than|up to|sampai|tidak lebih dari|no more than"
    "|paling (?:banyak|besar|berat)|<=?"
)
_OR_MORE = "ke ?atas|(?:or|and) (?:more|above|up|larger|bigger|higher)|atau lebih(?: besar)?|\\+|plus"
_OR_LESS = "ke ?bawah|(?:or|and) (?:less|below|under|smaller|lighter)|atau kurang"
_NAMES: dict[str, Measured] = {
    "ram": "ram", "memori": "ram", "memory": "ram", "layar": "screen", "screen": "screen", "baterai": "battery",
    "battery": "battery", "batre": "battery", "berat": "weight", "weight": "weight", "penyimpanan": "storage",
    "storage": "storage", "ssd": "storage", "internal": "storage", "kamera": "camera", "camera": "camera",
    "daya": "power", "power": "power", "watt": "power", "kapasitas": "capacity", "capacity": "capacity",
    "volume": "capacity", "ukuran": "size", "panjang": "size", "diameter": "size", "lebar": "size", "tinggi": "size",
}  # fmt: skip
_OF_UNITS: dict[str, Measured] = {
    "inch": "screen", "mah": "battery", "wh": "battery", "kg": "weight", "g": "weight", "ons": "weight", "w": "power",
    "va": "power", "pk": "power", "l": "capacity", "ml": "capacity", "mp": "camera", "m": "size", "cm": "size",
    "mm": "size", "tb": "storage",
}  # fmt: skip
_USUAL_UNITS = {
    "ram": "gb",
    "storage": "gb",
    "screen": "inch",
    "battery": "mah",
    "weight": "kg",
    "power": "w",
    "capacity": "l",
}
_MAX_RAM_GB = 64
_NAME = "|".join(_NAMES)
_LIMIT = re.compile(
    rf"(?<!\w)(?:(?P<name>{_NAME})(?:nya)?\s(?:yang\s|yg\s)?)?(?:(?P<least>{_LEAST})|(?P<most>{_MOST}))\s?(?:(?P<name2>{_NAME})(?:nya)?\s)?"
    r"(?P<number>\d{1,6}(?:[.,]\d{1,3})?)\s?(?P<unit>[a-z\"”]+\d?)?(?![^\W_])"
)
_BEHIND = re.compile(
    rf"(?<!\w)(?:(?P<name>{_NAME})(?:nya)?\s)?(?P<number>\d{{1,6}}(?:[.,]\d{{1,3}})?)\s?(?P<unit>(?!ke|atau|or|and|plus)[a-z\"”]+\d?)?\s?"
    rf"(?:(?P<least>{_OR_MORE})|(?P<most>{_OR_LESS}))(?!\w)"
)


def take_measure_limits(sentence: Sentence) -> dict[str, Any]:
    limits = list[MeasureLimit]()
    for pattern in (_LIMIT, _BEHIND):
        for found in list(pattern.finditer(sentence.text)):
            if limit := _limit(found):
                limits.append(limit)
                sentence.take_found(found, "limit of a measure", "measures")
    return {"measures": [one.model_dump() for one in limits]} if limits else {}


def _limit(found: "re.Match[str]") -> MeasureLimit | None:
    """None for an amount of anything else: a price, a distance, pieces."""
    unit, groups = units().get(found["unit"] or ""), found.groupdict()
    name = _NAMES.get(groups["name"] or groups.get("name2") or "")
    number = float(found["number"].replace(".", "").replace(",", ".") if "," in found["number"] else found["number"])
    if re.fullmatch(r"\d{1,3}[.,]\d{3}", found["number"]):
        number = float(re.sub("[.,]", "", found["number"]))
    if found["unit"] == "in":
        return None  # `at least 5 in stock`
    if unit is None:
        usual = _USUAL_UNITS.get(name or "", "")
        return MeasureLimit(attribute=name, unit=usual, **_bound(found, number)) if name and not found["unit"] else None
    attribute = name or _OF_UNITS.get(unit.name)
    if unit.name == "gb" and name is None:
        attribute = "ram" if number <= _MAX_RAM_GB else "storage"
    return MeasureLimit(attribute=attribute, unit=unit.name, **_bound(found, number)) if attribute else None


def _bound(found: "re.Match[str]", number: float) -> dict[str, float]:
    return {"least" if found["least"] else "most": number}
