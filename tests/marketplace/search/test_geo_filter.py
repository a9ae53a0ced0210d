"""Distances in SQL and in Python, radius filters, and lists sorted by distance."""

import random
import sqlite3

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.marketplace.search.conftest import BANDUNG, JAKARTA, SURABAYA, Catalogue
from tis.database.engines import add_math_functions
from tis.marketplace.kit.geo import Point, kilometres_between
from tis.marketplace.search.geo_filter import bounding_box, cell_token_at, haversine_sql, origin_values
from tis.marketplace.search.query import PageRequest, ProductQuery
from tis.marketplace.search.sql import run

PLACES = st.builds(Point, st.floats(-90, 90), st.floats(-180, 180))
METRE = 0.001


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(one=PLACES, other=PLACES)
@example(one=Point(0, 0), other=Point(0, 180))
@example(one=Point(90, 0), other=Point(-90, 0))
@example(one=Point(0, 179.9999), other=Point(0, -179.9999))
@example(one=Point(0, 0), other=Point(5e-324, 2e-311))
@example(one=Point(-6.2, 106.8), other=Point(-6.2, 106.8))
def test_sql_and_python_compute_the_same_distance_to_the_metre(catalogue: Catalogue, one: Point, other: Point) -> None:
    least_function = catalogue.search.index.least_function
    sql = f"SELECT {haversine_sql('s', least_function)} FROM (SELECT :lat + 0.0 AS latitude, :lon + 0.0 AS longitude) s"
    with catalogue.market.reading() as session:
        [(km,)] = run(session, sql, {**origin_values(one), "lat": other.latitude, "lon": other.longitude})
    assert abs(km - kilometres_between(one, other)) < METRE


def test_the_distance_from_jakarta_to_bandung() -> None:
    assert kilometres_between(Point(*JAKARTA), Point(*BANDUNG)) == pytest.approx(116.236, abs=0.05)


@settings(max_examples=300)
@given(origin=PLACES, other=PLACES, radius=st.floats(0, 20_100))
@example(origin=Point(0, 179.95), other=Point(0, -179.95), radius=15)
@example(origin=Point(89.99, 0), other=Point(89.99, 180), radius=5)
@example(origin=Point(-90, 0), other=Point(-89, 77), radius=112)
@example(origin=Point(60, 0), other=Point(60, 180), radius=6700)
def test_the_bounding_box_and_its_cells_contain_everything_in_the_radius(
    origin: Point, other: Point, radius: float
) -> None:
    if kilometres_between(origin, other) > radius:
        return
    box = bounding_box(origin, radius)
    assert box.south <= other.latitude <= box.north
    assert any(west <= other.longitude <= east for west, east in box.longitude_ranges)
    assert box.cell_tokens is None or cell_token_at(other.latitude, other.longitude) in box.cell_tokens


def test_a_list_by_distance_begins_with_the_nearest_of_all_suppliers(catalogue: Catalogue) -> None:
    far, near, middle = (catalogue.shop(place=place) for place in (SURABAYA, JAKARTA, BANDUNG))
    for shop in (far, middle, near):
        for number in range(8):
            catalogue.put(f"Teko {number}", shop=shop)
    for text in ("teko", None):
        found = catalogue.find(text, origin=Point(*JAKARTA), sort="distance", limit=10)
        assert [hit.product.supplier_id for hit in found.hits] == [near] * 8 + [middle] * 2
        distances = [round(hit.distance_km or 0, 1) for hit in found.hits]
        assert distances == [0.0] * 8 + [116.3] * 2


def test_a_radius_filters_in_every_sort_order(catalogue: Catalogue) -> None:
    catalogue.put("Dekat", shop=catalogue.shop(place=JAKARTA))
    catalogue.put("Jauh", shop=catalogue.shop(place=BANDUNG))
    origin = Point(*(round(degrees, 3) for degrees in JAKARTA))
    for sort in ("distance", "price_asc", "newest", None):
        assert catalogue.names(origin=origin, radius_km=116, sort=sort) == ["Dekat"]
        assert sorted(catalogue.names(origin=origin, radius_km=117, sort=sort)) == ["Dekat", "Jauh"]
        assert catalogue.names(origin=origin, radius_km=0, sort=sort) == ["Dekat"]
    assert catalogue.names("jauh", origin=origin, radius_km=116) == []
    assert catalogue.names("jauh", origin=origin, radius_km=117) == ["Jauh"]


