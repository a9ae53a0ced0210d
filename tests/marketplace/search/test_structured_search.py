"""What a structured query asks of the search."""

from typing import Any

import pytest

from tis.marketplace.kit.geo import Point
from tis.marketplace.reading.structured_query import ComparedThings, StructuredQuery
from tis.marketplace.search.query import ProductQuery
from tis.marketplace.search.said_queries import product_query

HOME = Point(-6.2, 106.8)


def searched(origin: Point | None = None, **fields: Any) -> ProductQuery:
    return product_query(StructuredQuery(**fields), origin)


def test_of_an_empty_query_nothing_filters_and_sold_out_goods_are_hidden() -> None:
    assert searched() == ProductQuery()


def test_every_filter_is_handed_on() -> None:
    fields: dict[str, Any] = {
        "text": " gaming ",
        "category": "laptop",
        "brands": ["asus"],
        "exclude_brands": ["msi"],
        "exclude_terms": ["hitam"],
        "exclude_cities": ["Depok"],
        "min_price": 5_000_000,
        "max_price": 12_000_000,
        "quantity": 3,
        "min_rating": 4.5,
        "condition": "used",
        "fulfilment": "pickup",
        "sku": "LP-01",
        "product_ids": [4, 7, 4],
        "sort": "price_asc",
    }
    expected: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()
    }
    assert searched(**fields) == ProductQuery(**(expected | {"text": "gaming", "product_ids": (4, 7)}))


@pytest.mark.parametrize(("in_stock", "available_only"), [(None, True), (True, True), (False, False)])
def test_unavailable_goods_are_shown_only_if_the_buyer_says_so(in_stock: bool | None, available_only: bool) -> None:
    assert searched(in_stock=in_stock).available_only is available_only


def test_one_city_is_the_place_whose_neighbours_the_search_offers() -> None:
    assert searched(cities=["Bandung"]).city == "Bandung"
    assert searched(cities=["Bandung", "Bogor"]).cities == ("Bandung", "Bogor")


def test_a_city_and_a_province_elsewhere_mean_any_of_the_two() -> None:
    inside = searched(cities=["Bandung"], provinces=["Jawa Barat"])
    assert (inside.city, inside.provinces) == ("Bandung", ("Jawa Barat",))
    elsewhere = searched(cities=["Bandung"], provinces=["Jambi"])
    assert (elsewhere.cities, elsewhere.provinces) == (("Bandung", "Provinsi Jambi"), ())


def test_distances_are_from_the_user_and_the_sort_is_by_distance_only_if_asked() -> None:
    near = searched(HOME, near_user=True)
    assert (near.origin, near.radius_km, near.sort) == (HOME, None, None)
    nearest = searched(HOME, near_user=True, radius_km=5, sort="distance")
    assert (nearest.radius_km, nearest.sort) == (5, "distance")


def test_without_a_place_of_the_user_nothing_is_measured() -> None:
    nowhere = searched(radius_km=5, near_user=True, sort="distance", text="kopi")
    assert (nowhere.origin, nowhere.radius_km, nowhere.sort) == (None, None, None)


def test_a_radius_around_a_named_city_counts_from_that_city() -> None:
    around = searched(HOME, radius_km=10, cities=["Bandung"])
    assert (around.city, around.radius_km) == (None, 10) and around.origin not in (HOME, None)
    several = searched(HOME, radius_km=10, cities=["Bandung", "Bogor"])
    assert (several.cities, several.radius_km) == (("Bandung", "Bogor"), None)


def test_what_is_near_a_city_is_ordered_and_the_cheapest_is_among_what_is_near() -> None:
    near = searched(cities=["Bandung"], near_cities=True, sort="distance")
    assert (near.city, near.radius_km, near.sort) == (None, None, "distance") and near.origin
    cheap = searched(cities=["Bandung"], near_cities=True, sort="price_asc")
    assert (cheap.city, cheap.radius_km, cheap.sort) == (None, 40, "price_asc") and cheap.origin == near.origin


def test_compared_products_are_those_that_are_found() -> None:
    assert searched(compare=ComparedThings(product_ids=[3, 1])).product_ids == (3, 1)
    assert searched(compare=ComparedThings(items=["acer nitro"], product_ids=[3])).product_ids is None
