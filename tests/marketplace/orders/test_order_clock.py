"""What is due has moved: drafts, orders that nobody answers or pays, and goods that nobody complains about."""

from datetime import timedelta
from typing import Any

import httpx2
import pytest
from sqlalchemy import update

from tests.marketplace.orders.ordering import Ordering, made, refusal, too_late
from tests.marketplace.orders.test_order_news import heard
from tests.marketplace.shop import Shop
from tests.marketplace.stock.test_reservations import reserve
from tis.marketplace.columns import now
from tis.marketplace.market import Market
from tis.marketplace.orders.clock import OrderClock
from tis.marketplace.tables import Order, Reservation, ShopPaymentMethods


@pytest.fixture
def ordering(internet: httpx2.Client, strict_shop: Shop) -> Ordering:
    return Ordering(internet, strict_shop, accept_hours=2, pay_hours=3, handover_hours=48)


def let_time_pass(ordering: Ordering, order: dict[str, Any], **by: float) -> None:
    with ordering.shop.market.writing() as session:
        session.execute(update(Order).where(Order.id == order["id"]).values(due_at=now() - timedelta(seconds=1)))


def swept(market: Market) -> int:
    return OrderClock(market.reading, market.writing, market.search, market.rules).move_some()


def hours_left(order: dict[str, Any]) -> float:
    from datetime import datetime

    return round((datetime.fromisoformat(order["due_at"]) - now()).total_seconds() / 3600, 1)


def test_each_state_has_its_time(ordering: Ordering) -> None:
    product = ordering.shop.product(on_hand=9)
    assert hours_left(ordering.draft({product: 1})) == 0.2  # RESERVATION_SECONDS
    order = ordering.order({product: 1})
    assert hours_left(order) == 2
    assert hours_left(made(ordering.by_shop("accept", order))) == 3
    assert hours_left(made(ordering.by_shop("hand-over", order))) == 7 * 24
    assert made(ordering.by_buyer("receive", order))["due_at"] is None


def test_a_draft_lasts_no_longer_than_its_oldest_hold_could(ordering: Ordering) -> None:
    product = ordering.shop.product(on_hand=9)
    held = reserve(ordering.client, product, 1, headers=ordering.buyer).json()
    with ordering.shop.market.writing() as session:
        long_ago = now() - timedelta(minutes=55)
        session.execute(update(Reservation).where(Reservation.id == held["id"]).values(created_at=long_ago))
    assert hours_left(made(ordering.send(reservations=[held["id"]]))) == 0.1


@pytest.mark.parametrize(
    ("deeds", "state"),
    [([], "expired"), (["accept"], "expired"), (["accept", "hand-over"], "received")],
)
def test_the_clock_moves_what_is_due(ordering: Ordering, required_market: Market, deeds: list[str], state: str) -> None:
    product = ordering.shop.product(on_hand=4)
    order = ordering.order({product: 3})
    for deed in deeds:
        made(ordering.by_shop(deed, order))
    let_time_pass(ordering, order)
    seen = ordering.read(order).json()
    assert (seen["state"], seen["may_become"]) == (state, [])
    for path in ("/api/orders", f"/api/suppliers/{ordering.shop.id}/orders"):
        headers = ordering.buyer if path == "/api/orders" else ordering.seller
        found = {
            one: [row["id"] for row in ordering.client.get(f"{path}?state={one}", headers=headers).json()]
            for one in ("placed", "accepted", "handed_over", "received", "expired")
        }
        assert {one for one, ids in found.items() if ids} == {state} and found[state] == [order["id"]]
    while swept(required_market):
        pass
    assert swept(required_market) == 0
    written = ordering.read(order).json()
    assert (written["state"], written["moves"][-1]["mover"], written["due_at"]) == (state, "clock", None)
    left = (4, 0) if state == "expired" else (1, 0)
    assert ordering.shop.stock_columns(product) == ordering.shop.stock_ledger(product) == left


def test_who_comes_too_late_learns_so_before_the_sweeper_came(ordering: Ordering) -> None:
    product = ordering.shop.product(on_hand=1)
    draft = ordering.draft({product: 1})
    let_time_pass(ordering, draft)
    late = ordering.by_buyer("place", draft, delivery="pickup")
    assert refusal(late) == too_late("expired")
    order = ordering.order({ordering.shop.product(): 1})
    let_time_pass(ordering, order)
    assert refusal(ordering.by_shop("accept", order)) == too_late("expired")


def paid_before(ordering: Ordering, product: int) -> dict[str, Any]:
    """An order by transfer, whose money came."""
    with ordering.shop.market.writing() as session:
        session.add(ShopPaymentMethods(supplier_id=ordering.shop.id, bank_name="B", account_number="1234567890"))
    order = ordering.order({product: 1}, payment_method="transfer")
    made(ordering.by_shop("accept", order))
    return made(ordering.by_shop("paid", order))


