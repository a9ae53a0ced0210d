"""Reservations over HTTP."""

from typing import Any

import httpx2
import pytest

from tests.marketplace.shop import Shop


def reserve(client: httpx2.Client, product_id: int, quantity: int = 1, **said: Any) -> httpx2.Response:
    headers = said.pop("headers", {})
    return client.post(f"/api/products/{product_id}/reservations", json={"quantity": quantity, **said}, headers=headers)


def end(client: httpx2.Client, how: str, reservation_id: str, **headers: str) -> httpx2.Response:
    return client.post(f"/api/reservations/{reservation_id}/{how}", headers=headers)


def test_reserved_units_stay_on_hand_but_are_not_available(laptop: httpx2.Client, shop: Shop) -> None:
    product = shop.product(on_hand=5)
    answer = reserve(laptop, product, 2, seconds=60)
    assert answer.status_code == 200
    said = answer.json()
    assert (said["product_id"], said["quantity"], said["status"], said["available_quantity"]) == (product, 2, "held", 3)
    assert shop.stock_columns(product) == (5, 2)
    assert laptop.get(f"/api/reservations/{said['id']}").json() == said


def test_a_reservation_above_the_stock_is_refused(laptop: httpx2.Client, shop: Shop) -> None:
    product = shop.product(on_hand=5)
    reserve(laptop, product, 3)
    refused = reserve(laptop, product, 3)
    assert (refused.status_code, refused.json()) == (
        409,
        {"detail": "Only 2 left", "code": "insufficient_stock", "product_id": product, "left": 2},
    )
    assert reserve(laptop, product, 2).json()["available_quantity"] == 0
    assert shop.stock_columns(product) == (5, 5)


def test_hidden_products_cannot_be_reserved(laptop: httpx2.Client, shop: Shop) -> None:
    closed = shop.supplier(status="suspended")
    hidden = [shop.product(is_available=False), shop.product(supplier_id=closed), shop.product() + 10**6, 2**63 - 1]
    for product in hidden:
        answer = reserve(laptop, product)
        assert (answer.status_code, answer.json()) == (404, {"detail": "Product not found"})


@pytest.mark.parametrize(
    "said",
    [
        {"quantity": 0},
        {"quantity": -1},
        {"quantity": 10**6 + 1},
        {"quantity": 1.5},
        {"quantity": None},
        {"quantity": "many"},
        {},
        {"quantity": 1, "seconds": 0},
        {"quantity": 1, "seconds": 86_401},
    ],
)
def test_invalid_reservations_are_refused(laptop: httpx2.Client, said: dict[str, Any]) -> None:
    assert laptop.post("/api/products/1/reservations", json=said).status_code == 422


@pytest.mark.parametrize("path", [f"products/{2**63}/reservations", "products/0/reservations", "reservations/x/commit"])
def test_invalid_reservation_ids_are_refused(laptop: httpx2.Client, path: str) -> None:
    assert laptop.post(f"/api/{path}", json={"quantity": 1}).status_code == 422


def test_a_sale_reduces_the_stock_once(laptop: httpx2.Client, shop: Shop) -> None:
    product = shop.product(on_hand=5)
    held = reserve(laptop, product, 2).json()["id"]
    first, again = end(laptop, "commit", held), end(laptop, "commit", held)
    assert first.status_code == again.status_code == 200
    assert first.json() == again.json() and first.json()["status"] == "committed"
    assert shop.stock_columns(product) == shop.stock_ledger(product) == (3, 0)
    assert end(laptop, "release", held).status_code == 409
    assert first.json()["accepted_at"] == first.json()["ended_at"]


def test_released_units_are_available_once(laptop: httpx2.Client, shop: Shop) -> None:
    product = shop.product(on_hand=5)
    held, other = (reserve(laptop, product, 2).json()["id"] for _ in range(2))
    first, again = end(laptop, "release", held), end(laptop, "release", held)
    assert first.json() == again.json() and first.json()["status"] == "released"
    assert first.json()["available_quantity"] == 3 and shop.stock_columns(product) == (5, 2)
    late = end(laptop, "commit", held)
    assert (late.status_code, late.json()) == (409, {"detail": "This reservation was released."})
    assert end(laptop, "commit", other).status_code == 200


