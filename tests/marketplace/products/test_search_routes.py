"""Product list, search and facets over HTTP: the documented contract, headers and rejected parameters."""

from collections.abc import Iterator
from urllib.parse import unquote

import httpx2
import pytest

from tests.marketplace.search.conftest import BANDUNG, JAKARTA
from tests.serving import served, settings_with
from tis.marketplace.kit.fields import key_of
from tis.marketplace.market import Market
from tis.marketplace.tables import Product, Supplier

NEAR_JAKARTA = {"user_lat": JAKARTA[0], "user_lon": JAKARTA[1]}
SEARCH, LIST = "/api/products/search", "/api/products"


@pytest.fixture(scope="module")
def client(database_url: str) -> Iterator[httpx2.Client]:
    settings = settings_with(database_url=database_url, jwt_secret_key="a secret of the tests, long enough to be taken")
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=30) as client:
        fill(running.app.state.marketplace.market)
        yield client


def fill(market: Market) -> None:
    goods = [
        ("Laptop ASUS ROG gaming", "laptop", 11_500_000, "gaming,asus", 0),
        ("Laptop kantor", "laptop", 7_000_000, None, 1),
        ("Meja gaming", "furniture", 900_000, "gaming", 0),
        ("Mouse", "mouse", 100_000, None, 1),
    ]
    with market.writing() as session:
        shops = [
            Supplier(
                name="Budi",
                business_name=f"Toko {city}",
                email=f"{key_of(city)}@example.com",
                email_key=f"{key_of(city)}@example.com",
                city=city,
                city_key=key_of(city),
                latitude=latitude,
                longitude=longitude,
                shows_place=True,
            )
            for city, (latitude, longitude) in (("Jakarta", JAKARTA), ("Bandung", BANDUNG))
        ]
        session.add_all(shops)
        session.flush()
        rows = [
            Product(
                supplier_id=shops[shop].id,
                name=name,
                category=category,
                category_key=category,
                price=price,
                tags=tags,
                on_hand=2,
            )
            for name, category, price, tags, shop in goods
        ]
        session.add_all(rows)
        session.flush()
        market.search.refresh(session, [row.id for row in rows])


