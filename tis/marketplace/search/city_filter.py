"""Resolves the filters by city: names of cities, regencies and provinces, as people write them, or parts of names."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from sqlalchemy.orm import Session

from tis.marketplace.kit.fields import key_of
from tis.marketplace.places.gazetteer import Gazetteer, gazetteer
from tis.marketplace.places.place_names import is_designated, words_of
from tis.marketplace.search.query import ProductQuery
from tis.marketplace.search.sql import placeholders, run

_MAX_RARE_CITIES = 50
MAX_CITIES = 500
_MAX_NAMED_CITIES = 10_000
_NO_CITY = "\n"  # no key contains it
_COUNTED = "SELECT count(*) FROM (SELECT 1 FROM product_search WHERE city_key IN {names} LIMIT {limit}) x"
CityTest = Callable[[str], bool]


def city_test(city: str) -> CityTest | None:
    """Tells for the city of a shop whether the filter finds it; None if no place has the name of the filter.

    `Bandung` finds Kota Bandung, Kabupaten Bandung, bdg and Bandung Barat; `Kota Bandung` finds Bandung, too, but not
    Kabupaten Bandung; `Jawa Barat` finds all of these. `Batu` does not find Batu Bara: it lies in another province.
    """
    places = gazetteer()
    wanted = _codes_of_filter(places, city)
    if not wanted:
        return None
    key = key_of(city)
    words, provinces = words_of(city), {code[:2] for code in wanted}
    is_whole_name = is_designated(words)

    def is_found(city_key: str) -> bool:
        meanings = places.code_sets(city_key)
        if not meanings:
            return key in city_key
        if any(codes <= wanted for codes in meanings):
            return True
        is_near = any(code[:2] in provinces for codes in meanings for code in codes)
        return is_near and not is_whole_name and _contains(words_of(city_key), words)

    return is_found


def province_test(province: str) -> CityTest:
    """Tells for the city of a shop whether it lies in the province. What is no province is a city or a part of one."""
    wanted, key = gazetteer().province(province), key_of(province)
    if not wanted:
        return city_test(province) or (lambda city_key: key in city_key)

    def is_inside(city_key: str) -> bool:
        meanings = gazetteer().code_sets(city_key)
        return any(codes <= wanted for codes in meanings) if meanings else key in city_key

    return is_inside


def any_city_test(cities: Iterable[str]) -> CityTest:
    """Whether one of the filters finds the city of a shop."""
    tests, parts = list[CityTest](), list[str]()
    for city in cities:
        if test := city_test(city):
            tests.append(test)
        else:
            parts.append(key_of(city))
    return lambda city_key: any(test(city_key) for test in tests) or any(part in city_key for part in parts)


@dataclass(frozen=True)
class CityKeys:
    """The keys of cities that the filters of a query find, or exclude.

    `found` is None without such a filter, and if there are too many to name: parts of names are compared then.
    """

    found: tuple[str, ...] | None = None
    are_rare: bool = False  # those that are found have few products
    excluded: tuple[str, ...] = ()


def resolve_cities(session: Session, query: ProductQuery, max_products: int) -> CityKeys:
    """Reading all products of rare cities, `max_products` at most, is faster than walking an index in the order of the
    list.
    """
    cities, provinces, excluded = query.any_city, query.provinces, query.exclude_cities
    if not (cities or provinces or excluded):
        return CityKeys()
    keys = cities_of(session, "product_search")
    if excluded:
        is_excluded = any_city_test(excluded)
        left_out = {key for key in keys if is_excluded(key)}
        if not cities and not provinces:
            return CityKeys(excluded=tuple(sorted(left_out)[:_MAX_NAMED_CITIES]))
        keys = [key for key in keys if key not in left_out]
    if cities:
        keys = list(filter(any_city_test(cities), keys))
    if provinces:
        tests = [province_test(province) for province in provinces]
        keys = [key for key in keys if any(test(key) for test in tests)]
    found = tuple(keys or [_NO_CITY])
    if len(found) <= _MAX_RARE_CITIES:
        names, values = placeholders("city", found)
        [(count,)] = run(session, _COUNTED.format(names=names, limit=max_products + 1), values)
        if count <= max_products:
            return CityKeys(found, are_rare=True)
    max_named = _MAX_NAMED_CITIES if provinces or excluded else MAX_CITIES
    return CityKeys(found if len(found) <= max_named else None)


def _codes_of_filter(places: Gazetteer, city: str) -> set[str]:
    """Of cities and regencies of the name; of a province only if no city has its name, or the filter says so."""
    meanings = places.code_sets(city)
    single = [codes for codes in meanings if len(codes) == 1]
    return {code for codes in single or meanings[:1] for code in codes}


def _contains(words: tuple[str, ...], part: tuple[str, ...]) -> bool:
    return any(words[start : start + len(part)] == part for start in range(len(words) - len(part) + 1))


def cities_of(session: Session, table: Literal["product_search", "suppliers"]) -> list[str]:
    """Distinct cities: jumps from one to the next in the index and does not read every row."""
    sql = (
        f"WITH RECURSIVE cities (city) AS (SELECT min(city_key) FROM {table} UNION ALL"
        f" SELECT (SELECT min(city_key) FROM {table} WHERE city_key > cities.city) FROM cities"
        " WHERE cities.city IS NOT NULL) SELECT city FROM cities WHERE city IS NOT NULL"
    )
    return [city for [city] in run(session, sql)]
