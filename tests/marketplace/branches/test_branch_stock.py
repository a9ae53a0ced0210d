"""Units at several places of a shop: what is held, sold, given back and moved, and from where."""

from typing import Any

import httpx2
import pytest
from sqlalchemy import update

from tests.marketplace.branches.places import SpreadShop, add_branch, stock
from tests.marketplace.orders.ordering import PICKUP, made
from tests.marketplace.shop import Shop
from tis.marketplace.tables import Branch

NEAR_BRANCH = {"latitude": -6.9, "longitude": 107.6}
NEAR_OWN = {"latitude": -6.2, "longitude": 106.8}


@pytest.fixture
def till(internet: httpx2.Client, strict_shop: Shop) -> SpreadShop:
    return SpreadShop(internet, strict_shop)


def spread(till: SpreadShop, own: int, there: int) -> tuple[int, int]:
    """A product, and a branch with some of it."""
    branch, product = add_branch(till.shop), till.shop.product(on_hand=own)
    if there:
        assert till.correct(product, there, branch).status_code == 200
    return product, branch


def test_a_hold_takes_from_the_place_that_the_buyer_names(till: SpreadShop) -> None:
    product, branch = spread(till, own=5, there=2)
    hold = till.hold(product, 2, branch_id=branch).json()
    assert hold["branch_id"] == branch and stock(till.shop, product) == {0: (5, 0), branch: (2, 2)}
    refused = till.hold(product, 1, branch_id=branch)
    assert (refused.status_code, refused.json()) == (
        409,
        {
            "detail": "Only 0 left at this place, and 5 in all",
            "code": "insufficient_at_this_place",
            "product_id": product,
            "left": 0,
            "in_all": 5,
        },
    )
    assert till.hold(product, 1, branch_id=0).json()["branch_id"] == 0


def test_else_from_the_nearest_that_has_all_or_from_the_fullest(till: SpreadShop) -> None:
    product, branch = spread(till, own=5, there=2)
    assert till.hold(product, 1, **NEAR_BRANCH).json()["branch_id"] == branch
    assert till.hold(product, 1, **NEAR_OWN).json()["branch_id"] == 0
    assert till.hold(product, 2, **NEAR_BRANCH).json()["branch_id"] == 0  # one is left there
    assert till.hold(product, 1).json()["branch_id"] == 0
    assert till.hold(product, 1).json()["available_quantity"] == 1
    assert stock(till.shop, product)[0][1] + stock(till.shop, product)[branch][1] == 6


def test_units_of_two_places_are_not_held_together(till: SpreadShop) -> None:
    product, branch = spread(till, own=2, there=2)
    refused = till.hold(product, 3)
    assert (refused.status_code, refused.json()["detail"]) == (409, "Only 2 left at one place, and 4 in all")
    assert (refused.json()["code"], refused.json()["left"]) == ("insufficient_at_one_place", 2)
    assert stock(till.shop, product) == {0: (2, 0), branch: (2, 0)}


@pytest.mark.parametrize(("deed", "left"), [("release", 2), ("commit", 1)])
def test_a_hold_ends_where_it_began(till: SpreadShop, deed: str, left: int) -> None:
    product, branch = spread(till, own=3, there=2)
    hold = till.hold(product, 1, branch_id=branch).json()
    assert till.end(deed, hold).status_code == 200
    assert stock(till.shop, product) == {0: (3, 0), branch: (left, 0)}


def test_a_hold_that_is_due_gives_its_place_back_to_the_next_buyer(till: SpreadShop) -> None:
    product, branch = spread(till, own=1, there=1)
    till.shop.make_due(till.hold(product, 1, branch_id=branch).json()["id"])
    assert till.hold(product, 1, branch_id=branch).status_code == 200
    assert stock(till.shop, product) == {0: (1, 0), branch: (1, 1)}


def test_a_transfer_is_a_pair_in_the_ledger_and_leaves_what_is_reserved(till: SpreadShop) -> None:
    product, branch = spread(till, own=3, there=0)
    till.hold(product, 1)
    shown = till.transfer(product, 2, 0, branch).json()
    assert [(one["branch_id"], one["on_hand"], one["reserved"]) for one in shown["places"]] == [
        (0, 1, 1),
        (branch, 2, 0),
    ]
    assert stock(till.shop, product) == {0: (1, 1), branch: (2, 0)}
    refused = till.transfer(product, 1, 0, branch)
    assert refused.status_code == 409 and "Only 0 of 1 units at this place" in refused.json()["detail"]
    ledger = till.client.get(f"/api/suppliers/{till.shop.id}/stock-movements?kind=transfer", headers=till.seller).json()
    assert [(one["branch_id"], one["delta"], one["on_hand"]) for one in ledger] == [(branch, 2, 3), (0, -2, 3)]


