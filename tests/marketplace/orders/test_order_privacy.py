"""Who sees an order, its buyer and its address; and what is deleted."""

from datetime import timedelta
from typing import Any

import httpx2
import pytest
from sqlalchemy import func, select, update

from tests.marketplace.orders.ordering import ADDRESS, DEWI, Ordering, made, refusal
from tests.marketplace.shop import Shop
from tis.marketplace.admin.retention import RetentionRules, delete_old_rows
from tis.marketplace.auth.shop_tokens import new_shop_token
from tis.marketplace.columns import now
from tis.marketplace.kit.principal import Principal
from tis.marketplace.market import Market
from tis.marketplace.tables import CourierFee, Order, OrderAddress, OrderMove, SupplierMember

HIDDEN = {"name": "Dewi S.", "email": None, "phone": None}


@pytest.fixture
def ordering(internet: httpx2.Client, strict_shop: Shop) -> Ordering:
    ordering = Ordering(internet, strict_shop)
    with strict_shop.market.writing() as session:
        session.add_all(
            CourierFee(supplier_id=strict_shop.id, up_to_km=km, fee=fee) for km, fee in ((5, 100), (9, 200))
        )
    return ordering


def brought(ordering: Ordering) -> dict[str, Any]:
    return ordering.order(
        {ordering.shop.product(on_hand=9): 1}, delivery="courier", address=ADDRESS, note="Pagar hijau"
    )


def test_the_shop_sees_the_address_from_acceptance_on(ordering: Ordering) -> None:
    order = brought(ordering)
    assert ordering.read(order).json()["address"] == ADDRESS
    before = ordering.read(order, ordering.seller).json()
    assert (before["address"], before["buyer"]) == (None, HIDDEN)
    made(ordering.by_shop("accept", order))
    after = ordering.read(order, ordering.seller).json()
    assert (after["address"], after["buyer"]) == (ADDRESS, DEWI)
    [listed] = ordering.client.get(f"/api/suppliers/{ordering.shop.id}/orders", headers=ordering.seller).json()
    assert listed["buyer"] == DEWI and "address" not in listed
    made(ordering.by_buyer("cancel", order))
    gone = ordering.read(order, ordering.seller).json()
    assert (gone["address"], gone["buyer"]) == (None, HIDDEN)


def test_a_note_is_seen_as_an_address_is(ordering: Ordering) -> None:
    """Buyers write there where the gate is, and whom to call."""
    path = f"/api/suppliers/{ordering.shop.id}/orders"
    owner = Principal(f"supplier:{ordering.shop.id}", owned_ids=frozenset([ordering.shop.id]))
    with ordering.shop.market.writing() as session:
        _, secret = new_shop_token(session, owner, ordering.shop.id, "Kasir", ["read"], 1)
    program = {"Authorization": f"Bearer {secret}"}
    order = brought(ordering)

    def notes(headers: dict[str, str]) -> set[str | None]:
        [listed] = ordering.client.get(path, headers=headers).json()
        return {listed["note"], ordering.read(order, headers).json()["note"]}

    assert notes(ordering.seller) == notes(program) == {None}
    made(ordering.by_shop("accept", order))
    assert notes(ordering.seller) == {"Pagar hijau"} and notes(program) == {None}
    made(ordering.by_buyer("cancel", order))
    assert notes(ordering.seller) == notes(program) == {None}
    [own] = ordering.client.get("/api/orders", headers=ordering.buyer).json()
    assert own["note"] == ordering.read(order).json()["note"] == "Pagar hijau"


def test_the_shop_sees_it_no_longer_than_it_needs_it(ordering: Ordering) -> None:
    order = brought(ordering)
    for deed in ("accept", "hand-over"):
        made(ordering.by_shop(deed, order))
    made(ordering.by_buyer("receive", order))
    assert ordering.read(order, ordering.seller).json()["address"] == ADDRESS
    with ordering.shop.market.writing() as session:
        ended = now() - timedelta(days=7, minutes=1)
        session.execute(update(Order).where(Order.id == order["id"]).values(ended_at=ended))
    assert ordering.read(order, ordering.seller).json()["address"] is None
    assert ordering.read(order).json()["address"] == ADDRESS


def test_for_others_there_is_no_order(ordering: Ordering) -> None:
    order = brought(ordering)
    made(ordering.by_shop("accept", order))
    for headers in (ordering.rival, ordering.thief):
        assert ordering.read(order, headers).status_code == 404
        for deed in ("accept", "cancel", "hand-over", "receive", "paid", "ship"):
            assert ordering.move(deed, order, headers).status_code == 404
        assert ordering.client.get("/api/orders", headers=headers).json() == []
        assert ordering.client.get(f"/api/orders?before={order['id']}", headers=headers).status_code == 404
        assert ordering.client.get(f"/api/suppliers/{ordering.shop.id}/orders", headers=headers).status_code == 403
    assert ordering.read(order, {"x-nobody": "1"}).status_code == 401


def test_a_draft_is_none_of_the_shops_business(ordering: Ordering) -> None:
    draft = ordering.draft({ordering.shop.product(): 1})
    assert ordering.read(draft).status_code == 200
    assert ordering.read(draft, ordering.seller).status_code == 404
    assert ordering.by_shop("cancel", draft, reason="x").status_code == 404
    assert ordering.client.get(f"/api/suppliers/{ordering.shop.id}/orders", headers=ordering.seller).json() == []


