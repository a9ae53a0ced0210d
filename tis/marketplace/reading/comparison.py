"""Comparisons: `A vs B`, `bandingkan A dan B`, `mending A atau B`."""

import re

from tis.marketplace.reading.sentence import Sentence, any_of, whole_words
from tis.marketplace.reading.structured_query import ComparedThings

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
_EDGES = frozenset(
    """
    antara between produk mana yang yg lebih bagus baik murah apa ya dong tolong the which is better one nya sih saya
    mau please itu bedanya pls ini antar for untuk me can you bisa coba gan kak min worth it oke harga spek
    """.split()
)
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
    while words and words[0] in _EDGES:
        words = words[1:]
    while words and words[-1] in _EDGES:
        words = words[:-1]
    return words
