"""Many products of a shop are changed in one request, all or none."""

from typing import Any

import httpx2
from sqlalchemy import select

from tests.marketplace.shop import Shop
from tis.marketplace.products.bulk_changes import MAX_PRODUCTS
from tis.marketplace.tables import AuditEntry, PriceChange


def send(client: httpx2.Client, shop: int, *products: dict[str, Any], **more: Any) -> httpx2.Response:
    return client.post(f"/api/suppliers/{shop}/products/bulk", json={"products": list(products)}, **more)


def product_at(client: httpx2.Client, product_id: int) -> dict[str, Any]:
    read: dict[str, Any] = client.get(f"/api/products/{product_id}").json()
    return read


def test_many_products_change_at_once_and_can_be_changed_back(laptop: httpx2.Client, shop: Shop) -> None:
    first, second, third = shop.product(5, price=1000), shop.product(3, price=2000), shop.product(1, price=3000)
    answer = send(
        laptop,
        shop.id,
        {"id": second, "price": 2200, "stock_by": -2},
        {"id": first, "version": 1, "price": 1100, "is_available": False},
        {"id": third, "price": 3000},
    )
    assert answer.status_code == 200, answer.text
    report = answer.json()
    assert (report["changed"], report["unchanged"], report["errors"]) == (2, 1, [])
    assert report["products"] == [
        {"id": first, "version": 2, "changes": {"is_available": [True, False], "price": [1000, 1100]}},
        {"id": second, "version": 2, "changes": {"stock_quantity": [3, 1], "price": [2000, 2200]}},
    ]
    changed = product_at(laptop, first)
    assert (changed["price"], changed["is_available"], changed["version"]) == (1100, False, 2)
    assert product_at(laptop, third)["version"] == 1
    assert shop.stock_ledger(second) == shop.stock_columns(second) == (1, 0)
    with shop.market.reading() as session:
        prices = select(PriceChange.price).where(PriceChange.product_id == second)
        assert list(session.scalars(prices)) == [2200]
        noted = session.scalars(select(AuditEntry).where(AuditEntry.entity_id == str(second))).all()
    assert noted[-1].changes == {"price": [2000, 2200], "stock_quantity": [3, 1]}

    back = send(
        laptop,
        shop.id,
        {"id": first, "version": 2, "price": 1000, "is_available": True},
        {"id": second, "version": 2, "price": 2000, "stock_by": 2},
    )
    assert back.json()["changed"] == 2 and product_at(laptop, second)["stock_quantity"] == 3


def test_one_wrong_product_changes_none(laptop: httpx2.Client, shop: Shop) -> None:
    good, changed, held, foreign = (shop.product(5) for _ in range(4))
    foreign = shop.product(supplier_id=shop.supplier())
    deleted = shop.product()
    laptop.delete(f"/api/products/{deleted}")
    laptop.put(f"/api/products/{changed}", json={"price": 1})
    laptop.post(f"/api/products/{held}/reservations", json={"quantity": 4})
    answer = send(
        laptop,
        shop.id,
        {"id": good, "price": 1},
        {"id": changed, "version": 1, "price": 2},
        {"id": held, "stock_quantity": 3},
        {"id": foreign, "price": 1},
        {"id": deleted, "price": 1},
        {"id": good, "price": 2},
    )
    assert answer.status_code == 409 and answer.json()["detail"] == "Nothing was changed. Wrong products: 5."
    assert [(one["id"], one["field"]) for one in answer.json()["errors"]] == [
        (changed, "version"),
        (held, "stock_quantity"),
        (foreign, "id"),
        (deleted, "id"),
        (good, "id"),
    ]
    assert "version 2" in answer.json()["errors"][0]["message"]
    assert "4, the reserved units" in answer.json()["errors"][1]["message"]
    assert product_at(laptop, good)["version"] == 1


def test_units_more_or_fewer_are_added_to_what_is_there_at_that_moment(laptop: httpx2.Client, shop: Shop) -> None:
    """A sale changes no version: what was sold since the page was read stays sold."""
    product = shop.product(10)
    held = laptop.post(f"/api/products/{product}/reservations", json={"quantity": 3}).json()["id"]
    laptop.post(f"/api/reservations/{held}/commit").raise_for_status()
    report = send(laptop, shop.id, {"id": product, "version": 1, "stock_by": 5}).json()
    assert report["products"][0]["changes"] == {"stock_quantity": [7, 12]}
    refused = send(laptop, shop.id, {"id": product, "stock_by": -13})
    assert refused.status_code == 409 and refused.json()["errors"][0]["message"] == "must not be below 0"


def test_a_body_that_is_wrong_is_refused_before_anything_is_read(laptop: httpx2.Client, shop: Shop) -> None:
    product = shop.product()
    for wrong in (
        {"id": product, "price": 0},
        {"id": product, "price": None},
        {"id": product, "name": "Other"},
        {"id": product, "stock_quantity": 1, "stock_by": 1},
    ):
        assert send(laptop, shop.id, wrong).status_code == 422, wrong
    assert send(laptop, shop.id).status_code == 422
    assert send(laptop, shop.id, *[{"id": 1}] * (MAX_PRODUCTS + 1)).status_code == 422


def test_the_largest_change_fits_into_a_body(laptop: httpx2.Client, shop: Shop) -> None:
    product = shop.product()
    most = [
        {"id": 10**15 + number, "version": 1000, "price": 10**12, "stock_by": -1000}
        for number in range(MAX_PRODUCTS - 1)
    ]
    answer = send(laptop, shop.id, {"id": product, "price": 1}, *most)
    assert answer.status_code == 409 and len(answer.json()["errors"]) == MAX_PRODUCTS - 1


def test_the_same_request_again_changes_nothing_twice(laptop: httpx2.Client, shop: Shop) -> None:
    product = shop.product(5)
    key = {"Idempotency-Key": f"bulk-{product}"}
    first = send(laptop, shop.id, {"id": product, "stock_by": 1}, headers=key)
    again = send(laptop, shop.id, {"id": product, "stock_by": 1}, headers=key)
    assert again.json() == first.json() and again.headers["idempotent-replayed"] == "true"
    assert shop.stock_columns(product) == (6, 0)


def test_only_members_of_the_shop_change_its_goods(internet: httpx2.Client, strict_shop: Shop) -> None:
    product = strict_shop.product()
    assert send(internet, strict_shop.id, {"id": product, "price": 1}).status_code == 401
    other = strict_shop.auth_headers(f"supplier:{strict_shop.supplier()}")
    assert send(internet, strict_shop.id, {"id": product, "price": 1}, headers=other).status_code == 403
    editor = strict_shop.auth_headers(f"user:{strict_shop.editor()}")
    assert send(internet, strict_shop.id, {"id": product, "price": 1}, headers=editor).json()["changed"] == 1
