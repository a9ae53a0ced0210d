"""Suppliers are found by name, city, distance, category and opening hours; the same lists on every database."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from tests.marketplace.accounts import bearer, made, register_supplier, register_user
from tis.marketplace.columns import now
from tis.marketplace.kit.opening_hours import WEEKDAYS, local_time

ALWAYS = {day: [["00:00", "24:00"]] for day in WEEKDAYS}
# Kilometres east of the first of these places; a hidden place is rounded to about one.
MALANG: dict[str, Any] = {"city": "Malang", "province": "Jawa Timur", "latitude": -7.98, "longitude": 112.63}


@pytest.fixture(scope="module")
def shops(internet: httpx2.Client) -> dict[str, dict[str, Any]]:
    east = [112.63, 112.72, 113.0, 113.4]
    given: dict[str, dict[str, Any]] = {
        "Toko Lestari Jaya Abadi": {"longitude": east[3]},
        "Lestari Jaya": {"longitude": east[2], "shows_place": True, "opening_hours": ALWAYS},
        "Lestari": {"city": "Jayapura", "province": "Papua", "latitude": -2.53, "longitude": 140.7},
        "Jayawijaya Lestari": {"longitude": east[1]},
        "Kios Café Ménteng": {"longitude": east[0]},
    }
    return {
        name: register_supplier(internet, **{**MALANG, "business_name": name, **values})
        for name, values in given.items()
    }


def names(client: httpx2.Client, **parameters: Any) -> list[str]:
    return [one["business_name"] for one in pages(client, **parameters)]


def pages(client: httpx2.Client, **parameters: Any) -> Iterator[dict[str, Any]]:
    page = client.get("/api/suppliers", params=parameters)
    yield from made_list(page)
    while "next" in page.links:
        page = client.get(page.links["next"]["url"])
        yield from made_list(page)


def made_list(answer: httpx2.Response) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    return list(answer.json())


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_the_best_match_comes_first(internet: httpx2.Client, shops: object, limit: int) -> None:
    found = names(internet, q="lestari jaya", limit=limit)
    # The whole name; both words in the name; the beginning of a word; the beginning of a city.
    assert found == ["Lestari Jaya", "Toko Lestari Jaya Abadi", "Jayawijaya Lestari", "Lestari"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("JAYA, lestari!", ["Lestari Jaya", "Toko Lestari Jaya Abadi"]),
        ("cafe menteng", ["Kios Café Ménteng"]),
        ("kios malang", ["Kios Café Ménteng"]),
        ("kios jawa tim", ["Kios Café Ménteng"]),
        ("kios di Malang", ["Kios Café Ménteng"]),
        ("lestari di Jayapura", ["Lestari"]),
        ("jaya lest abadi", []),
        ("lestari jaya mebel", []),
        ("%", []),
        ("***", []),
        ("x" * 500, []),
    ],
)
def test_all_words_must_match_and_the_last_may_be_begun(
    internet: httpx2.Client, shops: object, text: str, expected: list[str]
) -> None:
    page = internet.get("/api/suppliers", params={"q": text})
    assert [one["business_name"] for one in made_list(page)] == expected
    assert page.headers["X-Total-Count"] == str(len(expected))


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_without_words_the_nearest_comes_first(internet: httpx2.Client, shops: object, limit: int) -> None:
    here = {"user_lat": -7.98, "user_lon": 112.62, "city": "malang", "limit": limit}
    found = list(pages(internet, **here))
    distances = {one["business_name"]: one["distance_km"] for one in found}
    # Only Lestari Jaya shows its place.
    assert list(distances.items()) == [
        ("Kios Café Ménteng", 1.0),
        ("Jayawijaya Lestari", 11.0),
        ("Lestari Jaya", 41.8),
        ("Toko Lestari Jaya Abadi", 86.0),
    ]
    near = [one["business_name"] for one in pages(internet, **here, radius_km=42)]
    assert near == list(distances)[:3]
    assert names(internet, **here, radius_km=41) == list(distances)[:2]
    assert names(internet, q="jaya lestari", **here)[:2] == ["Lestari Jaya", "Toko Lestari Jaya Abadi"]


def test_distances_are_null_without_a_place(internet: httpx2.Client, shops: dict[str, dict[str, Any]]) -> None:
    assert all(one["distance_km"] is None for one in pages(internet, q="lestari"))
    path = f"/api/suppliers/{shops['Kios Café Ménteng']['id']}"
    assert made(internet.get(path))["distance_km"] is None
    assert made(internet.get(path, params={"user_lat": -7.98, "user_lon": 112.62}))["distance_km"] == 1.0


def test_only_shops_that_sell_the_category_and_are_open(
    internet: httpx2.Client, shops: dict[str, dict[str, Any]]
) -> None:
    shop = shops["Lestari Jaya"]
    path, owner = f"/api/suppliers/{shop['id']}", bearer(shop)
    assert names(internet, category="phone-case", city="malang") == []
    case = {"name": "Casing", "price": 1000, "stock_quantity": 1, "category": "Phone Case"}
    product = made(internet.post(f"{path}/products", json=case, headers=owner))
    assert names(internet, category="phone-case", q="lestari") == ["Lestari Jaya"]
    assert names(internet, category="phone case", city="malang") == ["Lestari Jaya"]
    internet.put(f"/api/products/{product['id']}", json={"stock_quantity": 0}, headers=owner)
    assert names(internet, category="phone-case", q="lestari") == []

    assert names(internet, q="lestari", open_now=True) == ["Lestari Jaya"]
    assert [one["open_now"] for one in pages(internet, q="lestari jaya", city="malang")] == [True, None, None]
    three_days_on = WEEKDAYS[local_time(now() + timedelta(days=3), "WIB").weekday()]
    internet.put(path, json={"opening_hours": {three_days_on: [["09:00", "17:00"]]}}, headers=owner)
    assert names(internet, q="lestari", open_now=True) == []
    internet.put(path, json={"opening_hours": ALWAYS}, headers=owner)


def test_the_rating_of_a_shop_is_that_of_its_products(internet: httpx2.Client) -> None:
    better, worse = (register_supplier(internet, business_name="Tirta Bintang", city="Kendari") for _ in range(2))
    assert [one["rating"] for one in pages(internet, q="tirta bintang")] == [None, None]
    for shop, stars in ((worse, [2, 3]), (better, [5])):
        goods = {"name": "Galon", "price": 1000, "stock_quantity": 1, "category": "galon"}
        product = made(internet.post(f"/api/suppliers/{shop['id']}/products", json=goods, headers=bearer(shop)))
        for rating in stars:
            author = bearer(register_user(internet))
            review = internet.post(f"/api/products/{product['id']}/reviews", json={"rating": rating}, headers=author)
            last = made(review)["id"]
    found = list(pages(internet, q="tirta bintang"))
    assert [(one["id"], one["rating"]) for one in found] == [(better["id"], 5.0), (worse["id"], 2.5)]
    assert made(internet.get(f"/api/suppliers/{worse['id']}"))["rating"] == 2.5
    internet.put(f"/api/reviews/{last}", json={"rating": 1}, headers=author)
    assert made(internet.get(f"/api/suppliers/{better['id']}"))["rating"] == 1.0
    internet.delete(f"/api/reviews/{last}", headers=author)
    assert made(internet.get(f"/api/suppliers/{better['id']}"))["rating"] is None


def test_a_shop_is_found_by_its_new_name_and_not_when_it_is_closed(internet: httpx2.Client) -> None:
    shop = register_supplier(internet, business_name="Warung Semeru", password="a long sentence")
    path, owner = f"/api/suppliers/{shop['id']}", bearer(shop)
    assert names(internet, q="semeru") == ["Warung Semeru"]
    made(internet.put(path, json={"business_name": "Warung Bromo", "city": "Probolinggo"}, headers=owner))
    assert names(internet, q="semeru") == [] and names(internet, q="bromo proboling") == ["Warung Bromo"]
    made(internet.request("DELETE", path, json={"password": "a long sentence"}, headers=owner))
    assert names(internet, q="bromo") == []


@pytest.mark.parametrize(
    "query",
    [
        "q=",
        "q=%20",
        f"q={'x' * 501}",
        "user_lat=1",
        "radius_km=5",
        "user_lat=91&user_lon=0",
        "user_lat=0&user_lon=0&radius_km=-1",
        "user_lat=nan&user_lon=0",
        "open_now=perhaps",
        f"category={'x' * 101}",
    ],
)
def test_parameters_that_make_no_sense_are_a_422(internet: httpx2.Client, query: str) -> None:
    assert internet.get(f"/api/suppliers?{query}").status_code == 422


def test_a_cursor_is_of_one_search(internet: httpx2.Client, shops: object) -> None:
    page = internet.get("/api/suppliers?q=lestari&limit=1")
    cursor = httpx2.URL(page.links["next"]["url"]).params["cursor"]
    for query in ({"q": "jaya"}, {"q": "lestari", "city": "malang"}, {}):
        assert internet.get("/api/suppliers", params={**query, "cursor": cursor}).status_code == 400
    warned = internet.get("/api/suppliers?q=lestari&colour=red")
    assert warned.status_code == 200 and "colour" in warned.headers["X-Warnings"]
