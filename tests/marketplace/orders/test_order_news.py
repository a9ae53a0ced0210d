"""Both sides hear of an order, and what a buyer wrote counts as that of a buyer."""

from typing import Any

import httpx2
import pytest

from tests.marketplace.orders.ordering import Ordering, made
from tests.marketplace.shop import Shop
from tests.marketplace.stock.test_reservations import reserve

PATH = "/api/notices/stream"


@pytest.fixture
def ordering(internet: httpx2.Client, strict_shop: Shop) -> Ordering:
    return Ordering(internet, strict_shop)


def heard(ordering: Ordering, headers: dict[str, str]) -> list[str]:
    answer = ordering.client.get(PATH, params={"once": True}, headers={**headers, "Last-Event-ID": "notices:0"})
    return [
        line.partition('"type":"')[2].partition('"')[0] for line in answer.text.splitlines() if line.startswith("data:")
    ]


def test_both_sides_hear_of_every_move_and_the_shop_of_no_draft(ordering: Ordering) -> None:
    product = ordering.shop.product(on_hand=9)
    dropped = ordering.draft({product: 1})
    made(ordering.by_buyer("cancel", dropped))
    order = ordering.order({product: 1})
    for deed in ("accept", "hand-over"):
        made(ordering.by_shop(deed, order))
    made(ordering.by_buyer("return-request", order, reason="Rusak"))
    made(ordering.by_shop("return-refusal", order, reason="Sudah dipakai"))
    both = ["order.placed", "order.accepted", "order.handed_over"]
    assert heard(ordering, ordering.buyer) == ["order.cancelled", *both, "order.return_refused"]
    assert heard(ordering, ordering.seller) == [*both, "order.return_asked"]
    assert heard(ordering, ordering.rival) == heard(ordering, ordering.thief) == []


def test_a_hold_that_becomes_an_order_is_no_hold_any_more(ordering: Ordering) -> None:
    held = reserve(ordering.client, ordering.shop.product(), 1, headers=ordering.buyer).json()
    made(ordering.send(reservations=[held["id"]]))
    assert heard(ordering, ordering.buyer) == ["hold.made", "hold.ordered"]


def reviewed(ordering: Ordering, product: int) -> dict[str, Any]:
    return made(ordering.client.post(f"/api/products/{product}/reviews", json={"rating": 5}, headers=ordering.buyer))


def test_a_review_before_or_after_the_goods_came_is_that_of_a_buyer(ordering: Ordering) -> None:
    early, late, none = (ordering.shop.product(on_hand=9) for _ in range(3))
    assert reviewed(ordering, early)["verified_purchase"] is False
    order = ordering.order({early: 1, late: 1, none: 1})
    made(ordering.by_shop("accept", order, lines=[{"position": 3, "quantity": 0}]))
    made(ordering.by_shop("hand-over", order))
    [review] = ordering.client.get(f"/api/products/{early}/reviews").json()
    assert review["verified_purchase"] is True
    assert reviewed(ordering, late)["verified_purchase"] is True
    assert reviewed(ordering, none)["verified_purchase"] is False


def test_the_numbers_of_a_shop_count_what_orders_sold(ordering: Ordering) -> None:
    product, other = ordering.shop.product(on_hand=9, price=1000), ordering.shop.product(on_hand=9, price=10)
    order = ordering.order({product: 3, other: 1})
    path = f"/api/suppliers/{ordering.shop.id}/numbers"
    assert ordering.client.get(path, headers=ordering.seller).json()["totals"]["sold_units"] == 0
    made(ordering.by_shop("accept", order, lines=[{"position": 1, "quantity": 2}]))
    made(ordering.by_shop("hand-over", order))
    held = reserve(ordering.client, other, 1, headers=ordering.buyer).json()
    made(ordering.client.post(f"/api/reservations/{held['id']}/commit", headers=ordering.seller))
    numbers = ordering.client.get(path, headers=ordering.seller).json()
    assert [numbers["totals"][name] for name in ("sales", "sold_units", "sold_rupiah")] == [3, 4, 2020]
    best = [(one["product_id"], one["units"], one["rupiah"]) for one in numbers["best_goods"]]
    assert best == [(product, 2, 2000), (other, 2, 20)]
