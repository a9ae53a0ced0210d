"""Places that a sentence names: a filter, or not wanted, or where goods are to be sent."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rapidfuzz import process
from rapidfuzz.distance import OSA

from tis.marketplace.places.gazetteer import NamedPlace, gazetteer
from tis.marketplace.places.place_names import Place
from tis.marketplace.reading.negations import is_negation_before
from tis.marketplace.reading.sentence import Sentence, SentenceWord
from tis.marketplace.reading.vocabulary import GoodsIndex
from tis.marketplace.reading.word_lists import word_list

_JAKARTA = "31"
_TO = frozenset({"ke", "to", "sampai"})
_MIN_LETTERS_OF_SLIP = 6
_ALWAYS_NOT = frozenset({"tidak", "tdk", "tak"})
_NOT = _ALWAYS_NOT | {"ga", "gak", "gk", "nggak", "ngga", "enggak"}
_BEFORE_NOT = frozenset("yang yg asal tapi tp asalkan".split())


@dataclass
class FoundPlaces:
    cities: list[str] = field(default_factory=list)
    provinces: list[str] = field(default_factory=list)
    exclude_cities: list[str] = field(default_factory=list)
    is_destination: bool = False
    is_near: bool = False  # the first city is where goods should be near

    def fields(self) -> dict[str, Any]:
        self.cities = [city for city in self.cities if city not in self.exclude_cities]
        named = {"cities": self.cities, "provinces": self.provinces, "exclude_cities": self.exclude_cities}
        found: dict[str, Any] = {name: list(dict.fromkeys(value))[:20] for name, value in named.items() if value}
        if self.is_near and len(found.get("cities", ())) == 1 and not self.provinces:
            found["near_cities"] = True
        return found | ({"fulfilment": "delivery"} if self.is_destination else {})


def take_places(sentence: Sentence, index: GoodsIndex) -> dict[str, Any]:
    words = sentence.words()
    found, last = FoundPlaces(), ("", -1)
    # "bandung aja" is no slip of Bandung Raya.
    letters = [
        "" if word.text in word_list("particle") else _large_city(word.text, index) or word.text for word in words
    ]
    places = gazetteer().named_in(letters, index.known_words)
    for number, named in enumerate(places):
        start = _start_with_prepositions(words, named.start)
        neighbours = [*places[max(0, number - 1) : number], *places[number + 1 : number + 2]]
        in_list = any(one.is_certain and _are_listed(words, named, one, index) for one in neighbours)
        kind = _kind(words, start, named, last, in_list=in_list)
        if kind == "none":
            continue
        last = (kind, named.end)
        first = start if kind != "exclude" else _start_of_negation(words, start)
        # Bekasi Timur is a part of Bekasi.
        is_part = named.end < len(words) and words[named.end].text in word_list("part of city")
        span = words[first].start, words[named.end - (0 if is_part else 1)].end
        if kind == "destination":
            found.is_destination = True
            sentence.take(*span, "where it is sent to", "fulfilment")
            continue
        cities, provinces = _names(named.places, said=" ".join(word.text for word in words[named.start : named.end]))
        if kind == "exclude":
            found.exclude_cities += [*cities, *provinces]
            sentence.take(*span, "unwanted place", "exclude_cities")
        else:
            found.is_near |= _is_near(words, start, named.start)
            found.cities += cities
            found.provinces += provinces
            fields = [name for name, names in (("cities", cities), ("provinces", provinces)) if names]
            sentence.take(*span, "place", *fields)
    return found.fields()


def _is_near(words: Sequence[SentenceWord], start: int, name_start: int) -> bool:
    """`sekitar Malang`, `terdekat di Medan`: not all that is sold there, and not only that."""
    before = {word.text for word in words[max(0, start - 1) : name_start]}
    return not before.isdisjoint(word_list("near"))


def _large_city(word: str, index: GoodsIndex) -> str | None:
    """The gazetteer corrects only behind prepositions; `surabya` is no other word anyway."""
    if len(word) < _MIN_LETTERS_OF_SLIP or not word.isalpha() or word in index.known_words or index.corrected(word):
        return None
    found = process.extractOne(word, sorted(word_list("large city")), scorer=OSA.distance, score_cutoff=1)
    return str(found[0]) if found and found[0][0] == word[0] else None


def _kind(words: Sequence[SentenceWord], start: int, named: NamedPlace, last: tuple[str, int], *, in_list: bool) -> str:
    last_kind, last_end = last
    between = {word.text for word in words[last_end:start]} if 0 <= last_end <= start else {""}
    if last_kind and between and between <= word_list("conjunction"):
        return last_kind
    if is_negation_before(words, start) or _is_elsewhere(words, start, named.start):
        return "exclude"
    if words[named.start - 1].text in _TO if named.start else False:
        if (
            any(word.text in word_list("sent") for word in words[max(0, named.start - 4) : named.start])
            or "\0" in words[max(0, named.start - 2)].text
        ):
            return "destination"
    said = [word.text for word in words[named.start : named.end]]
    if not word_list("coffee land").isdisjoint(said):
        return "none"
    if start == named.start and start and words[start - 1].text in word_list("made in"):
        return "none"
    if not named.is_certain and not in_list and not _ends_request(words, named):
        return "none"
    return "filter"


def _are_listed(words: Sequence[SentenceWord], named: NamedPlace, other: NamedPlace, index: GoodsIndex) -> bool:
    """`medan, jakarta`, `jakarta medan`; but in `palu jakarta` the hammer is in Jakarta."""
    first, second = sorted((named, other), key=lambda one: one.start)
    between = [word.text for word in words[first.end : second.start]]
    said = tuple(word.text for word in words[named.start : named.end])
    return (
        word_list("conjunction").issuperset(between)
        and said not in index.nouns
        and " ".join(said) in word_list("city like a word")
    )


def _ends_request(words: Sequence[SentenceWord], named: NamedPlace) -> bool:
    """`laptop bekas malang` is in Malang; a `palu` alone is a hammer, and `medan berat` is rough ground."""
    phrase = " ".join(word.text for word in words[named.start : named.end])
    before = [word.text for word in words[: named.start] if not word.is_sign or word.text[0] == "\0"]
    following = words[named.end].text if named.end < len(words) else ""
    is_last = not following or not following[0].isalnum() or following in word_list("behind place")
    return phrase in word_list("city like a word") and bool(before) and is_last


def _start_with_prepositions(words: Sequence[SentenceWord], start: int) -> int:
    while start and words[start - 1].text in word_list("preposition"):
        start -= 1
    return start


def _is_elsewhere(words: Sequence[SentenceWord], start: int, name_start: int) -> bool:
    """`yang tidak di Jakarta`; but `ada tidak di Jakarta` asks whether there is one."""
    if not start or start == name_start or words[start - 1].text not in _NOT:
        return False
    before = words[start - 2].text if start > 1 else ""
    return before in _BEFORE_NOT or (words[start - 1].text in _ALWAYS_NOT and before not in word_list("asking"))


def _start_of_negation(words: Sequence[SentenceWord], start: int) -> int:
    if start and words[start - 1].text in _NOT:
        start -= 1
    while start and is_negation_before(words, start):
        start -= 1
    return start


def _names(places: Sequence[Place], said: str) -> tuple[list[str], list[str]]:
    """Cities, and provinces. Jakarta is asked for as a city, though it is a province."""
    cities, provinces = list[str](), list[str]()
    for place in places:
        if place.kind != "province":
            cities.append(place.name)
        elif place.code == _JAKARTA:
            cities.append("Jakarta")
        else:
            provinces.append(place.name)
    return cities, provinces
