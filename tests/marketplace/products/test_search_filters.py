"""Filters of several values, look-ups and relaxations over HTTP, as a client sees them."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.marketplace.search.conftest import BANDUNG, JAKARTA, SECRET, Catalogue
from tests.serving import served, settings_with

SEARCH, LIST, FACETS, LOOKUP = (f"/api/products{end}" for end in ("/search", "", "/facets", "/lookup"))
CIMAHI = (-6.8722, 107.5423)


@pytest.fixture(scope="module")
def client(database_url: str) -> Iterator[httpx2.Client]:
    settings = settings_with(database_url=database_url, jwt_secret_key=SECRET)
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=30) as client:
        fill(Catalogue(running.app.state.marketplace.market))
        yield client


def fill(catalogue: Catalogue) -> None:
    jakarta, bandung = catalogue.shop("Jakarta Selatan", JAKARTA), catalogue.shop("Kota Bandung", BANDUNG)
    cimahi = catalogue.shop("Cimahi", CIMAHI, delivery_radius_km=5.0, pickup_enabled=False)
    catalogue.put("Teko Asus", brand="Asus", shop=jakarta, price=100, sku="AS-1")
    catalogue.put("Teko Lenovo", brand="Lenovo", shop=bandung, price=110, on_hand=1)
    catalogue.put("Teko HP", brand="HP", shop=cimahi, price=400, description="bahan kulit sintetis")
    catalogue.put("Ember", shop=jakarta, on_hand=0)


def names(answer: httpx2.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    assert "x-warnings" not in answer.headers
    return sorted(product["name"].removeprefix("Teko ") for product in answer.json())


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("brand=asus", ["Asus"]),
        ("brand=asus&brand=LENOVO", ["Asus", "Lenovo"]),
        ("exclude_brand=asus&exclude_brand=hp", ["Lenovo"]),
        ("brand=asus&brand=hp&exclude_brand=asus", ["HP"]),
        ("city=jaksel&city=cimahi", ["Asus", "HP"]),
        ("province=Jawa+Barat", ["HP", "Lenovo"]),
        ("province=jabar&province=DKI+Jakarta&exclude_city=bandung", ["Asus", "HP"]),
        ("city=bandung&city=jakarta&province=west+java", ["Lenovo"]),
        ("exclude=kulit+sintetis", ["Asus", "Lenovo"]),
        ("exclude=kulit&exclude=lenovo", ["Asus"]),
        ("quantity=2", ["Asus", "HP"]),
        ("sku=as1", ["Asus"]),
        ("ids=1,2,1,9223372036854775999", ["Asus", "Lenovo"]),
        ("fulfilment=pickup", ["Asus", "Lenovo"]),
        (f"fulfilment=delivery&user_lat={BANDUNG[0]}&user_lon={BANDUNG[1]}", ["Asus", "Lenovo"]),
    ],
)
def test_filters_of_list_and_search(client: httpx2.Client, query: str, found: list[str]) -> None:
    assert names(client.get(f"{LIST}?{query}")) == found
    assert names(client.get(f"{SEARCH}?q=teko&{query}")) == found
    counted = client.get(f"{FACETS}?q=teko&facets=category&{query}")
    assert counted.status_code == 200 and sum(one["count"] for one in counted.json()["category"]) == len(found)


def test_a_facet_shows_what_its_filter_leaves_out_and_no_exclusion(client: httpx2.Client) -> None:
    facets = client.get(f"{FACETS}?q=teko&facets=brand&brand=asus&exclude_brand=hp").json()
    assert [one["value"] for one in facets["brand"]] == ["asus", "lenovo"]


def test_the_link_keeps_repeated_filters(client: httpx2.Client) -> None:
    first = client.get(f"{SEARCH}?q=teko&brand=asus&brand=lenovo&limit=1")
    second = client.get(first.links["next"]["url"])
    assert sorted(names(first) + names(second)) == ["Asus", "Lenovo"] and "next" not in second.links
    other = first.links["next"]["url"].replace("brand=asus", "brand=hp")
    assert client.get(other).status_code == 400


@pytest.mark.parametrize(
    "query",
    [
        *("&".join([f"{name}=a"] * 21) for name in ("brand", "exclude_brand", "city", "province", "exclude")),
        *("brand=", "exclude=%20", "exclude=" + "a" * 101, "sku=", "quantity=0", "quantity=many", "fulfilment=drone"),
        *("ids=", "ids=1,", "ids=1,x", "ids=-1", "ids=" + ",".join(map(str, range(1, 102)))),
        *("sku=a&sku=b", "quantity=1&quantity=2"),
    ],
)
def test_what_is_no_filter_is_refused(client: httpx2.Client, query: str) -> None:
    is_repeated = query.count("sku=") == 2 or query.count("quantity=") == 2
    for path in (FACETS,) if is_repeated else (LIST, FACETS, f"{SEARCH}?q=teko"):
        answer = client.get(f"{path}{'&' if '?' in path else '?'}{query}")
        assert answer.status_code == 422 and answer.json()["detail"], query


@pytest.mark.parametrize("value", ["\x00", "\ud800", "%", '"', "' OR 1", "§laptop", "(((", "NEAR", "-", "¤1x1", "\\"])
def test_any_text_may_be_excluded_or_a_name(client: httpx2.Client, value: str) -> None:
    encoded = "%00" if value == "\x00" else "%ED%A0%80" if value == "\ud800" else value
    for name in ("exclude", "sku", "brand", "exclude_brand", "city", "province", "exclude_city"):
        for path in (LIST, SEARCH):
            url = httpx2.URL(path, params={"q": "teko", name: encoded} if path == SEARCH else {name: encoded})
            assert client.get(url).status_code in (200, 422)


def test_products_are_looked_up_by_their_ids(client: httpx2.Client) -> None:
    found = client.get(LOOKUP, params={"ids": "4,1,7,1", "user_lat": BANDUNG[0], "user_lon": BANDUNG[1]})
    body = found.json()
    assert [item["name"] for item in body["items"]] == ["Ember", "Teko Asus"] and body["not_found"] == [7]
    assert body["items"][1]["distance_km"] == 116.2 and body["items"][1]["fulfilment"]
    assert client.get(LOOKUP, params={"ids": "1"}).json()["items"][0]["distance_km"] is None
    for ids in ("", "1,", "a", ",".join(map(str, range(1, 102)))):
        assert client.get(LOOKUP, params={"ids": ids}).status_code == 422
    assert client.get(LOOKUP).status_code == 422


def relaxations(client: httpx2.Client, path: str, **parameters: Any) -> list[tuple[str, dict[str, Any], int]]:
    page = client.get(path, params={"envelope": 1, **parameters}).json()
    return [(one["without"], one["changed"], one["count"]) for one in page["relaxations"]]


def test_an_envelope_names_the_filters_that_hide_products(client: httpx2.Client) -> None:
    for path, text in ((SEARCH, {"q": "teko"}), (LIST, {})):
        assert relaxations(client, path, max_price=90, **text) == [
            ("max_price", {"max_price": 113}, 2),
            ("max_price", {"max_price": None}, 3),
        ]
        around, everywhere = relaxations(client, path, city="Kota Bandung", brand="hp", **text)[0:2]
        assert around[0] == "city" and around[1]["city"] is None and around[2] == 1
        assert around[1].keys() == {"city", "user_lat", "user_lon", "radius_km"} and everywhere[0] == "brand"


def test_every_relaxation_finds_what_it_says(client: httpx2.Client) -> None:
    requests: tuple[dict[str, Any], ...] = (
        {"q": "teko di bawah 90", "brand": "asus"},
        {"q": "teko dibawah Rp 90.000 di cimahi", "quantity": 50},
        {"q": "teko di Medan", "max_price": 105},
        {"q": "teko", "city": "Medan", "user_lat": 1, "user_lon": 1},
        {"q": "teko selain asus di Medan"},
        {"q": "teko selain asus di Medan kecuali yang bekas", "exclude_city": "Bogor"},
    )
    for given in requests:
        page = client.get(SEARCH, params={"envelope": 1, **given}).json()
        for one in page["relaxations"]:
            changed = {**given, **one["changed"]}
            again = client.get(SEARCH, params={name: value for name, value in changed.items() if value is not None})
            assert int(again.headers["x-total-count"]) == one["count"], (given, one)


def test_a_list_counts_as_a_search(database_url: str) -> None:
    settings = settings_with(database_url=database_url, jwt_secret_key=SECRET, searches_per_minute=1)
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=30) as few:
        assert [few.get(LIST, params={"quantity": 999, "envelope": 1}).status_code for _ in range(2)] == [200, 429]
        assert few.get(LIST, params={"quantity": 999}).status_code == 429
        assert few.get(LOOKUP, params={"ids": "1"}).status_code == 429


def test_a_full_list_and_a_later_page_have_no_relaxations(client: httpx2.Client) -> None:
    assert relaxations(client, SEARCH, q="teko", limit=1, brand=["asus", "hp"]) == []
    assert relaxations(client, SEARCH, q="teko", skip=1, city="bandung") == []
    cursor = client.get(SEARCH, params={"q": "teko", "limit": 1, "envelope": 1}).json()["next_cursor"]
    assert relaxations(client, SEARCH, q="teko", cursor=cursor) == []
