"""Distances count from the nearest place that has the goods, in lists, filters and details."""

from typing import Any

import httpx2
import pytest

from tests.marketplace.branches.places import SpreadShop, add_branch
from tests.marketplace.shop import Shop

BANDUNG = "user_lat=-6.9&user_lon=107.6"
JAKARTA = "user_lat=-6.2&user_lon=106.8"


@pytest.fixture
def till(internet: httpx2.Client, strict_shop: Shop) -> SpreadShop:
    return SpreadShop(internet, strict_shop)


def put(till: SpreadShop, name: str, own: int) -> int:
    body = {"name": name, "price": 1000, "stock_quantity": own, "category": "laptop"}
    made = till.client.post(f"/api/suppliers/{till.shop.id}/products", json=body, headers=till.seller)
    return int(made.json()["id"])


def found(till: SpreadShop, query: str) -> dict[int, dict[str, Any]]:
    """Goods of the shop, in the order of the list."""
    path = "/api/products/search" if "q=" in query else "/api/products"
    answer = till.client.get(f"{path}?supplier_id={till.shop.id}&{query}")
    assert answer.status_code == 200, answer.text
    return {one["id"]: one for one in answer.json()}


def test_the_nearest_place_that_has_it_counts_and_is_named(till: SpreadShop) -> None:
    branch, product = add_branch(till.shop), put(till, "Laptop Merapi", 3)
    till.transfer(product, 1, 0, branch)
    [seen] = found(till, f"q=merapi&{BANDUNG}").values()
    assert (seen["distance_km"], seen["place"]) == (
        0.0,
        {"branch_id": branch, "name": "Toko Kemang", "city": "Bandung"},
    )
    [seen] = found(till, f"q=merapi&{JAKARTA}").values()
    assert seen["distance_km"] == 0.0 and seen["place"]["branch_id"] == 0
    till.hold(product, 1, branch_id=branch)
    [seen] = found(till, f"q=merapi&{BANDUNG}").values()
    assert seen["distance_km"] > 100 and seen["place"]["branch_id"] == 0


def test_sold_out_goods_count_from_the_nearest_place(till: SpreadShop) -> None:
    branch, product = add_branch(till.shop), put(till, "Laptop Semeru", 0)
    till.correct(product, 1, branch)
    till.hold(product)
    [seen] = found(till, f"q=semeru&available_only=false&{BANDUNG}").values()
    assert seen["distance_km"] == 0.0
    [seen] = found(till, f"q=semeru&available_only=false&{JAKARTA}").values()
    assert seen["distance_km"] == 0.0


@pytest.mark.parametrize("text", ["", "q=laptop&"])
def test_filters_and_orders_by_distance_know_branches(till: SpreadShop, text: str) -> None:
    branch = add_branch(till.shop)
    here, there = put(till, "Laptop Jauh", 2), put(till, "Laptop Dekat", 2)
    till.transfer(there, 1, 0, branch)
    assert list(found(till, f"{text}{BANDUNG}&radius_km=20")) == [there]
    assert list(found(till, f"{text}{BANDUNG}&sort=distance")) == [there, here]
    assert list(found(till, f"{text}{BANDUNG}&sort=distance&radius_km=500")) == [there, here]
    path = "/api/products/search" if text else "/api/products"
    everywhere = till.client.get(f"{path}?{text}{BANDUNG}&radius_km=20&limit=100").json()
    assert there in [one["id"] for one in everywhere] and here not in [one["id"] for one in everywhere]
    assert set(found(till, f"{text}{JAKARTA}&radius_km=20")) == {here, there}


def test_a_product_lists_its_places_nearest_first(till: SpreadShop) -> None:
    branch, product = add_branch(till.shop), put(till, "Laptop Bromo", 3)
    till.transfer(product, 1, 0, branch)
    places = till.client.get(f"/api/products/{product}?{BANDUNG}").json()["places"]
    assert [(one["branch_id"], one["available_quantity"]) for one in places] == [(branch, 1), (0, 2)]
    assert places[0]["distance_km"] == 0.0 and places[1]["distance_km"] > 100


def test_a_place_that_moves_takes_its_goods_along(till: SpreadShop) -> None:
    branch, product = add_branch(till.shop), put(till, "Laptop Kelud", 2)
    till.transfer(product, 2, 0, branch)
    assert list(found(till, f"q=kelud&{BANDUNG}&radius_km=20")) == [product]
    till.change(branch, latitude=-7.8, longitude=110.4)
    assert found(till, f"q=kelud&{BANDUNG}&radius_km=20") == {}
    assert list(found(till, "q=kelud&user_lat=-7.8&user_lon=110.4&radius_km=20")) == [product]
