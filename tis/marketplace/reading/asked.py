"""Questions about what was shown: `harganya brp?`, `which city is it in?`, `garansinya berapa lama?`."""

import re
from collections.abc import Iterable, Mapping
from functools import cache

from tis.marketplace.reading.sentence import any_of
from tis.marketplace.reading.word_lists import read_rows

_QUESTION = any_of(
    r"""
    berapa(?:an)?|brp(?:an|a)?|brapa|apa(?:kah)?|mana|dimana|dmn|siapa|gimana|bagaimana|sebutkan|info(?:nya)?
    how|what|what's|whats|which|where|who|tell me|is it|are they|does it|do they
    """
)
_ALONE = re.compile(
    r"^\W*(?:(?:kalau|kalo|terus|trus|jadi|lalu) )*(?:berapa(?:an)?|brp(?:an|a)?|how much)"
    r"(?: (?:ya|sih|tuh|itu|ini|is it|are they|is that|duit|duitnya))*\W*$"
)

_ENDING = r"(?:nya|ny|x|s)?"
_MORE = any_of(
    "lama|long|besar|big|large|banyak|many|much|jumlah|tinggal|masih|ada|inci|inch|kilo|kg|gram|gr|ml|cm|watt|mah|meter|liter|persen"
)


@cache
def _facts() -> Mapping[str, "re.Pattern[str]"]:
    return {row["fact"]: any_of(rf"(?:{row['words']}){_ENDING}") for row in read_rows("asked.csv")}


def asked_facts(said: str) -> list[str]:
    """What a sentence asks of goods, in the order of `asked.csv`; nothing if it asks nothing."""
    if _ALONE.search(said):
        return ["price"]
    if "?" not in said and not _QUESTION.search(said):
        return []
    facts = [fact for fact, pattern in _facts().items() if pattern.search(said)]
    return [fact for fact in facts if fact != "price" or len(facts) == 1 or "how much" not in said]


def is_said_by(fact: str, words: str) -> bool:
    """Whether these words, of a seller or a buyer, speak of the fact."""
    return _facts()[fact].search(words.lower().replace("_", " ")) is not None


def only_asks(facts: Iterable[str], words: Iterable[str]) -> bool:
    """Whether the words say nothing beside the facts."""
    left = " ".join(words)
    for fact in facts:
        left = _facts()[fact].sub(" ", left)
    return all(_MORE.search(word) for word in left.split())
