"""Filters by attributes over HTTP: `attr.ram_gb>=16`."""

import http.client
import json
from urllib.parse import unquote, urlsplit

import httpx2
import pytest

from tests.marketplace.market_server import MarketServer, new_product
from tis.marketplace.products.attribute_parameters import asked_value
from tis.marketplace.reading.attribute_values import attribute_value

GOODS = {
    "small": {"ram_gb": 8, "color": "Hitam"},
    "middle": {"RAM GB": 16.0, "color": "hitam  doff", "wifi": True},
    "large": {"ram_gb": "32 GB", "color": "Putih", "gpu": "RTX 4050"},
    "plain": {},
}


@pytest.fixture(scope="module")
def goods(server: MarketServer, anybody: httpx2.Client) -> httpx2.Client:
    shop = server.supplier()
    for name, attributes in GOODS.items():
        new_product(anybody, shop, name=f"Laptop {name}", attributes=attributes)
    return anybody


def names(answer: httpx2.Response) -> set[str]:
    assert answer.status_code == 200, answer.text
    assert "x-warnings" not in answer.headers
    return {product["name"].removeprefix("Laptop ") for product in answer.json()}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("attr.ram_gb>=16", {"middle", "large"}),
        ("attr.ram_gb<=16", {"small", "middle"}),
        ("attr.ram_gb>16", {"large"}),
        ("attr.ram_gb<16", {"small"}),
        ("attr.ram_gb%3E%3D16", {"middle", "large"}),
        ("attr.ram_gb%3E=16", {"middle", "large"}),
        ("attr.ram_gb%3E%3D=16", {"middle", "large"}),
        ("attr.ram_gb.gte=16", {"middle", "large"}),
        ("attr.ram_gb.gt=16", {"large"}),
        ("attr.ram_gb.lte=16", {"small", "middle"}),
        ("attr.ram_gb.lt=16", {"small"}),
        ("attr.ram_gb=16", {"middle"}),
        ("attr.ram_gb.eq=16.0", {"middle"}),
        ("attr.ram_gb=16+GB", {"middle"}),
        ("attr.RAM+GB=32", {"large"}),
        ("attr.ram_gb=8&attr.ram_gb=32", {"small", "large"}),
        ("attr.ram_gb>=8&attr.ram_gb<32", {"small", "middle"}),
        ("attr.ram_gb>=0.016tb", {"middle", "large"}),
        ("attr.color=HITAM", {"small"}),
        ("attr.color=hitam&attr.color=putih", {"small", "large"}),
        ("attr.color!=hitam", {"middle", "large", "plain"}),
        ("attr.color.ne=hitam", {"middle", "large", "plain"}),
        ("attr.color.ne=hitam&attr.color.ne=putih", {"middle", "plain"}),
        ("attr.color=hitam&attr.ram_gb=16", set()),
        ("attr.gpu=rtx4050", {"large"}),
        ("attr.wifi=true", {"middle"}),
        ("attr.wifi=1", set()),
        ("attr.color>=1", set()),
    ],
)
def test_lists_searches_and_facets_filter_by_attributes(goods: httpx2.Client, query: str, found: set[str]) -> None:
    assert names(goods.get(f"/api/products?{query}")) == found
    assert names(goods.get(f"/api/products/search?q=laptop&{query}")) == found
    counted = goods.get(f"/api/products/facets?facets=category&{query}")
    assert counted.json() == {"category": [{"value": "laptop", "label": "laptop", "count": len(found)}] * bool(found)}


def test_signs_may_be_sent_as_they_are(goods: httpx2.Client) -> None:
    """As curl does, which escapes nothing."""
    url = urlsplit(str(goods.base_url))
    connection = http.client.HTTPConnection(url.hostname or "", url.port)
    connection.request("GET", "/api/products?attr.ram_gb>=16")
    assert {product["name"] for product in json.load(connection.getresponse())} == {"Laptop middle", "Laptop large"}
    connection.close()


def test_pages_keep_the_filter_whatever_the_order_of_parameters(goods: httpx2.Client) -> None:
    first = goods.get("/api/products?attr.ram_gb.gte=8&attr.ram_gb.lt=64&limit=2")
    link = first.headers["link"].partition(">; ")[0].strip("<")
    cursor = httpx2.URL(link).params["cursor"]
    second = goods.get(f"/api/products?attr.ram_gb.lt=64&attr.ram_gb.gte=8&limit=2&cursor={cursor}")
    assert names(first) | names(goods.get(link)) == {"small", "middle", "large"}
    assert second.json() == goods.get(link).json()
    assert goods.get(f"/api/products?attr.ram_gb.gte=16&limit=2&cursor={cursor}").status_code == 400


