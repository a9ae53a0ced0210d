"""Numbers that are written as words before a scale: `dua setengah juta`, `lima ratus ribu`, `two hundred thousand`."""

import re
from collections.abc import Callable

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
_SCALE = "jutaan|juta|jt|ribuan|ribu|rb|million|thousand"
_NUMBER = re.compile(rf"(?<!\w)((?:(?:{_WORD})[ -]+){{1,7}})({_SCALE})(?!\w)")
_LOW_NUMBER = re.compile(
    rf"(?<!\w)((?:(?:{_WORD}) ){{0,3}}(?:{_WORD})) "
    rf"(?=(?:sampai|hingga|atau|to|dan) (?:(?:{_WORD}) ){{1,4}}(?:{_SCALE})(?!\w))"
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
    (_NUMBER, _number_and_scale),
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