def test_a_paid_order_has_its_time_and_then_its_buyer_may_cancel_it(
    ordering: Ordering, required_market: Market
) -> None:
    product = ordering.shop.product(on_hand=4, price=1000)
    order = paid_before(ordering, product)
    assert (hours_left(order), order["overdue_at"]) == (48, None)
    assert refusal(ordering.by_buyer("cancel", order)) == too_late("paid")
    assert ordering.read(order).json()["may_become"] == []
    let_time_pass(ordering, order)
    late = ordering.read(order).json()
    assert (late["state"], late["may_become"], late["due_at"]) == ("paid", ["cancelled"], None)
    while swept(required_market):
        pass
    assert swept(required_market) == 0, "it is told once"
    assert ordering.read(order).json() == late
    assert heard(ordering, ordering.buyer)[-1] == heard(ordering, ordering.seller)[-1] == "order.overdue"
    cancelled = made(ordering.by_buyer("cancel", order, reason="Terlalu lama"))
    assert (cancelled["state"], cancelled["refund_due"], cancelled["may_become"]) == ("cancelled", 1000, [])
    assert ordering.shop.stock_columns(product) == ordering.shop.stock_ledger(product) == (4, 0)


def test_a_shop_that_is_late_may_still_hand_over(ordering: Ordering) -> None:
    order = paid_before(ordering, ordering.shop.product())
    let_time_pass(ordering, order)
    assert made(ordering.by_shop("hand-over", order))["state"] == "handed_over"
    assert refusal(ordering.by_buyer("cancel", order)) == (409, "This order is handed over: that move is not open.")


def test_a_late_order_that_was_sent_says_when_it_counts_as_received(ordering: Ordering) -> None:
    order = paid_before(ordering, ordering.shop.product())
    let_time_pass(ordering, order)
    sent = made(ordering.by_shop("hand-over", order))
    assert sent["overdue_at"] is not None
    assert hours_left(sent) > 0


def test_who_cancels_a_late_order_needs_no_sweep(ordering: Ordering) -> None:
    order = paid_before(ordering, ordering.shop.product())
    let_time_pass(ordering, order)
    assert made(ordering.by_buyer("cancel", order, version=order["version"]))["refund_due"] == order["total"]


def test_orders_that_are_not_paid_count_in_what_an_account_may_hold(ordering: Ordering) -> None:
    product = ordering.shop.product(on_hand=1000)
    too_many = ordering.send(items=[{"product_id": product, "quantity": 101}])
    assert "at most 100 units" in refusal(too_many)[1]
    order = ordering.order({product: 60})
    for deed in ("accept", "hand-over"):
        assert "you hold 60" in refusal(ordering.send(items=[{"product_id": product, "quantity": 60}]))[1]
        assert "you hold 60" in refusal(reserve(ordering.client, product, 60, headers=ordering.buyer))[1]
        made(ordering.by_shop(deed, order))
    made(ordering.send(items=[{"product_id": product, "quantity": 60}]))


def test_units_that_the_shop_leaves_out_count_no_more(ordering: Ordering) -> None:
    first, second = ordering.shop.product(on_hand=1000), ordering.shop.product()
    order = ordering.order({first: 60, second: 1})
    made(ordering.by_shop("accept", order, lines=[{"position": 1, "quantity": 10}]))
    assert "you hold 10" in refusal(ordering.send(items=[{"product_id": first, "quantity": 91}]))[1]
    made(ordering.send(items=[{"product_id": first, "quantity": 90}]))


def test_nobody_empties_a_shop_by_orders_that_it_accepts(ordering: Ordering) -> None:
    goods = [ordering.shop.product() for _ in range(21)]
    for some in (goods[:10], goods[10:20]):
        made(ordering.by_shop("accept", ordering.order(dict.fromkeys(some, 1))))
    one_more = refusal(ordering.send(items=[{"product_id": goods[20], "quantity": 1}]))
    assert one_more[0] == 409 and "at most 20 reservations at a time, and you hold 20" in one_more[1]
    held = reserve(ordering.client, goods[20], 1, headers=ordering.buyer)
    assert refusal(held) == one_more
    made(
        ordering.by_buyer("cancel", {"id": ordering.client.get("/api/orders", headers=ordering.buyer).json()[0]["id"]})
    )
    made(ordering.send(items=[{"product_id": goods[20], "quantity": 1}]))


def test_who_drops_drafts_again_and_again_waits(ordering: Ordering) -> None:
    product = ordering.shop.product(on_hand=9)
    for _ in range(3):
        draft = ordering.draft({product: 1})
        reservation = draft["lines"][0]["reservation_id"]
        with ordering.shop.market.writing() as session:
            long_ago = now() - timedelta(minutes=50)
            session.execute(update(Reservation).where(Reservation.id == reservation).values(created_at=long_ago))
        made(ordering.by_buyer("cancel", draft))
    assert ordering.send(items=[{"product_id": product, "quantity": 1}]).status_code == 429


def test_an_account_has_so_many_open_orders(ordering: Ordering) -> None:
    product = ordering.shop.product(on_hand=99)
    account = f"user:{ordering.shop.user()}"
    with ordering.shop.market.writing() as session:
        session.add_all(
            Order(
                id=f"{number}-{ordering.shop.id}",
                number=f"{number}-{ordering.shop.id}",
                supplier_id=ordering.shop.id,
                buyer=account,
                state="accepted",
                shop_name="x",
                items_total=0,
                total=0,
                due_at=now() + timedelta(hours=1),
            )
            for number in range(20)
        )
    ordering.buyer = ordering.shop.auth_headers(account)
    refused = ordering.send(items=[{"product_id": product, "quantity": 1}])
    assert refusal(refused) == (409, "20 of your orders are open already: wait for one, or cancel one.")