def test_a_sale_after_expiry_is_refused_and_the_units_are_available(laptop: httpx2.Client, shop: Shop) -> None:
    product = shop.product(on_hand=5)
    held = reserve(laptop, product, 2).json()["id"]
    shop.make_due(held)
    assert laptop.get(f"/api/reservations/{held}").json()["status"] == "expired"
    late = end(laptop, "commit", held)
    assert (late.status_code, late.json()) == (409, {"detail": "This reservation has expired."})
    assert shop.stock_columns(product) == shop.stock_ledger(product) == (5, 0)
    assert end(laptop, "release", held).json()["status"] == "expired"
    assert shop.stock_columns(product) == (5, 0)


def test_a_reservation_gets_the_units_of_expired_ones(laptop: httpx2.Client, shop: Shop) -> None:
    product = shop.product(on_hand=5)
    shop.make_due(reserve(laptop, product, 4).json()["id"])
    assert reserve(laptop, product, 5).status_code == 200
    assert shop.stock_columns(product) == (5, 5)


def test_reservations_are_listed_newest_first(laptop: httpx2.Client, shop: Shop) -> None:
    product = shop.product(on_hand=50)
    held = [reserve(laptop, product).json()["id"] for _ in range(4)]
    end(laptop, "commit", held[0])
    shop.make_due(held[1])
    first = laptop.get("/api/reservations", params={"status": "held", "limit": 1})
    later = reserve(laptop, product).json()["id"]
    page = laptop.get(first.links["next"]["url"])
    end(laptop, "release", later)
    assert [one["id"] for one in first.json() + page.json()] == [held[3], held[2]]
    assert int(page.headers["X-Total-Count"]) == int(first.headers["X-Total-Count"]) + 1
    statuses = {one["id"]: one["status"] for one in laptop.get("/api/reservations", params={"limit": 100}).json()}
    assert [statuses[one] for one in held] == ["committed", "expired", "held", "held"]
    expired = laptop.get("/api/reservations", params={"status": "expired"}).json()
    assert held[1] in {one["id"] for one in expired}
    for wrong in ({"limit": -1}, {"limit": 101}, {"before": "x"}, {"status": "lost"}):
        assert laptop.get("/api/reservations", params=wrong).status_code == 422


def test_the_ledger_lists_every_change_in_pages(laptop: httpx2.Client, shop: Shop) -> None:
    product, other = shop.product(on_hand=5), shop.product(on_hand=1)
    for _ in range(2):
        end(laptop, "commit", reserve(laptop, product).json()["id"])
    path: str | None = f"/api/suppliers/{shop.id}/stock-movements?limit=2&product_id={product}"
    lines = []
    while path:
        answer = laptop.get(path)
        lines += answer.json()
        path = answer.links["next"]["url"] if "next" in answer.links else None
    assert [(line["delta"], line["kind"]) for line in lines] == [(-1, "sold"), (-1, "sold"), (5, "initial")]
    full = laptop.get(f"/api/suppliers/{shop.id}/stock-movements?limit=3&product_id={product}")
    assert len(full.json()) == 3 and "next" not in full.links
    everything = laptop.get(f"/api/suppliers/{shop.id}/stock-movements").json()
    assert {line["product_id"] for line in everything} == {product, other}
    assert laptop.get("/api/suppliers/999999/stock-movements").status_code == 404


def test_a_reservation_is_visible_to_its_buyer_and_the_supplier_only(
    internet: httpx2.Client, strict_shop: Shop
) -> None:
    shop = strict_shop
    product = shop.product(on_hand=5)
    assert reserve(internet, product).status_code == 401
    buyer, other = (shop.auth_headers(f"user:{shop.user()}") for _ in range(2))
    seller, rival = shop.auth_headers(f"supplier:{shop.id}"), shop.auth_headers(f"supplier:{shop.supplier()}")
    held = reserve(internet, product, headers=buyer).json()["id"]
    for stranger in (other, rival):
        assert internet.get(f"/api/reservations/{held}", headers=stranger).status_code == 404
        assert end(internet, "commit", held, **stranger).status_code == 404
        assert end(internet, "release", held, **stranger).status_code == 404
        assert internet.get("/api/reservations", headers=stranger).json() == []
        assert internet.get("/api/reservations", params={"before": held}, headers=stranger).status_code == 404
    assert internet.get(f"/api/reservations/{held}").status_code == 401
    assert internet.get("/api/reservations").status_code == 401
    assert [one["id"] for one in internet.get("/api/reservations", headers=buyer).json()] == [held]
    assert internet.get(f"/api/reservations/{held}", headers=seller).status_code == 200
    assert end(internet, "release", held, **seller).json()["status"] == "released"