def names(answer: httpx2.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [product["name"] for product in answer.json()]


def test_the_documented_search(client: httpx2.Client) -> None:
    answer = client.get(f"{SEARCH}?q=laptop+gaming&city=Jakarta&user_lat=-6.2088&user_lon=106.8456&max_price=15000000")
    [product] = answer.json()
    expected = {
        "name": "Laptop ASUS ROG gaming",
        "price": 11500000,
        "supplier_name": "Toko Jakarta",
        "distance_km": 0.0,
    }
    assert product.items() >= expected.items()
    assert product["fulfilment"]["suggestion"] == "pickup" and "diambil" in product["fulfilment"]["reason"]


def test_the_documented_list(client: httpx2.Client) -> None:
    query = "?category=laptop&min_price=5000000&max_price=20000000&available_only=true"
    answer = client.get(LIST + query)
    assert names(answer) == ["Laptop ASUS ROG gaming", "Laptop kantor"]
    assert answer.headers["x-total-count"] == "2" and "x-total-count-is" not in answer.headers
    assert all(product["distance_km"] is None and product["fulfilment"] is None for product in answer.json())


def test_the_default_sort_is_relevance_with_nearer_rings_first_among_products_that_match_alike(
    client: httpx2.Client,
) -> None:
    bandung = {"user_lat": BANDUNG[0], "user_lon": BANDUNG[1]}
    assert names(client.get(SEARCH, params={"q": "laptop", **bandung})) == ["Laptop kantor", "Laptop ASUS ROG gaming"]
    in_jakarta = names(client.get(SEARCH, params={"q": "laptop", **NEAR_JAKARTA}))
    assert in_jakarta == ["Laptop ASUS ROG gaming", "Laptop kantor"]
    assert names(client.get(SEARCH, params={"q": "gaming laptop"})) == ["Laptop ASUS ROG gaming"]
    by_price = client.get(SEARCH, params={"q": "laptop", **NEAR_JAKARTA, "sort": "price_asc"})
    assert names(by_price) == ["Laptop kantor", "Laptop ASUS ROG gaming"]
    assert [product["distance_km"] for product in by_price.json()] == [116.3, 0.0]


def test_the_reason_for_a_delivery_is_in_the_language_of_the_buyer(client: httpx2.Client) -> None:
    answer = client.get(SEARCH, params={"q": "mouse", **NEAR_JAKARTA}, headers={"accept-language": "en"})
    assert answer.json()[0]["fulfilment"]["reason"].startswith("It is 116.3 km away")


def test_headers_report_a_corrected_and_a_relaxed_query(client: httpx2.Client) -> None:
    corrected = client.get(SEARCH, params={"q": "lapotp gamming"})
    assert names(corrected) == ["Laptop ASUS ROG gaming"]
    assert (
        unquote(corrected.headers["x-corrected-query"]) == "laptop gaming"
        and "x-relaxed-query" not in corrected.headers
    )
    relaxed = client.get(SEARCH, params={"q": "mouse zzyzx"})
    assert names(relaxed) == ["Mouse"] and relaxed.headers["x-relaxed-query"] == "true"


@pytest.mark.parametrize(
    "path",
    [
        LIST + "?sort=price_desc",
        SEARCH + "?q=gaming",
        LIST,
        SEARCH + "?q=a&sort=newest",
        SEARCH + f"?q=laptop&user_lat={JAKARTA[0]}&user_lon={JAKARTA[1]}",
        SEARCH + f"?q=laptop+mouse+meja&user_lat={BANDUNG[0]}&user_lon={BANDUNG[1]}",
    ],
)
def test_following_the_link_header_lists_every_product_once(client: httpx2.Client, path: str) -> None:
    whole = names(client.get(path))
    seen, url = [], f"{path}{'&' if '?' in path else '?'}limit=1"
    while url:
        answer = client.get(url)
        seen += names(answer)
        url = answer.links.get("next", {}).get("url", "")
    assert seen == whole


def test_an_envelope_contains_what_the_headers_contain(client: httpx2.Client) -> None:
    page = client.get(SEARCH, params={"q": "gamming", "envelope": 1, "limit": 1, "facets": "category,price"}).json()
    assert [item["name"] for item in page["items"]] and page["corrected"] == "gaming"
    assert (page["total"], page["total_is_exact"], page["relaxed"]) == (2, True, False)
    assert page["facets"]["category"] == [
        {"value": "furniture", "label": "furniture", "count": 1},
        {"value": "laptop", "label": "laptop", "count": 1},
    ]
    assert page["facets"]["price"][0] == {"least": 500000, "most": 999999, "count": 1}
    rest = client.get(SEARCH, params={"q": "gamming", "envelope": 1, "cursor": page["next_cursor"]}).json()
    assert len(rest["items"]) == 1 and rest["next_cursor"] is None and rest["facets"] is None


def test_the_facets_route_counts_values(client: httpx2.Client) -> None:
    facets = client.get("/api/products/facets", params={"facets": "city", "category": "laptop"}).json()
    assert facets == {
        "city": [
            {"value": "bandung", "label": "Bandung", "count": 1},
            {"value": "jakarta", "label": "Jakarta", "count": 1},
        ]
    }
    assert set(client.get("/api/products/facets?q=laptop").json()) == {"category", "brand", "city", "price"}


@pytest.mark.parametrize(
    "query",
    [
        *("limit=0", "limit=-1", "limit=101", "limit=x", "skip=-1", "skip=10001", f"skip={2**70}", "skip=1&cursor=x"),
        *("user_lat=1", "user_lon=1", "user_lat=nan&user_lon=1", "user_lat=999&user_lon=1", "user_lat=1&user_lon=181"),
        *("user_lat=inf&user_lon=1", "radius_km=5", "user_lat=1&user_lon=1&radius_km=-1", "radius_km=nan"),
        *("user_lat=1&user_lon=1&radius_km=1e9", "min_price=2&max_price=1", "min_price=-1", "max_price=nan"),
        *("max_price=1e300", "min_rating=6", "min_rating=nan", "sort=best", "sort=distance", "condition=broken"),
        *(f"supplier_id={2**63}", "supplier_id=0", "city=", "city=%00", f"city={'x' * 101}", "category=%20"),
        *("available_only=perhaps", "envelope=2", f"cursor={'x' * 8001}", "brand=%E2%80%8B"),
    ],
)
def test_invalid_parameters_are_rejected(client: httpx2.Client, query: str) -> None:
    for path in (f"{LIST}?{query}", f"{SEARCH}?q=laptop&{query}"):
        answer = client.get(path)
        assert answer.status_code == 422 and answer.json()["detail"], path


@pytest.mark.parametrize(
    "query", ["", "q=", "q=%20%20", f"q={'x' * 2001}", "q=a&facets=colour&envelope=1", "q=a&facets=city"]
)
def test_an_empty_text_and_facets_without_an_envelope_are_rejected(client: httpx2.Client, query: str) -> None:
    assert client.get(f"{SEARCH}?{query}").status_code == 422


@pytest.mark.parametrize(
    "query", ["q=%00", "q=%22", "q=%25&city=%25", "q=%ED%A0%80", f"q={'x' * 500}", "q=*&brand='--"]
)
def test_a_text_without_matches_returns_an_empty_list(client: httpx2.Client, query: str) -> None:
    answer = client.get(f"{SEARCH}?{query}")
    assert (answer.status_code, answer.json(), answer.headers["x-total-count"]) == (200, [], "0")


@pytest.mark.parametrize("cursor", ["x", "%00", "AAAA", "💻"])
def test_an_invalid_cursor_is_a_400(client: httpx2.Client, cursor: str) -> None:
    answer = client.get(f"{LIST}?cursor={cursor}")
    assert (answer.status_code, answer.json()["detail"][:11]) == (400, "This cursor")


def test_a_cursor_is_valid_for_its_filters_only(client: httpx2.Client) -> None:
    cursor = client.get(f"{LIST}?limit=1&sort=newest&envelope=1").json()["next_cursor"]
    assert client.get(LIST, params={"cursor": cursor, "sort": "newest", "limit": 50}).status_code == 200
    for change in ({"sort": "rating"}, {"sort": "newest", "category": "laptop"}, {}):
        assert client.get(LIST, params={"cursor": cursor, **change}).status_code == 400


def test_a_text_that_is_typed_is_completed(client: httpx2.Client) -> None:
    answer = client.get("/api/products/suggest", params={"q": "lap"})
    assert answer.status_code == 200, answer.text
    suggested = {(one["kind"], one["text"].lower()): one for one in answer.json()}
    assert ("word", "laptop") in suggested and suggested["category", "laptop"]["category"] == "laptop"
    products = [one for one in answer.json() if one["kind"] == "product"]
    assert products and all(one["product_id"] for one in products)
    words = [one["text"] for one in client.get("/api/products/suggest", params={"q": "kipas lap"}).json()]
    assert "kipas laptop" in words, "what stands before the last word stays"
    assert client.get("/api/products/suggest", params={"q": "l"}).json() == []
    assert client.get("/api/products/suggest", params={"q": " "}).status_code == 422


def test_a_pasted_text_is_cut_and_the_answer_says_so(client: httpx2.Client) -> None:
    long = client.get(SEARCH, params={"q": "laptop gaming " + " ".join(f"kata{n}" for n in range(200))})
    assert long.headers["X-Cut-Query"] == "true" and names(long)[0].lower().startswith("laptop")
    assert "X-Cut-Query" not in client.get(SEARCH, params={"q": "laptop gaming"}).headers
    assert client.get(SEARCH, params={"q": "a" * 2001}).status_code == 422


def test_highlights_are_sent_when_they_are_asked_for(client: httpx2.Client) -> None:
    plain = client.get(f"{SEARCH}?q=gaming+laptop&sort=relevance").json()[0]
    lit = client.get(f"{SEARCH}?q=gaming+laptop&sort=relevance&highlight=1").json()[0]
    assert lit.pop("highlights") == {
        "name": [[0, 6], [16, 22]],
        "description": [],
        "brand": [],
        "category": [[0, 6]],
        "tags": [[0, 6]],
        "sku": [],
        "attributes": [],
        "snippet": None,
    }
    assert lit == plain and "highlights" not in plain
    page = client.get(f"{SEARCH}?q=mouse&highlight=1&envelope=1").json()
    assert page["items"][0]["highlights"]["name"] == [[0, 5]]
    only_a_price = client.get(f"{SEARCH}?q=di+bawah+1+juta&highlight=true").json()
    assert {tuple(one["highlights"]["name"]) for one in only_a_price} == {()}


@pytest.mark.parametrize(
    ("path", "parameters"),
    [
        (SEARCH, {"q": "mouse di malang"}),
        (SEARCH, {"q": "mouse", "city": "Kota Malang", "sort": "price_asc", **NEAR_JAKARTA}),
        (LIST, {"city": "malang", "category": "mouse"}),
    ],
)
def test_a_place_without_goods_says_so_and_offers_the_nearest(
    client: httpx2.Client, path: str, parameters: dict[str, str]
) -> None:
    answer = client.get(path, params=parameters)
    assert answer.json() == [] and answer.headers["X-Nothing-In-Place"] == "Malang"
    assert answer.headers["x-total-count"] == "0" and "link" not in answer.headers
    page = client.get(path, params={**parameters, "envelope": 1}).json()
    [mouse] = page["nearest"]["items"]
    assert page["items"] == [] and page["nearest"]["place"] == "Malang" and mouse["name"] == "Mouse"
    assert 560 < mouse["distance_km"] < 580, "from Bandung to the centre of Malang, wherever the buyer is"
    assert mouse["fulfilment"] is None


def test_the_nearest_are_few_and_within_the_other_filters(client: httpx2.Client) -> None:
    def around_surabaya(**filters: str | int) -> list[str]:
        page = client.get(LIST, params={"city": "Surabaya", "envelope": 1, **filters}).json()
        return [one["name"] for one in (page["nearest"] or {"items": []})["items"]]

    assert around_surabaya() == ["Laptop kantor", "Mouse", "Laptop ASUS ROG gaming", "Meja gaming"]
    assert around_surabaya(max_price=500_000) == ["Mouse"]
    assert (
        client.get(LIST, params={"city": "Greater Jakarta", "min_price": 100_000_000}).headers.get("X-Nothing-In-Place")
        is None
    ), "nothing anywhere has nothing to do with the place"


@pytest.mark.parametrize("city", ["Bandung", "Atlantis", "Toko"])
def test_nothing_is_said_of_places_with_goods_and_of_unknown_names(client: httpx2.Client, city: str) -> None:
    answer = client.get(SEARCH, params={"q": "mouse", "city": city, "envelope": 1})
    assert "X-Nothing-In-Place" not in answer.headers and answer.json()["nearest"] is None
    assert bool(answer.json()["items"]) == (city == "Bandung")


def test_a_province_and_a_name_of_several_places_have_a_centre_too(client: httpx2.Client) -> None:
    for city, place, least_km in (("East Java", "Jawa Timur", 500), ("jabodetabek", "jabodetabek", 80)):
        nearest = client.get(LIST, params={"city": city, "category": "mouse", "envelope": 1}).json()["nearest"]
        assert nearest["place"] == place
        assert least_km < nearest["items"][0]["distance_km"] < least_km + 100


@pytest.mark.parametrize("asked", [{"q": "mouse di Jawa Timur"}, {"q": "mouse", "province": "Jawa Timur"}])
def test_a_province_that_the_text_names_has_its_nearest_too(client: httpx2.Client, asked: dict[str, str]) -> None:
    nearest = client.get(SEARCH, params={**asked, "envelope": 1}).json()["nearest"]
    assert nearest["place"] == "Jawa Timur" and [one["name"] for one in nearest["items"]] == ["Mouse"]