def test_a_repeated_transfer_moves_once(till: SpreadShop) -> None:
    product, branch = spread(till, own=5, there=0)
    for _ in range(2):
        assert till.transfer(product, 2, 0, branch, **{"Idempotency-Key": "van-7"}).status_code == 200
    assert stock(till.shop, product) == {0: (3, 0), branch: (2, 0)}


def test_a_new_total_leaves_what_lies_elsewhere(till: SpreadShop) -> None:
    product, branch = spread(till, own=3, there=4)
    path = f"/api/products/{product}"
    assert till.client.put(path, json={"stock_quantity": 5}, headers=till.seller).json()["stock_quantity"] == 5
    assert stock(till.shop, product) == {0: (1, 0), branch: (4, 0)}
    refused = till.client.put(path, json={"stock_quantity": 3}, headers=till.seller)
    assert refused.status_code == 409 and "and 4 lie at other places" in refused.json()["detail"]
    sheet = f"/api/suppliers/{till.shop.id}/products/import"
    till.client.put(path, json={"sku": "S-1"}, headers=till.seller)
    answer = till.client.post(
        sheet, content="sku,stock_quantity\nS-1,3\n", headers={**till.seller, "Content-Type": "text/csv"}
    )
    assert answer.json()["errors"][0]["message"] == "must be at least 4, the 0 reserved units and 4 at other places"
    bulk = f"/api/suppliers/{till.shop.id}/products/bulk"
    one = {"id": product, "stock_quantity": 3}
    assert till.client.post(bulk, json={"products": [one]}, headers=till.seller).status_code == 409
    assert stock(till.shop, product) == {0: (1, 0), branch: (4, 0)}


def order(till: SpreadShop, quantities: dict[int, int], **wish: Any) -> httpx2.Response:
    items = [{"product_id": product, "quantity": quantity} for product, quantity in quantities.items()]
    return till.client.post("/api/orders", json={"items": items, "place": PICKUP, **wish}, headers=till.buyer)


def move(till: SpreadShop, deed: str, placed: dict[str, Any], who: dict[str, str], **body: Any) -> dict[str, Any]:
    return made(till.client.post(f"/api/orders/{placed['id']}/{deed}", json=body, headers=who))


def test_an_order_is_of_the_place_that_has_all_of_it_and_names_it(till: SpreadShop) -> None:
    till.shop.takes_orders()
    product, branch = spread(till, own=5, there=1)
    other = till.shop.product(on_hand=0)
    till.correct(other, 2, branch)
    placed = made(order(till, {product: 1, other: 1}))
    assert placed["branch_id"] == branch and placed["handover"]["name"] == "Toko Kemang"
    assert placed["handover"]["address"] is None
    accepted = move(till, "accept", placed, till.seller)
    assert accepted["handover"]["latitude"] == -6.9
    move(till, "hand-over", placed, till.seller)
    assert stock(till.shop, product) == {0: (5, 0), branch: (0, 0)}
    lines = [{"position": number, "quantity": 1} for number in (1, 2)]
    move(till, "return", placed, till.seller, reason="Rusak", lines=lines)
    assert stock(till.shop, product) == {0: (5, 0), branch: (1, 0)} and stock(till.shop, other)[branch] == (2, 0)


def test_who_has_cancelled_does_not_read_where_the_goods_lie(till: SpreadShop) -> None:
    till.shop.takes_orders()
    product, _ = spread(till, own=0, there=1)
    placed = made(order(till, {product: 1}))
    path = f"/api/orders/{placed['id']}"
    assert move(till, "accept", placed, till.seller)["handover"]["latitude"] is not None
    exact = till.client.get(path, headers=till.buyer).json()["handover"]
    assert exact["latitude"] == -6.9
    with till.shop.market.writing() as session:
        session.execute(
            update(Branch).where(Branch.supplier_id == till.shop.id).values(address="Jl. Contoh 8", shows_place=False)
        )
    assert till.client.get(path, headers=till.buyer).json()["handover"]["address"] == "Jl. Contoh 8"
    cancelled = move(till, "cancel", placed, till.buyer)["handover"]
    assert (cancelled["name"], cancelled["address"], cancelled["latitude"]) == ("Toko Kemang", None, None)
    assert till.client.get(path, headers=till.seller).json()["handover"]["address"] == "Jl. Contoh 8"


def test_goods_of_a_place_that_is_closed_since_come_back_to_the_own_address(till: SpreadShop) -> None:
    till.shop.takes_orders()
    product, branch = spread(till, own=0, there=1)
    placed = made(order(till, {product: 1}))
    for deed in ("accept", "hand-over"):
        move(till, deed, placed, till.seller)
    assert till.change(branch, is_active=False).status_code == 200
    move(till, "return", placed, till.seller, reason="Rusak", lines=[{"position": 1, "quantity": 1}])
    assert stock(till.shop, product) == {0: (1, 0), branch: (0, 0)}