def test_a_coordinate_of_zero_is_valid(catalogue: Catalogue) -> None:
    catalogue.put("Tugu Khatulistiwa", shop=catalogue.shop("Pontianak", (0.0, 109.322)))
    catalogue.put("Greenwich", shop=catalogue.shop("London", (51.48, 0.0)))
    [pontianak, london] = catalogue.find(origin=Point(0.0, 109.322), sort="distance").hits
    assert (pontianak.product.name, pontianak.distance_km) == ("Tugu Khatulistiwa", 0)
    assert catalogue.names(origin=Point(51.48, 0.0), radius_km=1) == ["Greenwich"]
    assert london.distance_km and london.distance_km > 10_000


def test_a_radius_crosses_the_date_line_and_the_poles(catalogue: Catalogue) -> None:
    catalogue.put("Fiji timur", shop=catalogue.shop("Taveuni", (-16.8, -179.99)))
    catalogue.put("Kutub", shop=catalogue.shop("Kutub", (89.95, 120.0)))
    for text in (None, "fiji"):
        assert catalogue.names(text, origin=Point(-16.8, 179.99), radius_km=5) == ["Fiji timur"]
    assert catalogue.names(origin=Point(89.95, -60.0), radius_km=12) == ["Kutub"]


def test_moving_a_supplier_moves_its_products(catalogue: Catalogue) -> None:
    shop = catalogue.shop(place=JAKARTA)
    catalogue.put("Teko", shop=shop)
    catalogue.change_shop(shop, latitude=SURABAYA[0], longitude=SURABAYA[1], city="Surabaya", city_key="surabaya")
    for text in ("teko", None):
        assert catalogue.names(text, origin=Point(*JAKARTA), radius_km=20) == []
        assert catalogue.names(text, origin=Point(*SURABAYA), radius_km=20, city="surabaya") == ["Teko"]


@pytest.mark.parametrize("text", ["teko", None])
def test_pages_by_distance_continue_after_the_page_before(catalogue: Catalogue, text: str | None) -> None:
    chance = random.Random(7)
    shops = [catalogue.shop(place=(chance.uniform(-8, -6), chance.uniform(106, 113))) for _ in range(12)] + [
        catalogue.shop(place=JAKARTA),
        catalogue.shop(place=JAKARTA),
    ]
    expected = []
    origin = Point(*JAKARTA)
    for number in range(60):
        shop = chance.choice(shops)
        product_id = catalogue.put("Teko", shop=shop, price=number + 1)
        expected.append(product_id)
    everything = {hit.product.id: hit.distance_km or 0 for hit in catalogue.find(origin=origin, limit=100).hits}
    expected.sort(key=lambda product_id: (everything[product_id], product_id))
    query, seen, cursor = ProductQuery(text=text, origin=origin, sort="distance"), [], None
    while True:
        with catalogue.market.reading() as session:
            found = catalogue.search.find(session, query, PageRequest(7, cursor=cursor))
        seen += [hit.product.id for hit in found.hits]
        cursor = found.next_cursor
        if cursor is None:
            break
    assert seen == expected


def test_missing_sqlite_math_functions_are_added() -> None:
    with sqlite3.connect(":memory:") as connection:
        for name, arguments in (("asin", 1), ("power", 2), ("radians", 1)):
            connection.create_function(name, arguments, None)
        add_math_functions(connection)
        sql = f"SELECT {haversine_sql('s', 'min')} FROM (SELECT :lat AS latitude, :lon AS longitude) s"
        values = {**origin_values(Point(*JAKARTA)), "lat": BANDUNG[0], "lon": BANDUNG[1]}
        [(km,)] = connection.execute(sql, values).fetchall()
    connection.close()
    assert km == pytest.approx(116.236, abs=0.05)
