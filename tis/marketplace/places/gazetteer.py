"""Finds places by name, in a field that holds one and among the words of a search."""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from rapidfuzz import process
from rapidfuzz.distance import OSA

from tis.marketplace.places.place_names import (
    DesignatedName,
    Meaning,
    Place,
    PlaceNames,
    is_designated,
    read_place_names,
    read_table,
    without_designator,
    words_of,
)

_MAX_WORDS = 200  # of a text; the rest is not looked at
_MAX_NAME_WORDS = 6  # Kabupaten Ogan Komering Ulu Selatan has five
_MIN_FUZZY_LETTERS = 5
_MIN_LETTERS_OF_TWO_SLIPS = 7  # two slips in five letters would be another word: kasir, Paser


@dataclass(frozen=True, slots=True)
class NamedPlace:
    """A place that a text names in `words[start:end]`: `places` is one place, or several for Jabodetabek.

    Not certain: the word has another meaning (Palu is a hammer, too) and nothing before it says that it is a place.
    """

    start: int
    end: int
    places: Meaning
    is_certain: bool
    is_corrected: bool = False  # the text has a slip


@dataclass(frozen=True)
class PlaceWords:
    """How names are used in texts."""

    ambiguous: frozenset[str]  # letters of names that mean something else, too
    prepositions: frozenset[str]
    conjunctions: frozenset[str]
    not_places: frozenset[str]  # what follows prepositions and looks like the slip of a name
    origins: frozenset[tuple[str, ...]]  # kopi toraja: says where a product is made, not where it is sold


