"""The search box understands what the assistant does, and says so in a header and in the envelope."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.marketplace.accounts import register_supplier
from tests.marketplace.market_server import new_product
from tests.serving import served, settings_with

GOODS: list[dict[str, Any]] = [
    {"name": "Kulkas Sharp 1 pintu", "price": 1_900_000, "brand": "Sharp", "city": "Bandung"},
    {"name": "Kulkas Sharp 2 pintu", "price": 3_900_000, "brand": "Sharp", "city": "Bandung"},
    {"name": "Kulkas Polytron 2 pintu", "price": 2_900_000, "brand": "Polytron", "city": "Bandung"},
    {"name": "Kulkas LG 2 pintu", "price": 4_900_000, "brand": "LG", "city": "Medan", "condition": "used"},
    {"name": "Rak susun", "price": 90_000, "description": "untuk kulkas", "city": "Medan"},
    {"name": "Kemeja Murah Jaya", "price": 80_000, "category": "clothing", "city": "Medan"},
    {"name": "Kemeja Batik", "price": 60_000, "category": "clothing", "city": "Medan"},
]
PLACES = {"Bandung": (-6.9, 107.6), "Medan": (3.6, 98.67)}


@pytest.fixture(scope="module")
def http() -> Iterator[httpx2.Client]:
    with (
        served(settings_with(marketplace_auth="open")) as running,
        httpx2.Client(base_url=running.url, timeout=30) as client,
    ):
        shops = {
            city: register_supplier(client, city=city, latitude=place[0], longitude=place[1])["id"]
            for city, place in PLACES.items()
        }
        for goods in GOODS:
            values = {"category": "refrigerator", "stock_quantity": 5, **goods}
            new_product(client, shops[values.pop("city")], **values)
        yield client


def search(http: httpx2.Client, q: str, **more: Any) -> tuple[list[str], str | None]:
    answer = http.get("/api/products/search", params={"q": q, **more})
    assert answer.status_code == 200, answer.text
    return [one["name"] for one in answer.json()], answer.headers.get("x-understood")


@pytest.mark.parametrize(
    ("q", "found", "understood"),
    [
        ("kulkas dua juta", ["Kulkas Sharp 1 pintu", "Rak susun"], "max_price=2000000"),
        ("kulkas selain sharp di bandung", ["Kulkas Polytron 2 pintu"], "cities=Bandung; exclude_brands=sharp"),
        ("kulkas 2 pintu di Bandung", ["Kulkas Sharp 2 pintu", "Kulkas Polytron 2 pintu"], "cities=Bandung"),
        ("kulkas bekas", ["Kulkas LG 2 pintu"], "condition=used"),
        ("kulkas 2 pintu di bawah 4 juta termurah", ["Kulkas Polytron 2 pintu", "Kulkas Sharp 2 pintu"],
         "max_price=4000000; sort=price_asc"),
    ],
)  # fmt: skip
def test_what_the_assistant_reads_filters(http: httpx2.Client, q: str, found: list[str], understood: str) -> None:
    names, said = search(http, q)
    # Behind them may be what matches some of the words.
    assert (sorted(names[: len(found)]), said) == (sorted(found), understood)
    body = http.get("/api/products/search", params={"q": q, "envelope": "1"}).json()
    assert set(body["understood"]) == {part.partition("=")[0] for part in understood.split("; ")}


def test_cheap_orders_what_matches_equally_well(http: httpx2.Client) -> None:
    names, said = search(http, "kulkas murah")
    assert names == [
        "Kulkas Sharp 1 pintu", "Kulkas Polytron 2 pintu", "Kulkas Sharp 2 pintu", "Kulkas LG 2 pintu", "Rak susun",
    ]  # fmt: skip
    assert said == "sort=price_asc"
    assert search(http, "cheap kulkas")[0] == names
    assert search(http, "kulkas termahal")[0][0] == "Kulkas LG 2 pintu"
    assert search(http, "termurah")[0][:2] == ["Kemeja Batik", "Kemeja Murah Jaya"]


def test_the_nearest_and_the_newest(http: httpx2.Client) -> None:
    here = {"user_lat": 3.6, "user_lon": 98.7}
    assert search(http, "kulkas terdekat", **here)[0][0] == "Kulkas LG 2 pintu"
    assert search(http, "kulkas terdekat")[1] is None  # nobody knows where the buyer is
    assert search(http, "kulkas terbaru")[0][0] == "Kulkas LG 2 pintu"


def test_near_a_city_is_an_order_from_its_centre(http: httpx2.Client) -> None:
    answer = http.get("/api/products/search", params={"q": "kulkas 2 pintu dekat Medan"})
    assert answer.headers["x-understood"] == "cities=Medan; near_cities=true; sort=distance"
    first, second, *_ = answer.json()
    assert first["name"] == "Kulkas LG 2 pintu" and first["distance_km"] < 20 < second["distance_km"]
    assert first["fulfilment"] is None, "nobody knows where the buyer is"
    names, said = search(http, "kulkas 2 pintu termurah sekitar bandung")
    assert names[:2] == ["Kulkas Polytron 2 pintu", "Kulkas Sharp 2 pintu"] and said == (
        "cities=Bandung; near_cities=true; sort=price_asc"
    )
    assert "Kulkas LG 2 pintu" not in names


def test_the_suggester_reads_alike(http: httpx2.Client) -> None:
    found = http.get("/api/products/suggest", params={"q": "kulkas selain sharp di bandung"}).json()
    assert [one["text"] for one in found if one["kind"] == "product"] == ["Kulkas Polytron 2 pintu"]


def test_the_name_of_a_product_is_looked_for_as_it_is(http: httpx2.Client) -> None:
    names, said = search(http, "Kemeja Murah Jaya")
    assert (names[0], said) == ("Kemeja Murah Jaya", None)


def test_a_parameter_goes_before_the_text(http: httpx2.Client) -> None:
    names, said = search(http, "kulkas 2 pintu di bawah 3 juta termurah", max_price=9_000_000, sort="price_desc")
    assert names[0] == "Kulkas LG 2 pintu" and said is None


def test_a_brand_that_nobody_has_is_said(http: httpx2.Client) -> None:
    names, said = search(http, "kulkas samsung murah")
    assert names[0] == "Kulkas Sharp 1 pintu" and said == "sort=price_asc; no_goods_of=samsung"


def test_facets_count_what_the_list_has(http: httpx2.Client) -> None:
    counted = http.get("/api/products/facets", params={"q": "kulkas selain sharp", "facets": "brand"}).json()
    assert {one["value"] for one in counted["brand"]} == {"polytron", "lg"}


def test_the_header_is_ascii_and_short(http: httpx2.Client) -> None:
    words = " ".join(f"tanpa é{'x' * 30}{number}" for number in range(10))
    _, said = search(http, f"kulkas {words}"[:400])
    assert said is None or (said.isascii() and len(said) < 1000)


def test_pages_of_an_understood_text(http: httpx2.Client) -> None:
    whole, _ = search(http, "kulkas murah")
    names, cursor = list[str](), None
    for _ in range(5):
        params: dict[str, Any] = {"q": "kulkas murah", "limit": 2, "envelope": "1"}
        params |= {"cursor": cursor} if cursor else {}
        body = http.get("/api/products/search", params=params).json()
        names += [one["name"] for one in body["items"]]
        if (cursor := body["next_cursor"]) is None:
            break
    assert names == whole