def test_an_attribute_that_no_product_has_finds_nothing_and_is_named(goods: httpx2.Client) -> None:
    answer = goods.get("/api/products/search?q=laptop&attr.rram=16&attr.ram_gb.gte=8&attr.größe.gt=1")
    assert names(answer) == set() and unquote(answer.headers["x-unknown-attributes"]) == "grosse,rram"
    in_envelope = goods.get("/api/products?attr.rram=16&envelope=1").json()
    assert (in_envelope["items"], in_envelope["unknown_attributes"]) == ([], ["rram"])
    assert "x-unknown-attributes" not in goods.get("/api/products?attr.ram_gb=9").headers


@pytest.mark.parametrize(
    "query",
    [
        "attr.=16",
        "attr.",
        "attr.★=1",
        "attr.ram_gb",
        "attr.ram_gb=",
        "attr.ram_gb>=",
        "attr.ram_gb>=nan",
        "attr.ram_gb.gte=inf",
        "attr.ram_gb.gte=1e999",
        "attr.ram_gb=1e999",
        "attr.ram_gb.lt=-Infinity",
        "attr.ram_gb.gt=hitam",
        "attr.ram_gb>16=17",
        "attr.color!hitam",
        f"attr.{'a' * 101}=1",
        f"attr.color={'a' * 101}",
        "&".join(f"attr.a{number}=1" for number in range(11)),
        "&".join(f"attr.a.ne={number}" for number in range(11)),
        "&".join(f"attr.a={number}" for number in range(21)),
        "&".join(["attr.a.ne=1"] * 51),
    ],
)
def test_what_is_no_filter_is_refused_and_says_how_to_write_one(goods: httpx2.Client, query: str) -> None:
    for path in ("products?", "products/search?q=laptop&", "products/facets?"):
        answer = goods.get(f"/api/{path}{query}")
        assert answer.status_code == 422 and isinstance(answer.json()["detail"], str), answer.text


@pytest.mark.parametrize("text", ["%00", "%ud800", "%ED%A0%80", "%27%22%3B--", "%5C", "{}", "%25", "%F0%9F%98%80a"])
def test_any_text_may_be_a_name_or_a_value(goods: httpx2.Client, text: str) -> None:
    for query in (f"attr.color=a{text}", f"attr.a{text}=1", f"attr.a{text}.ne=b{text}", f"attr.a{text}>=1"):
        assert goods.get(f"/api/products?{query}").status_code == 200
    assert names(goods.get("/api/products?attr.ram_gb=NaN")) == set()


def test_facets_name_values_and_ranges_as_filters_take_them(goods: httpx2.Client) -> None:
    asked = "q=laptop&facets=category,attributes&attr.ram_gb%3E=16"
    facets = goods.get(f"/api/products/facets?{asked}").json()
    assert facets == goods.get(f"/api/products/search?envelope=1&{asked}").json()["facets"]
    ram = facets["attributes"][0]
    values = [{"value": str(one), "label": str(one), "count": 1} for one in (8, 16, 32)]
    expected = {"name": "ram_gb", "label": "RAM (GB)", "count": 3, "values": values, "least": 8, "most": 32}
    assert ram == {**expected, "ranges": None}
    assert [one["name"] for one in facets["attributes"]] == ["ram_gb", "color", "gpu", "wifi"]
    without = goods.get("/api/products/facets").json()
    assert "attributes" not in without


def test_a_change_of_an_attribute_is_found_at_once(server: MarketServer, anybody: httpx2.Client) -> None:
    product = new_product(anybody, server.supplier(), name="Kipas", attributes={"daun": 3})
    path = f"/api/products/{product['id']}"
    assert len(anybody.get("/api/products?attr.daun=3").json()) == 1
    anybody.put(path, json={"attributes": {"daun": 5, "wifi": False}})
    assert [len(anybody.get(f"/api/products?attr.daun={number}").json()) for number in (3, 5)] == [0, 1]
    assert len(anybody.get("/api/products?attr.wifi=false").json()) == 1
    anybody.delete(path)
    assert anybody.get("/api/products?attr.daun=5").json() == []
    anybody.post(f"{path}/restore")
    assert len(anybody.get("/api/products?attr.daun=5").json()) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ram", "16 GB"),
        ("gpu", "RTX 4050"),
        ("x", 1e15),
        ("x", 1e-7),
        ("x", 15.625),
        ("x", "Ｆｕｌｌ １２"),
        ("ram_gb", 0.5),
        ("x", True),
        ("x", "ﬁ " * 99),
    ],
)
def test_filtering_by_the_key_of_a_value_is_filtering_by_the_value(name: str, value: object) -> None:
    read = attribute_value(name, value)
    assert read is not None
    again = asked_value(name, read.key)
    assert again is not None and (again.key, again.number) == (read.key, read.number)


def test_a_filter_writes_numbers_as_json_does() -> None:
    assert asked_value("weight_kg", "1.500") == attribute_value("weight_kg", 1.5)
    assert asked_value("weight_kg", "1.500 g") == attribute_value("weight_kg", 1.5)
    assert asked_value("weight_kg", "1e999") is None
