"""Comparison of products."""

import httpx2
import pytest

from tests.marketplace.market_server import MarketServer, new_product


def test_products_are_compared_field_by_field(
    server: MarketServer, anybody: httpx2.Client, stranger: httpx2.Client
) -> None:
    near = server.supplier(shows_place=True)
    far = server.supplier(latitude=-6.9175, longitude=107.6191, city="Bandung", shows_place=True)
    one = new_product(anybody, near, price=200, attributes={"ram_gb": 16, "warna": "hitam"}, rating=4)
    other = new_product(anybody, far, price=100, attributes={"ram_gb": 8, "tas": True}, stock_quantity=5)
    ids = f"{one['id']},{other['id']}"
    answer = stranger.get(f"/api/products/compare?ids={ids}&user_lat=-6.2088&user_lon=106.8456").json()
    assert [product["id"] for product in answer["products"]] == [one["id"], other["id"]]
    rows = {row["field"]: row for row in answer["rows"]}
    assert rows["price"] == {"field": "price", "label": "Harga", "values": [200, 100], "best": 1}
    assert rows["distance_km"]["values"] == [0, 116.3] and rows["distance_km"]["best"] == 0
    assert rows["available_quantity"]["best"] is None  # both have five
    assert rows["rating"]["values"] == [4, None] and rows["rating"]["best"] is None
    assert rows["attributes.ram_gb"]["values"] == [16, 8]
    assert rows["attributes.tas"]["values"] == [None, True]
    assert rows["city"]["values"] == ["Jakarta", "Bandung"]
    assert answer["products"][0]["fulfilment"]["suggestion"] == "pickup"


def test_attributes_that_several_products_have_come_first_under_a_readable_name(
    server: MarketServer, anybody: httpx2.Client
) -> None:
    shop = server.supplier()
    attributes: list[dict[str, object]] = [
        {"a_only_here": 1, "ram_gb": 16, "layar_inci": 14},
        {"RAM GB": "8 GB", "warna": "hitam", "★": 1},
        {"Warna": "putih", "layar_inci": None, "★": 2},
    ]
    ids = [str(new_product(anybody, shop, attributes=one)["id"]) for one in attributes]
    rows = anybody.get("/api/products/compare", params={"ids": ",".join(ids)}).json()["rows"]
    own = [(row["field"], row["label"], row["values"]) for row in rows if row["field"].startswith("attributes.")]
    assert own == [
        ("attributes.ram_gb", "RAM (GB)", [16, "8 GB", None]),
        ("attributes.warna", "Warna", [None, "hitam", "putih"]),
        ("attributes.★", "★", [None, 1, 2]),
        ("attributes.a_only_here", "A only here", [1, None, None]),
        ("attributes.layar_inci", "Layar (inch)", [14, None, None]),
    ]
    assert all(row["best"] is None for row in rows if row["field"].startswith("attributes."))


def test_without_an_origin_there_is_no_distance_row(server: MarketServer, anybody: httpx2.Client) -> None:
    supplier = server.supplier()
    ids = ",".join(str(new_product(anybody, supplier)["id"]) for _ in range(3))
    headers = {"accept-language": "en"}
    rows = anybody.get("/api/products/compare", params={"ids": ids}, headers=headers).json()["rows"]
    assert "distance_km" not in {row["field"] for row in rows}
    assert {row["label"] for row in rows} >= {"Price", "Available", "Rating"}


def test_a_missing_product_is_named_in_the_error(server: MarketServer, anybody: httpx2.Client) -> None:
    supplier = server.supplier()
    kept, gone = new_product(anybody, supplier)["id"], new_product(anybody, supplier)["id"]
    anybody.delete(f"/api/products/{gone}")
    for missing in (gone, 4711, 2**63, 9_999_999_999_999_999_999):
        answer = anybody.get("/api/products/compare", params={"ids": f"{kept},{missing}"})
        assert (answer.status_code, answer.json()) == (404, {"detail": f"Product {missing} not found"})


@pytest.mark.parametrize("ids", ["1", "1,1", "", "1,", "a,b", "1,2;3", "-1,2", "\u0661,\u0662", "1," * 5000 + "1"])
def test_two_to_ten_products_are_compared(anybody: httpx2.Client, ids: str) -> None:
    assert anybody.get("/api/products/compare", params={"ids": ids}).status_code == 422
    assert anybody.get("/api/products/compare", params={"ids": "1,2,3,4,5,6,7,8,9,10,11"}).status_code == 422
