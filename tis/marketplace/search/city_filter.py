"""Resolves the filter `city`: the name of a city, regency or province, as people write it, or a part of a name."""

from collections.abc import Callable
from typing import Literal

from sqlalchemy import ColumnElement, func
from sqlalchemy.orm import Session

from tis.marketplace.kit.fields import key_of
from tis.marketplace.places.gazetteer import Gazetteer, gazetteer
from tis.marketplace.places.place_names import is_designated, words_of
from tis.marketplace.search.sql import placeholders, run
from tis.marketplace.tables import Supplier

_MAX_RARE_CITIES = 50
_MAX_CITIES = 500
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


def resolve_city(session: Session, city: str, max_products: int) -> tuple[tuple[str, ...] | None, bool]:
    """The keys of the cities that a filter finds, and whether they have at most `max_products` products together.

    None: all cities that contain the text. Reading all products of rare cities is faster than walking an index in the
    order of the list.
    """
    is_found, key = city_test(city), key_of(city)
    found = [one for one in _cities_of(session, "product_search") if (is_found(one) if is_found else key in one)]
    keys = tuple(found or [key])
    if len(keys) <= _MAX_RARE_CITIES:
        names, values = placeholders("city", keys)
        [(count,)] = run(session, _COUNTED.format(names=names, limit=max_products + 1), values)
        if count <= max_products:
            return keys, True
    return (keys if is_found and len(keys) <= _MAX_CITIES else None), False


def supplier_in_city(session: Session, city: str) -> ColumnElement[bool]:
    """The same filter for suppliers."""
    if is_found := city_test(city):
        keys = [key for key in _cities_of(session, "suppliers") if is_found(key)]
        if len(keys) <= _MAX_CITIES:
            # No column, so that lists are read in their order until a page is full.
            return func.coalesce(Supplier.city_key, "").in_(keys)
    return Supplier.city_key.contains(key_of(city), autoescape=True)


def _codes_of_filter(places: Gazetteer, city: str) -> set[str]:
    """Of cities and regencies of the name; of a province only if no city has its name, or the filter says so."""
    meanings = places.code_sets(city)
    single = [codes for codes in meanings if len(codes) == 1]
    return {code for codes in single or meanings[:1] for code in codes}


def _contains(words: tuple[str, ...], part: tuple[str, ...]) -> bool:
    return any(words[start : start + len(part)] == part for start in range(len(words) - len(part) + 1))


def _cities_of(session: Session, table: Literal["product_search", "suppliers"]) -> list[str]:
    """Distinct cities: jumps from one to the next in the index and does not read every row."""
    sql = (
        f"WITH RECURSIVE cities (city) AS (SELECT min(city_key) FROM {table} UNION ALL"
        f" SELECT (SELECT min(city_key) FROM {table} WHERE city_key > cities.city) FROM cities"
        " WHERE cities.city IS NOT NULL) SELECT city FROM cities WHERE city IS NOT NULL"
    )
    return [city for [city] in run(session, sql)]