def test_a_program_of_the_shop_moves_goods_and_learns_of_nobody(ordering: Ordering) -> None:
    order = brought(ordering)
    owner = Principal(f"supplier:{ordering.shop.id}", owned_ids=frozenset([ordering.shop.id]))
    with ordering.shop.market.writing() as session:
        _, secret = new_shop_token(session, owner, ordering.shop.id, "Kasir", ["read", "stock"], 1)
    till = {"Authorization": f"Bearer {secret}"}
    accepted = made(ordering.move("accept", order, till))
    assert (accepted["address"], accepted["buyer"]) == (None, HIDDEN)
    assert ordering.move("cancel", order, till, reason="x").status_code == 403
    assert made(ordering.move("hand-over", order, till))["buyer"] == HIDDEN


def test_addresses_and_notes_go_before_orders_do(ordering: Ordering, required_market: Market) -> None:
    orders = [brought(ordering) for _ in range(3)]
    for order in orders[:2]:
        made(ordering.by_buyer("cancel", order))
    with required_market.writing() as session:
        for order, days in zip(orders, (400, 70), strict=False):
            past = now() - timedelta(days=days)
            session.execute(update(Order).where(Order.id == order["id"]).values(ended_at=past))
    delete_old_rows(required_market.writing, RetentionRules(order_address_days=60, order_days=365))
    assert ordering.read(orders[0]).status_code == 404
    old = ordering.read(orders[1]).json()
    assert (old["address"], old["note"], old["state"]) == (None, None, "cancelled")
    waits = ordering.read(orders[2]).json()
    assert (waits["address"], waits["note"]) == (ADDRESS, "Pagar hijau")
    with required_market.reading() as session:
        assert not session.scalar(select(func.count()).where(OrderMove.order_id == orders[0]["id"]))


@pytest.mark.parametrize(("owed", "days", "is_kept"), [(1, 400, True), (0, 400, False), (1, 3651, False)])
def test_an_order_of_which_the_shop_owes_money_is_kept(
    ordering: Ordering, required_market: Market, owed: int, days: int, *, is_kept: bool
) -> None:
    order = brought(ordering)
    made(ordering.by_buyer("cancel", order))
    with required_market.writing() as session:
        past = now() - timedelta(days=days)
        session.execute(update(Order).where(Order.id == order["id"]).values(ended_at=past, refund_due=owed))
    delete_old_rows(required_market.writing, RetentionRules(order_days=365))
    assert ordering.read(order).status_code == (200 if is_kept else 404)


def test_the_buyer_gets_a_copy_and_is_forgotten(ordering: Ordering, required_market: Market) -> None:
    placed, accepted, sold = (brought(ordering) for _ in range(3))
    for order in (accepted, sold):
        made(ordering.by_shop("accept", order))
    made(ordering.by_shop("hand-over", sold))
    copy = ordering.client.get("/api/users/me/export", headers=ordering.buyer).json()
    assert {one["number"] for one in copy["orders"]} == {one["number"] for one in (placed, accepted, sold)}
    assert {one["street"] for one in copy["order_addresses"]} == {ADDRESS["street"]}
    assert len(copy["order_lines"]) == 3 and len(copy["order_moves"]) == 6
    assert ordering.client.request("DELETE", "/api/users/me", headers=ordering.buyer).status_code == 200
    states = {
        one["id"]: one for one in (ordering.read(order, ordering.seller).json() for order in (placed, accepted, sold))
    }
    assert [states[one["id"]]["state"] for one in (placed, accepted, sold)] == ["cancelled", "cancelled", "handed_over"]
    assert {one["buyer"]["name"] for one in states.values()} == {"Deleted user"}
    assert {one["note"] for one in states.values()} == {None}
    for order in (placed, accepted):
        product = order["lines"][0]["product_id"]
        assert ordering.shop.stock_columns(product) == ordering.shop.stock_ledger(product) == (9, 0)
    with required_market.reading() as session:
        kept = select(func.count()).where(OrderAddress.order_id.in_(states))
        assert session.scalar(kept) == 0


def test_a_shop_with_waiting_orders_is_not_closed(ordering: Ordering) -> None:
    order = brought(ordering)
    user_id = ordering.shop.user()
    with ordering.shop.market.writing() as session:
        session.add(SupplierMember(supplier_id=ordering.shop.id, user_id=user_id, role="owner"))
    owner = ordering.shop.auth_headers(f"user:{user_id}")
    path = f"/api/suppliers/{ordering.shop.id}"
    refused = ordering.client.delete(path, headers=owner)
    assert refusal(refused) == (409, "Buyers wait for this shop: refuse, cancel or finish their orders first.")
    made(ordering.by_shop("refuse", order, reason="Tutup"))
    draft = ordering.draft({ordering.shop.product(): 1})
    assert ordering.client.delete(path, headers=owner).status_code == 200
    closed = ordering.by_buyer("place", draft, delivery="pickup")
    assert refusal(closed) == (409, "This shop is closed.")


def test_a_shop_that_is_deleted_owes_what_was_paid(ordering: Ordering, required_market: Market) -> None:
    placed, paid, draft = brought(ordering), brought(ordering), ordering.draft({ordering.shop.product(on_hand=3): 2})
    with required_market.writing() as session:
        moment = now()
        is_paid = update(Order).where(Order.id == paid["id"])
        session.execute(is_paid.values(state="paid", paid_by_hand=Order.total, accepted_at=moment, paid_at=moment))
    gone = ordering.client.delete(f"/api/suppliers/{ordering.shop.id}?confirm=1", headers=ordering.seller)
    assert gone.status_code == 200, gone.text
    found = [ordering.read(order).json() for order in (placed, paid, draft)]
    assert [one["state"] for one in found] == ["refused", "cancelled", "expired"]
    assert found[1]["refund_due"] == found[1]["total"] == paid["total"]
    for order in (placed, paid, draft):
        product = order["lines"][0]["product_id"]
        assert ordering.shop.stock_columns(product) == ordering.shop.stock_ledger(product)
        assert ordering.shop.stock_columns(product)[1] == 0
