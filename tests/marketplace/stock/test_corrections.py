"""Corrections of the stock with a reason, the running stock of the ledger, and what a shop says when it refuses."""

from functools import partial
from typing import Any

import httpx2

from tests.marketplace.accounts import all_at_once
from tests.marketplace.reviews.test_verified_reviews import user
from tests.marketplace.shop import Shop
from tests.marketplace.stock.test_reservations import end, reserve


def member(shop: Shop) -> dict[str, str]:
    return shop.auth_headers(f"user:{shop.editor()}")


def correct(client: httpx2.Client, product: int, delta: int, who: dict[str, str], **headers: str) -> httpx2.Response:
    body = {"delta": delta, "reason": "Dua rusak"}
    return client.post(f"/api/products/{product}/stock-corrections", json=body, headers={**who, **headers})


def ledger(client: httpx2.Client, shop: Shop, who: dict[str, str], query: str = "") -> list[dict[str, Any]]:
    answer = client.get(f"/api/suppliers/{shop.id}/stock-movements{query}", headers=who)
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, Any]] = answer.json()
    return rows


def test_a_correction_counts_and_says_why(internet: httpx2.Client, strict_shop: Shop) -> None:
    product, clerk = strict_shop.product(on_hand=5, name="Kipas"), member(strict_shop)
    assert correct(internet, product, -2, clerk).json()["on_hand"] == 3
    assert internet.get(f"/api/products/{product}").json()["stock_quantity"] == 3
    newest = ledger(internet, strict_shop, clerk)[0]
    shown = {name: newest[name] for name in ("product_name", "delta", "on_hand", "kind", "reason")}
    expected = {"product_name": "Kipas", "delta": -2, "on_hand": 3, "kind": "correction", "reason": "Dua rusak"}
    assert shown == expected


def test_two_corrections_at_once_both_count(internet: httpx2.Client, strict_shop: Shop) -> None:
    product, clerk = strict_shop.product(on_hand=9), member(strict_shop)
    answers = all_at_once(internet, *[partial(correct, product=product, delta=-1, who=clerk) for _ in range(4)])
    assert [one.status_code for one in answers] == [200] * 4
    assert strict_shop.stock_columns(product) == strict_shop.stock_ledger(product) == (5, 0)
    assert [one["on_hand"] for one in ledger(internet, strict_shop, clerk)[:4]] == [5, 6, 7, 8]


def test_a_repeated_correction_counts_once(internet: httpx2.Client, strict_shop: Shop) -> None:
    product, clerk = strict_shop.product(on_hand=5), member(strict_shop)
    for _ in range(2):
        assert correct(internet, product, 3, clerk, **{"Idempotency-Key": "till-1-42"}).json()["on_hand"] == 8


def test_reserved_units_cannot_be_taken_away(internet: httpx2.Client, strict_shop: Shop) -> None:
    product, clerk = strict_shop.product(on_hand=3), member(strict_shop)
    reserve(internet, product, headers=user(strict_shop))
    refused = correct(internet, product, -3, clerk)
    assert refused.status_code == 409 and "Only 2 of 3 units are not reserved" in refused.json()["detail"]
    assert strict_shop.stock_columns(product) == (3, 1)


def test_a_correction_needs_a_number_and_a_reason(internet: httpx2.Client, strict_shop: Shop) -> None:
    product, clerk = strict_shop.product(), member(strict_shop)
    path = f"/api/products/{product}/stock-corrections"
    for body in ({"delta": 0, "reason": "x"}, {"delta": 1}, {"delta": 1, "reason": " "}, {"delta": 1.5, "reason": "x"}):
        assert internet.post(path, json=body, headers=clerk).status_code == 422, body
    assert correct(internet, product, 1, user(strict_shop)).status_code == 403


def test_the_ledger_says_what_was_left_after_each_movement(internet: httpx2.Client, strict_shop: Shop) -> None:
    clerk = member(strict_shop)
    made = internet.post(
        f"/api/suppliers/{strict_shop.id}/products",
        json={"name": "Lampu", "price": 1000, "stock_quantity": 7, "category": "lampu"},
        headers=clerk,
    ).json()
    held = reserve(internet, made["id"], headers=user(strict_shop)).json()["id"]
    end(internet, "commit", held, **clerk)
    internet.put(f"/api/products/{made['id']}", json={"stock_quantity": 20}, headers=clerk)
    correct(internet, made["id"], -1, clerk)
    rows = ledger(internet, strict_shop, clerk, f"?product_id={made['id']}")
    assert [(one["kind"], one["delta"], one["on_hand"]) for one in rows] == [
        ("correction", -1, 19),
        ("set", 14, 20),
        ("sold", -1, 6),
        ("initial", 7, 7),
    ]
    assert [one["id"] for one in ledger(internet, strict_shop, clerk, "?kind=sold")] == [rows[2]["id"]]
    assert internet.get(f"/api/suppliers/{strict_shop.id}/stock-movements?kind=x", headers=clerk).status_code == 422


def test_the_buyer_reads_why_the_shop_refused(internet: httpx2.Client, strict_shop: Shop) -> None:
    product, buyer, clerk = strict_shop.product(), user(strict_shop), member(strict_shop)
    held = reserve(internet, product, headers=buyer).json()["id"]
    path = f"/api/reservations/{held}"
    refused = internet.post(f"{path}/refuse", json={"reason": "Yang terakhir rusak."}, headers=clerk)
    assert refused.status_code == 200, refused.text
    seen = internet.get(path, headers=buyer).json()
    assert (seen["status"], seen["refusal_reason"]) == ("refused", "Yang terakhir rusak.")
    silent = reserve(internet, product, headers=buyer).json()["id"]
    internet.post(f"/api/reservations/{silent}/refuse", headers=clerk)
    assert internet.get(f"/api/reservations/{silent}", headers=buyer).json()["refusal_reason"] is None
