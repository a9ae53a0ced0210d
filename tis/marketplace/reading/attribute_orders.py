"""Which goods come first by an attribute: `yang paling ringan`, `which of them is lighter?`, `baterai paling besar`."""

from tis.marketplace.reading.sentence import Sentence, any_of
from tis.marketplace.reading.structured_query import AttributeOrder, Measured, QueryContext

_MOST = r"(?:paling |ter|lebih |lbh )"
_BIG, _SMALL = "(?:besar|gede|lebar|luas|tinggi|banyak|panjang)", "(?:kecil|sempit|rendah|sedikit|pendek)"
_BIGGER, _SMALLER = "(?:biggest|bigger|largest|larger|most|more|highest|higher|longest|longer)", "(?:smallest|smaller)"


def _named(words: str, *, big: str = "") -> dict[bool, str]:
    """Patterns of an attribute that is said by its name, by whether the least is wanted."""
    more, less = rf"{_MOST}(?:{_BIG}{big})", rf"{_MOST}{_SMALL}"
    return {
        False: f"{words}(?:nya)? (?:yang |yg )?{more}\n(?:the |with )*{_BIGGER} (?:{words})(?: life| capacity)?",
        True: f"{words}(?:nya)? (?:yang |yg )?{less}\n(?:the |with )*{_SMALLER} (?:{words})",
    }


_WEIGHT = {
    True: f"(?:yang |yg )?{_MOST}(?:ringan|enteng)(?: lagi)?\n(?:the )?(?:lightest|lighter)(?: ones?)?\nless heavy",
    False: f"(?:yang |yg )?{_MOST}berat(?: lagi)?\n(?:the )?(?:heaviest|heavier)(?: ones?)?",
}
_SIZE = {
    True: rf"(?:ukuran(?:nya)? )?(?:yang |yg )?{_MOST}(?:kecil|mungil|ringkas)(?: lagi)?"
    "\n(?:the )?(?:smallest|smaller|more compact)(?: ones?)?",
    False: rf"(?:ukuran(?:nya)? )?(?:yang |yg )?{_MOST}(?:besar|gede)(?: lagi)?"
    "\n(?:the )?(?:biggest|bigger|largest|larger)(?: ones?)?",
}
# The first that is found counts: sizes without a name come last.
_FORMS: dict[Measured, dict[bool, str]] = {
    "battery": _named("(?:baterai|batere|batre|battery)", big="|awet|tahan lama|kuat"),
    "screen": _named("(?:layar|screen|display)"),
    "ram": _named("(?:ram|memori|memory)"),
    "storage": _named("(?:penyimpanan|storage|ssd|internal|hard ?disk)", big="|lega"),
    "camera": _named("(?:kamera|camera)", big="|bagus|tajam|jernih"),
    "capacity": _named("(?:kapasitas|capacity|muatan)"),
    "power": _named("(?:daya|watt|listrik|power)"),
    "weight": _WEIGHT,
    "size": _SIZE,
}
_PATTERNS = [(name, is_least, any_of(form)) for name, forms in _FORMS.items() for is_least, form in forms.items()]
_THRIFTY = any_of(rf"(?:yang |yg )?{_MOST}(?:hemat|irit) (?:listrik|daya|watt)|least power(?:ful)?|lowest wattage")
_AMONG = any_of(
    """
    mana|which|di ?antara (?:itu|ini|mereka|keduanya|semua(?:nya)?)|(?:of|among) (?:them|these|those)
    (?:ke)?dua-?duanya|keduanya|both
    """
)
_FURTHER = any_of("lebih|lbh|lighter|heavier|smaller|bigger|larger|more|higher|longer|less")


def take_attribute_order(sentence: Sentence, context: QueryContext, pointed: list[int]) -> AttributeOrder | None:
    """What is lighter than what was shown, unless one of these is asked for."""
    candidates = [("power", True, _THRIFTY), *_PATTERNS]
    matches = ((name, is_least, pattern.search(sentence.text)) for name, is_least, pattern in candidates)
    attribute, is_least, found = next((one for one in matches if one[2]), ("", False, None))
    if found is None:
        return None
    shown = [one.id for one in context.last_results]
    among, beyond = list[int](), list[int]()
    if pointed or (shown and _AMONG.search(sentence.text)):
        among = pointed or shown
    elif shown and _FURTHER.search(found[0]):
        beyond = shown
    sentence.take_found(found, "order by an attribute", "order_by")
    if among and (said := _AMONG.search(sentence.text)):
        sentence.take_found(said, "of what was shown", "order_by")
    fields = {"attribute": attribute, "least": is_least, "among": among, "beyond": beyond}
    return AttributeOrder.model_validate(fields)