def test_an_order_that_ends_gives_back_to_its_place(till: SpreadShop) -> None:
    till.shop.takes_orders()
    product, branch = spread(till, own=1, there=3)
    placed = made(order(till, {product: 2}))
    assert stock(till.shop, product) == {0: (1, 0), branch: (3, 2)}
    move(till, "cancel", placed, till.buyer)
    assert stock(till.shop, product) == {0: (1, 0), branch: (3, 0)}


def test_holds_of_two_places_are_two_orders(till: SpreadShop) -> None:
    till.shop.takes_orders()
    product, branch = spread(till, own=1, there=1)
    holds = [till.hold(product, 1, branch_id=place).json()["id"] for place in (0, branch)]
    refused = till.client.post("/api/orders", json={"reservations": holds}, headers=till.buyer)
    assert refused.status_code == 422 and "one place of the shop" in refused.json()["detail"]
    assert order(till, {product: 1}, branch_id=branch).status_code == 409
    one = till.client.post("/api/orders", json={"reservations": holds[1:]}, headers=till.buyer)
    assert made(one)["branch_id"] == branch


def test_no_place_has_all_of_an_order(till: SpreadShop) -> None:
    till.shop.takes_orders()
    product, branch = spread(till, own=1, there=0)
    other = till.shop.product(on_hand=0)
    till.correct(other, 1, branch)
    refused = order(till, {product: 1, other: 1})
    assert refused.status_code == 409 and refused.json()["detail"].endswith("at this place, and 1 in all")
    assert stock(till.shop, product) == {0: (1, 0)} and stock(till.shop, other) == {0: (0, 0), branch: (1, 0)}


@pytest.mark.parametrize("with_draft", [False, True])
def test_holds_that_are_due_leave_the_place_of_an_order_free(till: SpreadShop, with_draft: bool) -> None:
    """The only place that has both: one by a hold that is due."""
    till.shop.takes_orders()
    product, branch = spread(till, own=1, there=1)
    other = till.shop.product(on_hand=0)
    till.correct(other, 1, branch)
    late = till.hold(product, 1, branch_id=branch).json()["id"]
    till.shop.make_due(late)
    more = [till.hold(other, 1).json()["id"]] if with_draft else []
    items = [{"product_id": one, "quantity": 1} for one in ([product] if with_draft else [product, other])]
    body = {"items": items, "reservations": more, "place": PICKUP}
    placed = made(till.client.post("/api/orders", json=body, headers=till.buyer))
    assert placed["branch_id"] == branch
    assert stock(till.shop, product) == {0: (1, 0), branch: (1, 1)}
    assert stock(till.shop, other) == {0: (0, 0), branch: (1, 1)}
    assert till.client.get(f"/api/reservations/{late}", headers=till.buyer).json()["status"] == "expired"


def test_the_courier_comes_from_the_place_that_sends(till: SpreadShop) -> None:
    till.shop.takes_orders()
    rules = {"takes_orders": True, "courier_bands": [{"up_to_km": 5, "fee": 5000}, {"up_to_km": 200, "fee": 90000}]}
    path = f"/api/suppliers/{till.shop.id}"
    assert till.client.put(f"{path}/order-rules", json=rules, headers=till.seller).status_code == 200
    product, branch = spread(till, own=5, there=5)
    query = "latitude=-6.9&longitude=107.6"
    fees = [
        next(one["fee"] for one in offer["deliveries"] if one["delivery"] == "courier")
        for offer in (
            till.client.get(f"{path}/order-quote?{query}").json(),
            till.client.get(f"{path}/order-quote?{query}&branch_id={branch}").json(),
        )
    ]
    assert fees == [90000, 5000]
    address = {"name": "Dewi", "phone": "+6281234567890", "street": "Jl. Contoh 1", "city": "Bandung", **NEAR_BRANCH}
    place = {"delivery": "courier", "payment_method": "cash", "address": address}
    sent = made(order(till, {product: 1}, place=place))
    assert (sent["branch_id"], sent["delivery_fee"], sent["handover"]) == (branch, 5000, None)


def test_a_shop_with_one_place_names_none(till: SpreadShop) -> None:
    till.shop.takes_orders()
    product = till.shop.product(on_hand=2)
    placed = made(order(till, {product: 1}))
    assert (placed["branch_id"], placed["handover"]) == (0, None)
    shown = till.client.get(f"/api/products/{product}?user_lat=-6.2&user_lon=106.8").json()
    assert shown["places"] is None and shown["place"] is None
