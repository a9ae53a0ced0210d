"""Prices that a buyer writes: `hp di bawah 2 juta`, `laptop 8-10jt`, `sekitar 500 ribu`, `under Rp 1.500.000`.

Only amounts that can be nothing else: with a scale (`juta`) or `Rp`, or of 10,000 and more behind a word of price.
Amounts of another currency are none.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Spelling = tuple["re.Pattern[str]", Callable[["re.Match[str]"], str]]  # what is written otherwise, and how
_ONES: dict[str, float] = dict(
    zip("satu dua tiga empat lima enam tujuh delapan sembilan".split(), range(1, 10), strict=True)
)
_ONES |= dict(zip("one two three four five six seven eight nine ten".split(), range(1, 11), strict=True))
_ONES |= dict(zip("eleven twelve thirteen fourteen fifteen sixteen".split(), range(11, 17), strict=True))
_ONES |= dict(zip("seventeen eighteen nineteen".split(), range(17, 20), strict=True))
_ONES |= dict(zip("twenty thirty forty fifty sixty seventy eighty ninety".split(), range(20, 100, 10), strict=True))
_ONES |= {"sepuluh": 10, "sebelas": 11, "seratus": 100, "setengah": 0.5, "half": 0.5}
_TIMES = {"puluh": 10, "ratus": 100, "hundred": 100}
_WORD = "|".join(sorted({*_ONES, *_TIMES, "belas", "and", "a"}, key=len, reverse=True))
_SAID_SCALE = "jutaan|juta|jt|ribuan|ribu|rb|million|thousand"
_SAID_NUMBER = re.compile(rf"(?<!\w)((?:(?:{_WORD})[ -]+){{1,7}})({_SAID_SCALE})(?!\w)")
_LOW_NUMBER = re.compile(
    rf"(?<!\w)((?:(?:{_WORD}) ){{0,3}}(?:{_WORD})) "
    rf"(?=(?:sampai|hingga|atau|to|dan) (?:(?:{_WORD}) ){{1,4}}(?:{_SAID_SCALE})(?!\w))"
)
_ONE_OF_A_SCALE = re.compile(r"(?<!\w)se(juta|ribu|jt|rebu)(an)?(?!\w)")


def _number_and_scale(found: "re.Match[str]") -> str:
    return f"{_value(found[1].replace('-', ' ').split())} {found[2]}".strip()


def _number(found: "re.Match[str]") -> str:
    return f"{_value(found[1].split())} "


# In this order. Lower case in, lower case out; a number that makes no sense stays as it is.
DIGITS_FOR_WORDS: list[Spelling] = [
    (_ONE_OF_A_SCALE, lambda found: f"1 {found[1]}{found[2] or ''}"),
    (_LOW_NUMBER, _number),  # `lima sampai delapan juta`
    (_SAID_NUMBER, _number_and_scale),
]


def _value(words: list[str]) -> str:
    total, current = 0.0, 0.0
    for word in words:
        if word == "seratus":
            total += 100
        elif word in _ONES:
            current += _ONES[word]
        elif word == "belas":
            current += 10
        elif word in _TIMES:
            total, current = total + (current or 1) * _TIMES[word], 0.0
    value = total + current
    return f"{value:g}" if value else " ".join(words)


PriceForm = Literal["range", "most", "least", "about", "named", "bare"]
_SCALES = {"juta": 10**6, "jt": 10**6, "jutaan": 10**6, "million": 10**6, "mio": 10**6, "mil": 10**6}
_SCALES |= {"ribu": 1000, "rb": 1000, "ribuan": 1000, "rban": 1000, "thousand": 1000, "k": 1000, "miliar": 10**9}
_ROUGH = {"jutaan", "ribuan", "rban"}
_GROUPED = r"\d{1,3}(?:[.,]\d{3}){1,4}"
_NUMBER = rf"{_GROUPED}|\d{{1,15}}(?:[.,]\d{{1,3}})?"
_SCALE = r"jutaan|juta|jt|million|mio|mil|miliar|ribuan|ribu|rban|rb|thousand|k"
# Also names of amounts: who says `ceban` of a price means thousands.
_SLANG = {"seceng": 1, "noceng": 2, "goceng": 5, "ceban": 10, "noban": 20, "goban": 50, "gocap": 50}
_SLANG |= {"cepek": 100, "gope": 500, "gopek": 500}
_CURRENCY = r"\$|us\$|usd|dollars?|dolar|bucks|€|eur|euros?|£|gbp|pounds?|¥|jpy|yen|yuan|cny|rmb|sgd|s\$|myr|rm|ringgit"
_OTHER_NUMBER = rf"(?:{_NUMBER})\s?(?:{_SCALE})?"
_FOREIGN = re.compile(
    rf"(?<![^\W_])(?:(?:{_CURRENCY})\s?{_OTHER_NUMBER}(?![^\W_])(?:\s?(?:-|to|sampai)\s?(?:{_CURRENCY})?{_OTHER_NUMBER}(?![^\W_]))?"
    rf"|(?:{_OTHER_NUMBER}\s?(?:-|to|sampai)\s?)?{_OTHER_NUMBER}\s?(?:{_CURRENCY})(?![^\W_]))"
)


def _amount(name: str) -> str:
    return rf"(?P<{name}_rp>rp\.?|idr)?\s*(?P<{name}>{_NUMBER})\s*(?P<{name}_scale>{_SCALE})?(?:\s*rupiah)?(?![^\W_])"


_NOT = r"(?:tidak|tdk|ga|gak|gk|ngga|nggak|enggak|jangan|jgn|no|not)"
_AT_MOST = (
    r"(?:harga\s*)?(?:di\s*bawah|(?:kurang|lebih murah) dari|maksimal|maksimum|maks|max|mentok|paling mahal|budget"
    r"|bujet|bajet|under|below|(?:less|cheaper|lower) than|up to|at most|within|<=?"
    r"|(?:not |tidak |ga |jangan )(?:exceeding|melebihi)"
    rf"|{_NOT}\s+(?:boleh\s+)?(?:lebih|lewat|di\s*atas|sampai|sampe|nyampe|more|over|above)(?:\s+(?:dari|dr|than))?)"
)
_AT_LEAST = (
    r"(?:harga\s*)?(?:di\s*atas|lebih (?:mahal )?(?:dari|dr)|minimal|minimum|min|paling murah|mulai(?: dari)?|over"
    rf"|above|more than|at least|from|>=?|{_NOT}\s+(?:kurang|di\s*bawah|less|below|under)(?:\s+(?:dari|dr|than))?)"
)
_ABOUT = r"(?:harga\s*)?(?:sekitar(?:an)?|skitar|sktr|kisaran|kira-kira|kira2|kurang lebih|around|about|approximately)"
_AND = r"(?:-|–|~|sampai(?: dengan)?|sampe|smp|hingga|s/d|s\.d\.?|sd|to|dan|and|atau|or)"
_FORMS: list[tuple[PriceForm, "re.Pattern[str]"]] = [
    ("range", re.compile(rf"(?<![^\W_])(?:antara\s+|between\s+)?{_amount('low')}\s*{_AND}\s*{_amount('high')}")),
    (
        "most",
        re.compile(rf"(?<![^\W_]){_amount('high')}\s*(?:ke\s?bawah|(?:or|and) (?:less|below|under)|maks|max)(?!\w)"),
    ),
    ("least", re.compile(rf"(?<![^\W_]){_amount('low')}\s*(?:ke\s?atas|(?:or|and) (?:more|above|over|up)|\+)(?!\w)")),
    ("most", re.compile(rf"(?<![^\W_]){_AT_MOST}[.:]?\s*(?:dari\s+|di\s+|nya\s+)?{_amount('high')}")),
    ("least", re.compile(rf"(?<![^\W_]){_AT_LEAST}[.:]?\s*(?:dari\s+|di\s+)?{_amount('low')}")),
    ("about", re.compile(rf"(?<![^\W_]){_ABOUT}\s*{_amount('high')}")),
    ("named", re.compile(rf"(?<![^\W_])harga\s*{_amount('high')}")),
    ("bare", re.compile(rf"(?<![^\W_]){_amount('high')}")),
]
_BUDGET = ("budget", "bujet", "bajet")
_LEAST_BARE_RUPIAH = 10_000
_LEAST_BARE_THOUSANDS = 10  # "a mouse for 150k"; a monitor of 4k or 8k is another thing
_ABOUT_SHARE = 0.2
_MAX_CHARS_OF_FRACTION = 7  # "123.456" with a scale


def _with_part(found: "re.Match[str]") -> str:
    """`2jt5` is 2.5 million, and so is `2 juta 500 ribu`."""
    millions, rest, thousands = found["millions"], found["rest"], found["thousands"]
    if thousands is not None:
        return f"{int(millions) * 1000 + int(thousands)} ribu"
    return f"{millions}.5 juta" if rest is None else f"{millions}.{rest} juta"


# In this order, each on what the one before has left.
AMOUNT_SPELLINGS: list[Spelling] = [
    (re.compile(r"(?<=[\d\s])(?:jeti|jeta|jute|jutak)(an)?(?!\w)"), lambda found: f"jt{found[1] or ''}"),
    (re.compile(r"(?<=[\d\s])(?:rebu|rebo|ribuk)(an)?(?!\w)"), lambda found: f"rb{found[1] or ''}"),
    (re.compile(rf"(?<!\w)({'|'.join(_SLANG)})(?: ceng)?(?!\w)"), lambda found: f"{_SLANG[found[1]]} ribu"),
    *DIGITS_FOR_WORDS,
    (
        re.compile(
            r"(?<![\w.,])(?P<millions>\d{1,4})\s?(?:juta|jt)"
            r"(?:(?P<rest>\d{1,3})|\s(?P<thousands>\d{1,3})\s?(?:ribu|rb)|\s?(?:setengah|stengah))(?!\w)"
        ),
        _with_part,
    ),
    (re.compile(r"(?<=[\d\s])(juta|jt|ribu|rb)[ -]?an(?!\w)"), lambda f: "jutaan" if f[1][0] == "j" else "ribuan"),
    (re.compile(r"(?<=\d)an\s?(juta|jt|ribu|rb)(?!\w)"), lambda found: " jutaan" if found[1][0] == "j" else " ribuan"),
    (re.compile(r"(?<=[\d\s])(?:milyar|milyard|billion)(?!\w)"), lambda _: "miliar"),
]


@dataclass(frozen=True)
class FoundPrice:
    """`text[start:end]` says a price from `least` to `most`: 2 and 3 million of `2 jutaan`, which is rough."""

    start: int
    end: int
    form: PriceForm
    least: int | None
    most: int | None
    is_rough: bool = False


def find_price(folded: str, *, is_sentence: bool = False) -> FoundPrice | None:
    """The first price of a text in lower case that is written as `AMOUNT_SPELLINGS` do.

    In a sentence `150k` and `1.500.000` are prices, too.
    """
    if not any(map(str.isdecimal, folded)):
        return None
    for form, pattern in _FORMS:
        for found in pattern.finditer(folded):
            price = _price(form, found, is_sentence=is_sentence)
            if price:
                return price
    return None


def foreign_amounts(folded: str) -> list[tuple[int, int]]:
    """Where amounts of other currencies stand. Nobody knows the rate of the day, so they are no prices."""
    return [found.span() for found in _FOREIGN.finditer(folded)]


def _price(form: PriceForm, found: "re.Match[str]", *, is_sentence: bool) -> FoundPrice | None:
    has_words = form not in ("bare", "range")
    high = _rupiah(found, "high", has_words=has_words, is_sentence=is_sentence) if form != "least" else None
    start, end = found.span()
    if form == "least":
        low = _rupiah(found, "low", has_words=True)
        return None if low is None else FoundPrice(start, end, form, low, None)
    if high is None:
        return None
    scale = found["high_scale"]
    if form == "range":
        low = _rupiah(found, "low", has_words=True, scale=found["low_scale"] or scale)
        return FoundPrice(start, end, form, low, high) if low is not None and low < high else None
    is_budget = found[0].startswith(_BUDGET)  # of 2 jutaan; "below 2 jutaan" is below 2 million
    if scale in _ROUGH and (form in ("bare", "about", "named") or is_budget):
        is_fraction = high % _SCALES[scale] != 0
        step = _SCALES[scale] * 10 ** (len(found["high"]) - 1 if scale != "jutaan" else 0)
        step = _SCALES[scale] // 10 if is_fraction else step  # 1,2 jutaan
        return FoundPrice(start, end, "about", high, high + step - 1, is_rough=True)
    if form == "about":
        return FoundPrice(start, end, form, *_about(high))
    return FoundPrice(start, end, form, None, high)


def _about(rupiah: int) -> tuple[int, int]:
    return round(rupiah * (1 - _ABOUT_SHARE)), round(rupiah * (1 + _ABOUT_SHARE))


def _rupiah(
    found: "re.Match[str]", name: str, *, has_words: bool, scale: str | None = None, is_sentence: bool = False
) -> int | None:
    number, scale = found[name], found[f"{name}_scale"] or scale
    if is_grouped := bool(re.fullmatch(_GROUPED, number)):
        value = float(re.sub("[.,]", "", number))
        scale = found[f"{name}_scale"]  # 500.000 of "500.000 - 2 juta" are no millions
    else:
        value = float(number.replace(",", "."))
    if is_grouped and scale and len(number) <= _MAX_CHARS_OF_FRACTION:
        value /= 1000  # 1.500 ribu, as 1,5 juta
    has_rupiah = bool(found[f"{name}_rp"])
    if scale == "k" and not (has_words or has_rupiah):
        return round(value * 1000) if is_sentence and value >= _LEAST_BARE_THOUSANDS else None
    if not scale and not has_rupiah and (not has_words or value < _LEAST_BARE_RUPIAH):
        is_amount = is_sentence and value >= _LEAST_BARE_RUPIAH and value % 100 == 0
        return round(value) if is_amount and (is_grouped or value >= 100_000) else None
    return round(value * _SCALES.get(scale or "", 1))
