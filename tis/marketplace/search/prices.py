"""Prices that a buyer writes: `hp di bawah 2 juta`, `laptop 8-10jt`, `sekitar 500 ribu`, `under Rp 1.500.000`.

Only amounts that can be nothing else: with a scale (`juta`) or `Rp`, or of 10,000 and more behind a word of price.
"""

import re
from dataclasses import dataclass

from tis.marketplace.search.number_words import with_digits_before_scales

_SCALES = {"juta": 10**6, "jt": 10**6, "jutaan": 10**6, "million": 10**6, "mio": 10**6}
_SCALES |= {"ribu": 1000, "rb": 1000, "ribuan": 1000, "rban": 1000, "thousand": 1000, "k": 1000}
_ROUGH = {"jutaan", "ribuan", "rban"}
_GROUPED = r"\d{1,3}(?:[.,]\d{3}){1,4}"
_NUMBER = rf"{_GROUPED}|\d{{1,15}}(?:[.,]\d{{1,3}})?"
_SCALE = r"jutaan|juta|jt|million|mio|ribuan|ribu|rban|rb|thousand|k"


def _amount(name: str) -> str:
    return rf"(?P<{name}_rp>rp\.?|idr)?\s*(?P<{name}>{_NUMBER})\s*(?P<{name}_scale>{_SCALE})?(?:\s*rupiah)?(?![^\W_])"


_AT_MOST = (
    r"(?:harga\s*)?(?:di\s*bawah|kurang dari|maksimal|maks|max|mentok|budget|bujet|bajet|under|below|less than|up to"
    r"|at most|<=?"
    r"|(?:tidak|tdk|ga|gak|nggak|enggak|jangan|no|not)\s+(?:lebih|lewat|di\s*atas|more|over|above)(?:\s+(?:dari|than))?)"
)
_AT_LEAST = r"(?:harga\s*)?(?:di\s*atas|lebih dari|minimal|min|mulai(?: dari)?|over|above|more than|at least|from|>=?)"
_ABOUT = r"(?:harga\s*)?(?:sekitar(?:an)?|kisaran|kira-kira|around|about|harga)"
_AND = r"(?:-|–|sampai(?: dengan)?|hingga|s/d|sd|to|dan|and)"
_FORMS = [
    ("range", re.compile(rf"(?<![^\W_])(?:antara\s+|between\s+)?{_amount('low')}\s*{_AND}\s*{_amount('high')}")),
    ("most", re.compile(rf"(?<![^\W_]){_AT_MOST}\s*(?:dari\s+)?{_amount('high')}")),
    ("least", re.compile(rf"(?<![^\W_]){_AT_LEAST}\s*{_amount('low')}")),
    ("about", re.compile(rf"(?<![^\W_]){_ABOUT}\s*{_amount('high')}")),
    ("bare", re.compile(rf"(?<![^\W_]){_amount('high')}")),
]
_LEAST_BARE_RUPIAH = 10_000
_ABOUT_SHARE = 0.2
_ROUGH_SHARE = 0.05
_MAX_CHARS_OF_FRACTION = 7  # "123.456" with a scale


@dataclass(frozen=True)
class SaidPrices:
    text: str  # without them
    least: int | None = None
    most: int | None = None


def said_prices(text: str) -> SaidPrices:
    """The first price or range that the text says; the text as it is if it says none."""
    folded = text.lower()
    if (in_digits := with_digits_before_scales(folded)) != folded:
        text = folded = in_digits
    if len(folded) != len(text) or not any(map(str.isdecimal, folded)):
        return SaidPrices(text)
    for form, pattern in _FORMS:
        for found in pattern.finditer(folded):
            bounds = _bounds(form, found)
            if bounds:
                return SaidPrices(f"{text[: found.start()]} {text[found.end() :]}", *bounds)
    return SaidPrices(text)


def _bounds(form: str, found: "re.Match[str]") -> tuple[int | None, int | None] | None:
    has_words = form not in ("bare", "range")
    high = _rupiah(found, "high", has_words=has_words) if form != "least" else None
    if form == "least":
        low = _rupiah(found, "low", has_words=True)
        return None if low is None else (low, None)
    if high is None:
        return None
    scale = found["high_scale"]
    if form == "range":
        low = _rupiah(found, "low", has_words=True, scale=found["low_scale"] or scale)
        return (low, high) if low is not None and low < high else None
    if scale in _ROUGH and form in ("bare", "about"):
        step = _SCALES[scale] * 10 ** (len(found["high"]) - 1 if scale != "jutaan" else 0)
        return round(high * (1 - _ROUGH_SHARE)), high + step - 1
    if form == "about":
        return round(high * (1 - _ABOUT_SHARE)), round(high * (1 + _ABOUT_SHARE))
    return None, high


def _rupiah(found: "re.Match[str]", name: str, *, has_words: bool, scale: str | None = None) -> int | None:
    number, scale = found[name], found[f"{name}_scale"] or scale
    if is_grouped := bool(re.fullmatch(_GROUPED, number)):
        value = float(re.sub("[.,]", "", number))
        scale = found[f"{name}_scale"]  # 500.000 of "500.000 - 2 juta" are no millions
    else:
        value = float(number.replace(",", "."))
    if is_grouped and scale and len(number) <= _MAX_CHARS_OF_FRACTION:
        value /= 1000  # 1.500 ribu, as 1,5 juta
    if scale == "k" and not (has_words or found[f"{name}_rp"]):
        return None  # a monitor of 4k
    if not scale and not found[f"{name}_rp"] and (not has_words or value < _LEAST_BARE_RUPIAH):
        return None
    return round(value * _SCALES.get(scale or "", 1))
