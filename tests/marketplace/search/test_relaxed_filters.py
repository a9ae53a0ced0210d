"""Which filter keeps a search from finding more, and how many products it hides."""

from typing import Any

import pytest

from tests.marketplace.search.conftest import BANDUNG, JAKARTA, Catalogue
from tis.marketplace.kit.geo import Point
from tis.marketplace.search.query import ProductQuery
from tis.marketplace.search.relaxed_filters import RelaxedFilter, middle_of, relaxed_queries

CIMAHI, GARUT = (-6.8722, 107.5423), (-7.2279, 107.9087)
BOTH = pytest.mark.parametrize("text", ["teko", None])


def relaxations(catalogue: Catalogue, text: str | None, **filters: Any) -> list[RelaxedFilter]:
    with catalogue.market.reading() as session:
        query = catalogue.search.read(session, ProductQuery(text, **filters)).query
        return catalogue.search.relaxations(session, query)


def counts(catalogue: Catalogue, text: str | None, **filters: Any) -> list[tuple[str, int]]:
    return [(one.without, one.count) for one in relaxations(catalogue, text, **filters)]


@BOTH
def test_prices_are_raised_before_they_are_dropped(catalogue: Catalogue, text: str | None) -> None:
    for price in (120, 125, 150, 900, 1000):
        catalogue.put("Teko", price=price)
    found = relaxations(catalogue, text, max_price=100)
    assert [(one.query.max_price, one.count) for one in found] == [(125, 2), (150, 3), (None, 5)]
    assert {one.without for one in found} == {"max_price"} and all(one.is_exact for one in found)
    assert counts(catalogue, text, max_price=125) == [("max_price", 3), ("max_price", 5)]
    assert counts(catalogue, text, max_price=2000) == []


@BOTH
def test_around_a_city_before_everywhere(catalogue: Catalogue, text: str | None) -> None:
    catalogue.synonym("teko", "kettle")
    for city, place in (("Cimahi", CIMAHI), ("Garut", GARUT), ("Jakarta", JAKARTA)):
        catalogue.put("Teko", shop=catalogue.shop(city, place))
    found = relaxations(catalogue, text, city="Kota Bandung")
    assert [(one.without, one.query.radius_km, one.count) for one in found] == [
        ("city", 40.0, 1),
        ("city", 100.0, 2),
        ("city", None, 3),
    ]
    for one in found:
        assert len(catalogue.find(**vars(one.query)).hits) == one.count
    assert counts(catalogue, text, city="nowhere at all") == [("city", 3)]


@BOTH
def test_each_filter_alone_is_dropped(catalogue: Catalogue, text: str | None) -> None:
    catalogue.put("Teko", brand="Asus", condition="used", on_hand=2, price=100, category="a")
    catalogue.put("Teko", brand="HP", granted_rating=4.5, on_hand=1, price=100, category="a")
    catalogue.put("Teko", brand="HP", on_hand=0, price=100, category="b")
    assert counts(catalogue, text, brand="asus", condition="new") == [("condition", 1), ("brand", 1)]
    assert counts(catalogue, text, brand="hp", category="b") == [("available_only", 1), ("category", 1)]
    assert counts(catalogue, text, brand="asus", min_rating=4.0, quantity=2) == [("min_rating", 1)]
    assert counts(catalogue, text, quantity=9) == [("quantity", 2)]
    assert counts(catalogue, text, exclude_brands=("hp", "asus")) == []  # nobody wants these


@BOTH
def test_a_radius_is_doubled_and_then_dropped(catalogue: Catalogue, text: str | None) -> None:
    catalogue.put("Teko", shop=catalogue.shop("Cimahi", CIMAHI))
    catalogue.put("Teko", shop=catalogue.shop("Jakarta", JAKARTA))
    here = Point(*BANDUNG)
    found = relaxations(catalogue, text, origin=here, radius_km=6.0, sort="distance")
    assert [(one.without, one.query.radius_km, one.count) for one in found] == [
        ("radius_km", 12.0, 1),
        ("radius_km", None, 2),
    ]


def test_what_the_text_says_is_relaxed_too(catalogue: Catalogue) -> None:
    catalogue.put("Teko", price=60_000)
    [raised] = relaxations(catalogue, "teko di bawah 50rb")
    assert (raised.without, raised.query.max_price, raised.count) == ("max_price", 62_500, 1)


def test_products_of_some_words_are_not_counted(catalogue: Catalogue) -> None:
    catalogue.put("Teko listrik", price=60_000)
    catalogue.put("Teko", price=70_000)
    assert counts(catalogue, "teko listrik", max_price=50_000) == [("max_price", 1)]
    assert counts(catalogue, "teko zzzz", max_price=50_000) == []
    assert counts(catalogue, "---", max_price=50_000) == []


def test_counts_stop_at_a_hundred_and_a_full_list_needs_none(catalogue: Catalogue) -> None:
    catalogue.put_all([{"name": "Teko", "brand": "HP" if number else "Asus"} for number in range(103)])
    [one] = relaxations(catalogue, "teko", brand="asus")
    assert (one.without, one.count, one.is_exact) == ("brand", 100, False)
    assert relaxations(catalogue, "teko", brand="hp", available_only=False) == []


def test_at_most_six_are_named(catalogue: Catalogue) -> None:
    filters: dict[str, Any] = {
        "max_price": 100,
        "min_price": 90,
        "city": "Bandung",
        "brand": "a",
        "condition": "new",
        "min_rating": 4.0,
        "quantity": 3,
        "category": "b",
        "fulfilment": "pickup",
    }
    names = [without for without, _ in relaxed_queries(ProductQuery("teko", **filters))]
    assert names[:4] == ["max_price", "max_price", "city", "city"] and set(names) == {*filters, "available_only"}
    for price in (100, 120, 140, 500):
        for city in ("Bandung", "Cimahi"):
            catalogue.put("Teko", price=price, shop=catalogue.shop(city, BANDUNG if city == "Bandung" else CIMAHI))
    found = relaxations(catalogue, "teko", max_price=100, city="Bandung", available_only=True)
    assert 0 < len(found) <= 6


def test_the_middle_of_a_city_is_known_of_one_place_only() -> None:
    assert middle_of("Bandung") is not None and middle_of("jaksel") is not None and middle_of("Jakarta") is not None
    assert middle_of("Jawa Barat") is middle_of("nowhere") is None