class Gazetteer:
    """Provinces, cities and regencies with our aliases. Never changes; any thread may use it."""

    def __init__(self, names: PlaceNames, words: PlaceWords) -> None:
        self._names = names
        self._words = words
        self._max_origin_words = max(map(len, words.origins), default=0)
        self.code_sets = lru_cache(maxsize=4096)(self._read_code_sets)

    def place(self, code: str) -> Place | None:
        return self._names.places.get(code)

    def meaning(self, name: str) -> Meaning:
        """The best of what a name means: a place, the city before the regency, or several; empty if nothing."""
        return next(iter(self._named(name)), ())

    def find(self, name: str) -> tuple[Place, ...]:
        """The cities and regencies of a name: all of a province, the city where a regency has its name, too."""
        meanings = self._named(name)
        return self._names.regencies(meanings[0]) if meanings else ()

    def province(self, name: str) -> frozenset[str]:
        """The codes of all cities and regencies of the province; none if no province has the name.

        Jambi is the province here, and Yogyakarta Daerah Istimewa Yogyakarta.
        """
        for spelling in (name, f"DI {name}"):
            for meaning in self._named(spelling):
                if [place.kind for place in meaning] == ["province"]:
                    return frozenset(place.code for place in self._names.regencies(meaning))
        return frozenset()

    def code_of(self, city: str | None, province: str | None) -> str | None:
        """The code of the place that an account names; None if there is none or more than one.

        A city in a province of the same name is the city: Kota Bandung, not Kabupaten Bandung. Jakarta is its province.
        """
        in_provinces = {place.province_code for meaning in self._named(province or "") for place in meaning}
        if not city:
            return in_provinces.pop() if len(in_provinces) == 1 else None
        named = self._named(city)
        if in_provinces:
            named = tuple(one for one in named if {place.province_code for place in one} <= in_provinces)
        provinces = {place.province_code for meaning in named for place in meaning}
        return named[0][0].code if len(provinces) == 1 and len(named[0]) == 1 else None

    def named_in(self, words: Sequence[str], known_words: Container[str] = ()) -> list[NamedPlace]:
        """The places that a text names, longest names first at each word.

        After a preposition also with a slip, but for `known_words`: what products are called is no misspelt place.
        """
        cleaned = ["".join(words_of(word)) for word in words[:_MAX_WORDS]]
        origins = self._origin_words(cleaned)
        found: list[NamedPlace] = []
        start = 0
        while start < len(cleaned):
            named = self._named_at(cleaned, start, known_words) if cleaned[start] and start not in origins else None
            if named and self._continues_list(words, found, named):
                named = replace(named, is_certain=True)
            if named and found and (merged := self._in_province(found[-1], named)):
                found[-1] = merged
            elif named:
                found.append(named)
            start = named.end if named else start + 1
        return found

    def _read_code_sets(self, name: str) -> tuple[frozenset[str], ...]:
        """Codes of the cities and regencies of each thing that a name may mean, best first."""
        regencies = (self._names.regencies(meaning) for meaning in self._named(name))
        return tuple(frozenset(place.code for place in meaning) for meaning in regencies)

    def _named(self, name: str) -> tuple[Meaning, ...]:
        return self._names.meanings(words_of(name))

    def _origin_words(self, words: Sequence[str]) -> set[int]:
        """Where names stand that are an origin."""
        return {
            position
            for start in range(len(words))
            for end in range(start + 2, min(len(words), start + self._max_origin_words) + 1)
            if tuple(words[start:end]) in self._words.origins
            for position in range(start, end)
        }

    def _named_at(self, words: Sequence[str], start: int, known_words: Container[str]) -> NamedPlace | None:
        is_expected = start > 0 and words[start - 1] in self._words.prepositions
        for end in range(min(len(words), start + _MAX_NAME_WORDS), start, -1):
            phrase = words[start:end]
            if not phrase[-1]:  # punctuation
                continue
            if meanings := self._names.meanings(phrase):
                is_certain = is_expected or "".join(phrase) not in self._words.ambiguous
                return NamedPlace(start, end, meanings[0], is_certain)
            if is_expected or is_designated(phrase):
                corrected = self._corrected(without_designator(phrase), known_words)
                if corrected:
                    return NamedPlace(start, end, corrected, is_certain=True, is_corrected=True)
        return None

    def _corrected(self, name: DesignatedName, known_words: Container[str]) -> Meaning | None:
        """What a name with a slip means; None if it is like no name, or like two."""
        if len(name.letters) < _MIN_FUZZY_LETTERS or all(self._is_other_word(word, known_words) for word in name.words):
            return None
        max_slips = 2 if len(name.letters) >= _MIN_LETTERS_OF_TWO_SLIPS else 1
        typed, spellings = " ".join(name.words), self._names.spellings.get(len(name.words), ())
        near = process.extract(typed, spellings, scorer=OSA.distance, score_cutoff=max_slips, limit=5)
        alike = [
            (spelling, slips)
            for spelling, slips, _ in near
            # Few slips are in the first letter, and many other words differ in it: laser, Paser.
            if spelling[0] == typed[0] and spelling not in self._words.ambiguous
        ]
        if not alike:
            return None
        nearest = min(slips for _, slips in alike)
        meanings = {self._best(spelling, name) for spelling, slips in alike if slips == nearest}
        return meanings.pop() if len(meanings) == 1 else None

    def _best(self, spelling: str, name: DesignatedName) -> Meaning:
        meanings = self._named(spelling)
        return next((one for one in meanings if [place.kind for place in one] == [name.kind]), meanings[0])

    def _is_other_word(self, word: str, known_words: Container[str]) -> bool:
        other = self._words
        return word in known_words or word in other.not_places or word in other.prepositions

    def _continues_list(self, words: Sequence[str], found: Sequence[NamedPlace], named: NamedPlace) -> bool:
        """`di solo, malang atau batu`: all three are places."""
        if not found or not found[-1].is_certain:
            return False
        between = words[found[-1].end : named.start]
        if not between:
            return words[named.start - 1].endswith(",")
        return len(between) == 1 and (between[0] == "," or between[0].casefold() in self._words.conjunctions)

    def _in_province(self, city: NamedPlace, province: NamedPlace) -> NamedPlace | None:
        """`malang jawa timur` names one place, for certain."""
        if city.end != province.start or [place.kind for place in province.places] != ["province"]:
            return None
        [code] = (place.code for place in province.places)
        inside = [
            meaning
            for meaning in self._spelt_alike(city.places)
            if {place.province_code for place in meaning} == {code}
        ]
        if not inside or any(place.kind == "province" for place in city.places):
            return None
        return replace(city, end=province.end, places=inside[0], is_certain=True)

    def _spelt_alike(self, places: Meaning) -> Iterator[Meaning]:
        """These places, and then others of the same name: Banjar is a city in Java and a regency in Kalimantan."""
        yield places
        if len(places) == 1:
            yield from self._named(places[0].name)


@cache
def gazetteer() -> Gazetteer:
    """Read once, at the first use."""
    return Gazetteer(read_place_names(), _read_place_words())


def _read_place_words() -> PlaceWords:
    words: dict[str, list[str]] = {}
    for row in read_table("place_words.csv"):
        words.setdefault(row["use"], []).append(row["words"])
    towns = [row["name"] for row in read_table("capitals.csv")]  # many are a word, too: sumber, rantau
    return PlaceWords(
        ambiguous=frozenset("".join(words_of(name)) for name in (*words["ambiguous"], *towns)),
        prepositions=frozenset(words["preposition"]),
        conjunctions=frozenset(words["conjunction"]),
        not_places=frozenset(words["not_a_place"]),
        origins=frozenset(tuple(phrase.split()) for phrase in words["origin"]),
    )