def test_only_the_supplier_commits_a_reservation(internet: httpx2.Client, strict_shop: Shop) -> None:
    shop = strict_shop
    product, buyer = shop.product(on_hand=9), shop.auth_headers(f"user:{shop.user()}")
    accounts = f"supplier:{shop.id}", f"user:{shop.editor()}", f"user:{shop.user(role='admin')}"
    for seller in map(shop.auth_headers, accounts):
        held = reserve(internet, product, headers=buyer).json()["id"]
        refused = end(internet, "commit", held, **buyer)
        assert refused.status_code == 403 and refused.json()["detail"].startswith("Only the shop sells what is held")
        assert internet.get(f"/api/reservations/{held}", headers=buyer).json()["status"] == "held"
        sold = end(internet, "commit", held, **seller)
        assert (sold.status_code, sold.json()["status"]) == (200, "committed")
    assert shop.stock_columns(product) == shop.stock_ledger(product) == (6, 0)
    mine = reserve(internet, product, headers=buyer).json()["id"]
    assert end(internet, "release", mine, **buyer).json()["status"] == "released"


def test_a_supplier_cannot_commit_its_own_purchase_elsewhere(internet: httpx2.Client, strict_shop: Shop) -> None:
    shop = strict_shop
    product, rival = shop.product(on_hand=1), shop.auth_headers(f"supplier:{shop.supplier()}")
    held = reserve(internet, product, headers=rival).json()["id"]
    assert end(internet, "commit", held, **rival).status_code == 403


def test_in_the_open_mode_a_buyer_with_a_token_is_a_buyer(laptop: httpx2.Client, shop: Shop) -> None:
    product, buyer = shop.product(on_hand=1), shop.auth_headers(f"user:{shop.user()}")
    held = reserve(laptop, product, headers=buyer).json()["id"]
    assert end(laptop, "commit", held, **buyer).status_code == 403
    assert end(laptop, "commit", held).json()["status"] == "committed"


def test_only_members_read_the_ledger(internet: httpx2.Client, strict_shop: Shop) -> None:
    shop = strict_shop
    shop.product()
    path = f"/api/suppliers/{shop.id}/stock-movements"
    admin, user = shop.auth_headers(f"user:{shop.user(role='admin')}"), shop.auth_headers(f"user:{shop.user()}")
    answers = [
        internet.get(path, headers=who).status_code for who in (shop.auth_headers(f"supplier:{shop.id}"), admin, user)
    ]
    assert answers == [200, 200, 403] and internet.get(path).status_code == 401


def test_a_full_last_page_has_no_next_link(internet: httpx2.Client, strict_shop: Shop) -> None:
    product, buyer = strict_shop.product(on_hand=5), strict_shop.auth_headers(f"user:{strict_shop.user()}")
    held = [reserve(internet, product, headers=buyer).json()["id"] for _ in range(4)]
    first = internet.get("/api/reservations?limit=2", headers=buyer)
    last = internet.get(first.links["next"]["url"], headers=buyer)
    assert [one["id"] for one in first.json() + last.json()] == held[::-1] and "next" not in last.links


def test_a_repeated_request_reserves_once(laptop: httpx2.Client, shop: Shop) -> None:
    product = shop.product(on_hand=5)
    first, again = (reserve(laptop, product, 2, headers={"Idempotency-Key": f"held-{product}"}) for _ in range(2))
    assert first.json() == again.json() and again.headers["Idempotent-Replayed"] == "true"
    assert shop.stock_columns(product) == (5, 2)


def test_reservations_do_not_change_the_version_of_a_product(laptop: httpx2.Client, shop: Shop) -> None:
    product = shop.product(on_hand=5)
    seen = laptop.get(f"/api/products/{product}").headers["ETag"]
    end(laptop, "commit", reserve(laptop, product, 2).json()["id"])
    answer = laptop.put(f"/api/products/{product}", json={"price": 1000}, headers={"If-Match": seen})
    assert answer.status_code == 200 and shop.stock_columns(product) == (3, 0)


def test_a_fully_reserved_product_is_not_found_until_released(laptop: httpx2.Client, shop: Shop) -> None:
    category = f"held-{shop.id}"
    form = {"name": "Kipas", "price": 1000, "stock_quantity": 2, "category": category}
    product = laptop.post(f"/api/suppliers/{shop.id}/products", json=form).json()["id"]

    def found() -> list[int]:
        return [one["id"] for one in laptop.get("/api/products", params={"category": category}).json()]

    assert found() == [product]
    held = reserve(laptop, product, 2).json()["id"]
    assert found() == []
    end(laptop, "release", held)
    assert found() == [product]
    end(laptop, "commit", reserve(laptop, product, 2).json()["id"])
    assert found() == []
