"""The names of places and what each may mean, as the tables of this folder have them."""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tis.marketplace.kit.fields import key_of

PlaceKind = Literal["province", "city", "regency"]
_DESIGNATORS: dict[str, PlaceKind] = {
    **dict.fromkeys(("kota", "city"), "city"),
    **dict.fromkeys(("kab", "kabupaten", "regency"), "regency"),
    **dict.fromkeys(("prov", "provinsi", "propinsi", "province"), "province"),
}
_BEFORE_NAMES = {"kota", "kab", "kabupaten", "prov", "provinsi", "propinsi"}
_AFTER_NAMES = {"city", "regency", "province"}
_FULL_NAMES = {"province": "{}", "city": "Kota {}", "regency": "Kabupaten {}"}
_RANKS: dict[PlaceKind, int] = {"city": 0, "regency": 1, "province": 2}
_MIN_LETTERS = 5
_MIN_LETTERS_OF_ALIAS = 7  # sultra and malut are too near to other words
_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Place:
    """A code has two digits for a province, four for a city or regency. The coordinates are those of its capital."""

    code: str
    kind: PlaceKind
    name: str  # without Kota or Kabupaten
    province_code: str
    latitude: float
    longitude: float

    @property
    def full_name(self) -> str:
        return _FULL_NAMES[self.kind].format(self.name)


# One of the things that a name may mean: a place, or several for a name like Jabodetabek.
Meaning = tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class DesignatedName:
    """A name and the kind of place that a word beside it says: `kab. bandung` is the regency of Bandung."""

    words: tuple[str, ...]
    kind: PlaceKind | None

    @property
    def letters(self) -> str:
        return "".join(self.words)


@dataclass(frozen=True)
class PlaceNames:
    """Looks up names without regard to case, blanks and hyphens: Bau-Bau, Baubau. Never changes."""

    places: Mapping[str, Place]  # by code
    _meanings: Mapping[str, tuple[Meaning, ...]]  # by the letters of the name
    spellings: Mapping[int, tuple[str, ...]]  # those that slips are compared with, by the number of their words

    def meanings(self, words: Sequence[str]) -> tuple[Meaning, ...]:
        """What a name may mean, cities first. A name with `kota` or the like means such a place if there is one."""
        if known := self._meanings.get("".join(words)):
            return known
        if not is_designated(words):
            return ()
        designated = without_designator(words)
        known = self._meanings.get(designated.letters, ())
        fitting = tuple(meaning for meaning in known if [place.kind for place in meaning] == [designated.kind])
        return fitting or known

    def regencies(self, meaning: Meaning) -> Meaning:
        """The cities and regencies of a meaning: for a province, all of its own."""
        return tuple(
            regency
            for place in meaning
            for regency in (self._regencies_of(place.code) if place.kind == "province" else (place,))
        )

    def _regencies_of(self, province_code: str) -> Iterator[Place]:
        return (
            place for place in self.places.values() if place.province_code == province_code and place.kind != "province"
        )


def words_of(name: str) -> tuple[str, ...]:
    """Without punctuation. A sign that is none, as in `ja%karta`, stays: that is no name."""
    words = re.findall(r"[\w%*@#$+=<>|~^\\]+", key_of(name))
    return tuple("kepulauan" if word == "kep" else word for word in words)


def is_designated(words: Sequence[str]) -> bool:
    return len(words) > 1 and (words[0] in _BEFORE_NAMES or words[-1] in _AFTER_NAMES)


def without_designator(words: Sequence[str]) -> DesignatedName:
    if len(words) > 1 and words[0] in _BEFORE_NAMES:
        rest = words[2:] if words[1] == "administrasi" else words[1:]
        return DesignatedName(tuple(rest), _DESIGNATORS[words[0]])
    if len(words) > 1 and words[-1] in _AFTER_NAMES:
        return DesignatedName(tuple(words[:-1]), _DESIGNATORS[words[-1]])
    return DesignatedName(tuple(words), None)


def read_place_names() -> PlaceNames:
    places = {row["code"]: _place(row) for row in read_table("places.csv")}
    meanings: dict[str, tuple[Meaning, ...]] = {}
    spellings: dict[int, tuple[str, ...]] = {}
    for name, meaning, min_letters in _named(places):
        words = words_of(name)
        letters = "".join(words)
        meanings[letters] = (*meanings.get(letters, ()), meaning)
        if len(letters) >= min_letters:
            spellings[len(words)] = (*spellings.get(len(words), ()), " ".join(words))
    for name, meaning in capitals(places):
        meanings.setdefault("".join(words_of(name)), (meaning,))
    return PlaceNames(places, meanings, {count: tuple(dict.fromkeys(names)) for count, names in spellings.items()})


def _named(places: Mapping[str, Place]) -> Iterator[tuple[str, Meaning, int]]:
    """Names, what they mean, and how many letters one needs for a slip in it to be seen."""
    for place in sorted(places.values(), key=lambda place: _RANKS[place.kind]):
        yield place.name, (place,), _MIN_LETTERS
    for row in read_table("aliases.csv"):
        yield row["name"], tuple(places[code] for code in row["codes"].split()), _MIN_LETTERS_OF_ALIAS


def capitals(places: Mapping[str, Place]) -> Iterator[tuple[str, Meaning]]:
    """Towns that no place is named after, and the regency of each: Takengon is in Aceh Tengah."""
    for row in read_table("capitals.csv"):
        yield row["name"], tuple(places[code] for code in row["codes"].split())


def read_table(name: str) -> Iterable[dict[str, str]]:
    with (_FOLDER / name).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def _place(row: dict[str, str]) -> Place:
    [kind] = (kind for kind in _RANKS if kind == row["kind"])
    latitude, longitude = float(row["latitude"]), float(row["longitude"])
    return Place(row["code"], kind, row["name"], row["province_code"], latitude, longitude)
