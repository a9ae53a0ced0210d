"""The goods of a shop in a list for its members, filtered, sorted and in pages."""

from typing import Any

import httpx2
import pytest

from tests.marketplace.shop import Shop


def goods_of(client: httpx2.Client, shop: int, **asked: Any) -> list[str]:
    answer = client.get(f"/api/suppliers/{shop}/products", params=asked)
    assert answer.status_code == 200, answer.text
    return [one["name"] for one in answer.json()]


def pages_of(client: httpx2.Client, path: str) -> list[list[str]]:
    pages = []
    while True:
        answer = client.get(path)
        assert answer.status_code == 200, answer.text
        pages.append([one["name"] for one in answer.json()])
        if "link" not in answer.headers:
            return pages
        path = answer.headers["link"].partition("<")[2].partition(">")[0]


@pytest.fixture
def stocked(shop: Shop) -> Shop:
    shop.product(5, name="Laptop Rinjani", price=9_000_000, sku="RJ-15", brand="Rinjani")
    shop.product(0, name="Mouse 50% off", price=99_000, category="mouse", category_key="mouse")
    shop.product(2, name="Laptop Merapi", price=7_000_000, condition="used", is_available=False)
    return shop


def test_members_see_all_goods_also_those_that_are_not_on_sale(laptop: httpx2.Client, stocked: Shop) -> None:
    other = stocked.supplier()
    stocked.product(name="Of another shop", supplier_id=other)
    gone = stocked.product(name="Deleted")
    assert laptop.delete(f"/api/products/{gone}").status_code == 200
    answer = laptop.get(f"/api/suppliers/{stocked.id}/products")
    assert [one["name"] for one in answer.json()] == ["Laptop Merapi", "Mouse 50% off", "Laptop Rinjani"]
    assert answer.headers["x-total-count"] == "3" and "link" not in answer.headers
    first = answer.json()[0]
    assert (first["is_available"], first["stock_quantity"], first["version"], first["picture"]) == (False, 2, 1, None)


@pytest.mark.parametrize(
    "asked,found",
    [
        ({"q": "laptop rj-1"}, ["Laptop Rinjani"]),
        ({"q": "RINJANI"}, ["Laptop Rinjani"]),
        ({"q": "50%"}, ["Mouse 50% off"]),
        ({"q": "%"}, ["Mouse 50% off"]),
        ({"q": "_"}, []),
        ({"category": "Mouse"}, ["Mouse 50% off"]),
        ({"condition": "used"}, ["Laptop Merapi"]),
        ({"is_available": "false"}, ["Laptop Merapi"]),
        ({"is_available": "true", "max_stock": "0"}, ["Mouse 50% off"]),
        ({"sort": "name"}, ["Laptop Merapi", "Laptop Rinjani", "Mouse 50% off"]),
        ({"sort": "price_asc"}, ["Mouse 50% off", "Laptop Merapi", "Laptop Rinjani"]),
        ({"sort": "stock_desc"}, ["Laptop Rinjani", "Laptop Merapi", "Mouse 50% off"]),
    ],
)
def test_goods_are_filtered_and_sorted(
    laptop: httpx2.Client, stocked: Shop, asked: dict[str, str], found: list[str]
) -> None:
    assert goods_of(laptop, stocked.id, **asked) == found


@pytest.mark.parametrize("sort", ["newest", "updated", "name", "price_asc", "price_desc", "stock_asc", "stock_desc"])
def test_pages_have_each_product_once_in_every_order(laptop: httpx2.Client, shop: Shop, sort: str) -> None:
    """Many have the same price, stock and name: the id decides."""
    for number in range(7):
        shop.product(number % 2, name=f"Tas {number // 3}", price=1000 + number % 3)
    path = f"/api/suppliers/{shop.id}/products?q=tas&sort={sort}"
    pages = pages_of(laptop, f"{path}&limit=2")
    assert [len(page) for page in pages] == [2, 2, 2, 1]
    assert sum(pages, []) == [one["name"] for one in laptop.get(path).json()]


def test_a_cursor_is_refused_for_another_order_or_shop(laptop: httpx2.Client, stocked: Shop) -> None:
    answer = laptop.get(f"/api/suppliers/{stocked.id}/products?limit=1&sort=name")
    following = answer.headers["link"].partition("<")[2].partition(">")[0]
    assert laptop.get(following).status_code == 200
    for changed in (
        following.replace("sort=name", "sort=price_asc"),
        following.replace(f"/{stocked.id}/", f"/{stocked.supplier()}/"),
        following[:-2],
    ):
        assert laptop.get(changed).status_code == 400, changed


def test_strangers_do_not_see_the_list(internet: httpx2.Client, strict_shop: Shop) -> None:
    path = f"/api/suppliers/{strict_shop.id}/products"
    assert internet.get(path).status_code == 401
    other = strict_shop.auth_headers(f"supplier:{strict_shop.supplier()}")
    assert internet.get(path, headers=other).status_code == 403
    assert internet.get(path, headers=strict_shop.auth_headers(f"user:{strict_shop.editor()}")).json() == []
