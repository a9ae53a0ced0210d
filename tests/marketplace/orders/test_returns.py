"""Goods come back: the buyer asks, the shop takes them or says why not."""

from datetime import timedelta
from typing import Any

import httpx2
import pytest
from sqlalchemy import update

from tests.marketplace.orders.ordering import Ordering, made, refusal
from tests.marketplace.shop import Shop
from tis.marketplace.columns import now
from tis.marketplace.kit.fields import MAX_STOCK
from tis.marketplace.tables import Order, OrderMove


@pytest.fixture
def ordering(internet: httpx2.Client, strict_shop: Shop) -> Ordering:
    return Ordering(internet, strict_shop, return_days=5)


def sold(ordering: Ordering, *quantities: int) -> dict[str, Any]:
    order = ordering.order({ordering.shop.product(on_hand=number, price=1000): number for number in quantities})
    made(ordering.by_shop("accept", order))
    return made(ordering.by_shop("hand-over", order))


def days_pass(ordering: Ordering, order: dict[str, Any], days: float) -> None:
    with ordering.shop.market.writing() as session:
        moves = update(OrderMove).where(OrderMove.order_id == order["id"])
        session.execute(moves.values(at=now() - timedelta(days=days)))


@pytest.mark.parametrize("restock", [False, True])
def test_what_comes_back_never_passes_the_limit_of_stock(ordering: Ordering, *, restock: bool) -> None:
    order = sold(ordering, 3)
    [product] = (line["product_id"] for line in order["lines"])
    correction = {"delta": MAX_STOCK - 1, "reason": "Gudang"}
    path = f"/api/products/{product}/stock-corrections"
    assert ordering.client.post(path, json=correction, headers=ordering.seller).status_code == 200
    lines = [{"position": 1, "quantity": 2, "restock": restock}]
    answer = ordering.by_shop("return", order, reason="Kekecilan", lines=lines)
    if restock:
        assert refusal(answer)[0] == 409 and "without `restock`" in refusal(answer)[1]
        assert ordering.read(order).json()["state"] == "handed_over"
        one = [{"position": 1, "quantity": 1, "restock": True}]
        assert made(ordering.by_shop("return", order, reason="Kekecilan", lines=one))["refund_due"] == 1000
    else:
        assert made(answer)["refund_due"] == 2000
    on_hand = MAX_STOCK if restock else MAX_STOCK - 1
    assert ordering.shop.stock_columns(product) == ordering.shop.stock_ledger(product) == (on_hand, 0)


def test_lines_come_back_for_sale_or_not_and_the_shop_owes_their_price(ordering: Ordering) -> None:
    order = sold(ordering, 3, 2)
    first, second = (line["product_id"] for line in order["lines"])
    lines = [{"position": 1, "quantity": 2}, {"position": 2, "quantity": 1, "restock": False}]
    back = made(ordering.by_shop("return", order, reason="Kekecilan", lines=lines))
    assert (back["state"], back["refund_due"], back["may_become"]) == ("returned", 3000, [])
    assert [line["returned"] for line in back["lines"]] == [2, 1]
    assert ordering.shop.stock_columns(first) == ordering.shop.stock_ledger(first) == (2, 0)
    assert ordering.shop.stock_columns(second) == ordering.shop.stock_ledger(second) == (0, 0)
    again = made(ordering.by_shop("return", order, reason="Kekecilan", lines=lines))
    assert again == back and ordering.shop.stock_columns(first) == (2, 0)
    ledger = ordering.client.get(
        f"/api/suppliers/{ordering.shop.id}/stock-movements?kind=returned", headers=ordering.seller
    ).json()
    assert [(one["product_id"], one["delta"], one["on_hand"]) for one in ledger] == [(first, 2, 2)]
    found = ordering.client.get(f"/api/products/{first}").json()
    assert found["available_quantity"] == 2


@pytest.mark.parametrize(
    "lines",
    [
        [{"position": 1, "quantity": 4}],
        [{"position": 2, "quantity": 1}],
        [{"position": 1, "quantity": 1}, {"position": 1, "quantity": 1}],
        [],
    ],
)
def test_no_more_comes_back_than_was_sold(ordering: Ordering, lines: list[dict[str, int]]) -> None:
    order = sold(ordering, 3)
    assert ordering.by_shop("return", order, reason="x", lines=lines).status_code == 422
    assert ordering.shop.stock_columns(order["lines"][0]["product_id"]) == (0, 0)


def test_what_the_shop_owes_already_stays_owed_when_goods_come_back(ordering: Ordering) -> None:
    """As if a part of the money had come twice."""
    order = sold(ordering, 3)
    price = order["lines"][0]["unit_price"]
    with ordering.shop.market.writing() as session:
        twice = {Order.refund_due: price, Order.paid_by_hand: Order.paid_by_hand + price}
        session.execute(update(Order).where(Order.id == order["id"]).values(twice))
    back = made(ordering.by_shop("return", order, reason="x", lines=[{"position": 1, "quantity": 1}]))
    assert back["refund_due"] == 2 * price


def test_the_buyer_asks_once_and_the_shop_may_refuse(ordering: Ordering) -> None:
    order = sold(ordering, 1)
    assert ordering.by_shop("return-request", order, reason="x").status_code == 403
    assert refusal(ordering.by_shop("return-refusal", order, reason="x")) == (
        409,
        "Nobody asks to return anything of this order.",
    )
    asked = made(ordering.by_buyer("return-request", order, reason="Kekecilan"))
    assert asked["return_reason"] == "Kekecilan" and asked["version"] == order["version"] + 1
    assert made(ordering.by_buyer("return-request", order, reason="Lain")) == asked
    refused = made(ordering.by_shop("return-refusal", order, reason="Sudah dipakai"))
    assert (refused["state"], refused["return_refusal"]) == ("handed_over", "Sudah dipakai")


def test_there_is_a_time_for_it(ordering: Ordering) -> None:
    late, asked = sold(ordering, 1), sold(ordering, 1)
    made(ordering.by_buyer("return-request", asked, reason="Rusak"))
    for order in (late, asked):
        days_pass(ordering, order, 6)
    lines = [{"position": 1, "quantity": 1}]
    assert refusal(ordering.by_buyer("return-request", late, reason="x")) == (409, "The 5 days for returns are over.")
    assert refusal(ordering.by_shop("return", late, reason="x", lines=lines)) == (
        409,
        "The 5 days for returns are over.",
    )
    assert made(ordering.by_shop("return", asked, reason="x", lines=lines))["state"] == "returned"


def test_what_was_not_sold_is_not_returned(ordering: Ordering) -> None:
    order = ordering.order({ordering.shop.product(): 1})
    asked = ordering.by_buyer("return-request", order, reason="x")
    assert refusal(asked) == (409, "This order is placed: there is nothing to return.")
    assert ordering.by_shop("return", order, reason="x", lines=[{"position": 1, "quantity": 1}]).status_code == 409
