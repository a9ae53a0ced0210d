"""A buyer orders of a shop, the shop answers, and the goods change hands: states, money and stock."""

from typing import Any

import httpx2
import pytest

from tests.marketplace.orders.ordering import ADDRESS, Ordering, made, refusal, too_late
from tests.marketplace.shop import Shop
from tests.marketplace.stock.test_reservations import reserve
from tis.marketplace.auth.shop_tokens import new_shop_token
from tis.marketplace.kit.principal import Principal
from tis.marketplace.orders.states import DEEDS, MOVES
from tis.marketplace.policy import TokenScope
from tis.marketplace.tables import Order, SupplierMember


@pytest.fixture
def ordering(internet: httpx2.Client, strict_shop: Shop) -> Ordering:
    return Ordering(internet, strict_shop, tax_rate=1100)


def balanced(shop: Shop, product: int) -> tuple[int, int]:
    """(on hand, reserved): as the columns say, and as everything adds up."""
    assert shop.stock_columns(product) == shop.stock_ledger(product)
    return shop.stock_columns(product)


def test_an_order_of_held_units_keeps_their_price(ordering: Ordering) -> None:
    shop, http = ordering.shop, ordering.client
    product = shop.product(on_hand=5, price=100_000, name="Kipas meja", sku="KM-1")
    held = reserve(http, product, 2, headers=ordering.buyer).json()
    http.put(f"/api/products/{product}", json={"price": 150_000}, headers=ordering.seller)
    draft = made(ordering.send(reservations=[held["id"]]))
    assert (draft["state"], draft["items_total"], draft["total"]) == ("draft", 200_000, 200_000)
    [line] = draft["lines"]
    assert (line["unit_price"], line["quantity"], line["name"], line["sku"]) == (100_000, 2, "Kipas meja", "KM-1")
    assert balanced(shop, product) == (5, 2)
    ended = http.get(f"/api/reservations/{held['id']}", headers=ordering.buyer).json()
    assert ended["status"] == "ordered"
    refused = http.post(f"/api/reservations/{held['id']}/release", headers=ordering.buyer)
    assert refusal(refused) == (409, "This reservation became an order.")
    again = ordering.send(reservations=[held["id"]])
    assert again.status_code == 409


def test_a_cash_order_goes_from_the_shelf_to_the_buyer(ordering: Ordering) -> None:
    shop = ordering.shop
    product, other = shop.product(on_hand=5, price=111_000), shop.product(on_hand=1, price=1)
    order = ordering.order({product: 2, other: 1}, note="Sore hari")
    assert (order["state"], order["total"], order["tax_included"]) == ("placed", 222_001, 22_000)
    assert (balanced(shop, product), balanced(shop, other)) == ((5, 2), (1, 1))
    accepted = made(ordering.by_shop("accept", order))
    assert (accepted["state"], accepted["may_become"]) == ("accepted", ["cancelled", "handed_over"])
    given = made(ordering.by_shop("hand-over", order))
    assert given["state"] == "handed_over" and given["paid_at"] is not None
    assert (balanced(shop, product), balanced(shop, other)) == ((3, 0), (0, 0))
    received = made(ordering.by_buyer("receive", order))
    assert [move["state"] for move in received["moves"]] == ["draft", "placed", "accepted", "handed_over", "received"]
    assert [move["mover"] for move in received["moves"]] == ["buyer", "buyer", "shop", "shop", "buyer"]
    ledger = ordering.client.get(
        f"/api/suppliers/{shop.id}/stock-movements?product_id={product}", headers=ordering.seller
    ).json()
    assert [(one["kind"], one["delta"], one["on_hand"]) for one in ledger][:1] == [("sold", -2, 3)]


def test_a_part_is_accepted_and_costs_less(ordering: Ordering) -> None:
    product, other = ordering.shop.product(on_hand=5, price=1000), ordering.shop.product(on_hand=5, price=500)
    order = ordering.order({product: 4, other: 2})
    nothing = [{"position": 1, "quantity": 0}, {"position": 2, "quantity": 0}]
    assert ordering.by_shop("accept", order, lines=nothing).status_code == 422
    assert ordering.by_shop("accept", order, lines=[{"position": 1, "quantity": 5}]).status_code == 422
    assert ordering.by_shop("accept", order, lines=[{"position": 3, "quantity": 1}]).status_code == 422
    part = made(
        ordering.by_shop("accept", order, lines=[{"position": 1, "quantity": 1}, {"position": 2, "quantity": 0}])
    )
    assert (part["items_total"], part["total"], part["tax_included"]) == (1000, 1000, 99)
    assert [(line["ordered"], line["quantity"], line["total"]) for line in part["lines"]] == [(4, 1, 1000), (2, 0, 0)]
    assert (balanced(ordering.shop, product), balanced(ordering.shop, other)) == ((5, 1), (5, 0))
    made(ordering.by_shop("hand-over", order))
    assert (balanced(ordering.shop, product), balanced(ordering.shop, other)) == ((4, 0), (5, 0))


@pytest.mark.parametrize(
    ("steps", "state"),
    [
        ([("buyer", "cancel", {})], "cancelled"),
        ([("shop", "refuse", {"reason": "Rusak"})], "refused"),
        ([("shop", "accept", {}), ("buyer", "cancel", {"reason": "Batal"})], "cancelled"),
        ([("shop", "accept", {}), ("shop", "cancel", {"reason": "Habis"})], "cancelled"),
    ],
)
def test_an_order_that_comes_to_nothing_gives_its_units_back(
    ordering: Ordering, steps: list[tuple[str, str, dict[str, Any]]], state: str
) -> None:
    product = ordering.shop.product(on_hand=3)
    order = ordering.order({product: 3})
    for who, deed, body in steps:
        ended = made(ordering.move(deed, order, ordering.buyer if who == "buyer" else ordering.seller, **body))
    assert ended["state"] == state and ended["may_become"] == [] and ended["refund_due"] == 0
    assert balanced(ordering.shop, product) == (3, 0)


def test_the_shop_says_why_and_only_movers_of_the_table_move(ordering: Ordering) -> None:
    product = ordering.shop.product(on_hand=9)
    order = ordering.order({product: 1})
    assert ordering.by_shop("refuse", order).status_code == 422
    assert ordering.by_buyer("accept", order).status_code == 403
    assert ordering.by_shop("place", order, delivery="pickup").status_code == 403
    late = ordering.by_shop("hand-over", order)
    assert refusal(late) == too_late("placed")
    made(ordering.by_shop("accept", order))
    assert ordering.by_shop("cancel", order).status_code == 422
    assert refusal(ordering.by_shop("paid", order)) == too_late("accepted")  # cash is paid at the counter
    assert refusal(ordering.by_shop("ship", order)) == too_late("accepted")
    assert refusal(ordering.by_buyer("receive", order)) == too_late("accepted")
    made(ordering.by_shop("hand-over", order))
    for deed in ("accept", "refuse", "cancel"):
        answer = ordering.by_shop(deed, order, **({} if deed == "accept" else {"reason": "x"}))
        assert refusal(answer) == too_late("handed over")


def test_a_move_that_is_sent_again_does_nothing(ordering: Ordering) -> None:
    product = ordering.shop.product(on_hand=2)
    order = ordering.order({product: 2})
    first, second = (made(ordering.by_shop("accept", order)) for _ in range(2))
    assert first == second
    sold = [made(ordering.by_shop("hand-over", order)) for _ in range(2)]
    assert sold[0] == sold[1] and balanced(ordering.shop, product) == (0, 0)


def test_a_stale_version_is_refused(ordering: Ordering) -> None:
    order = ordering.order({ordering.shop.product(): 1})
    assert ordering.by_shop("accept", order, version=1).status_code == 412
    path = f"/api/orders/{order['id']}/accept"
    stale = ordering.client.post(path, headers={**ordering.seller, "If-Match": '"1"'})
    assert stale.status_code == 412
    accepted = ordering.client.post(path, headers={**ordering.seller, "If-Match": '"2"'})
    assert accepted.status_code == 200 and accepted.headers["etag"] == '"3"'


def test_too_little_holds_nothing(ordering: Ordering) -> None:
    product, other = ordering.shop.product(on_hand=5), ordering.shop.product(on_hand=1)
    refused = ordering.send(items=[{"product_id": product, "quantity": 2}, {"product_id": other, "quantity": 2}])
    assert (refused.status_code, refused.json()["detail"]) == (409, f"Only 1 left of product {other}")
    assert (balanced(ordering.shop, product), balanced(ordering.shop, other)) == ((5, 0), (1, 0))


def test_an_order_is_of_one_shop_that_takes_orders(ordering: Ordering, strict_shop: Shop) -> None:
    product, elsewhere = ordering.shop.product(), ordering.shop.product(supplier_id=strict_shop.supplier())
    both = ordering.send(items=[{"product_id": one, "quantity": 1} for one in (product, elsewhere)])
    assert both.status_code == 422 and "one shop" in both.json()["detail"]
    none = ordering.send(items=[{"product_id": elsewhere, "quantity": 1}])
    assert refusal(none) == (409, "This shop takes no orders.")
    own = ordering.client.post(
        "/api/orders", json={"items": [{"product_id": product, "quantity": 1}]}, headers=ordering.seller
    )
    assert own.status_code == 403
    assert ordering.send().status_code == 422
    twice = [{"product_id": product, "quantity": 1}] * 2
    assert ordering.send(items=twice).status_code == 422
    assert ordering.send(reservations=["0" * 36]).status_code == 404
    assert ordering.send(reservations=["\0" * 36]).status_code == 422
    foreign = reserve(ordering.client, product, 1, headers=ordering.thief).json()
    assert ordering.send(reservations=[foreign["id"]]).status_code == 404


def test_a_key_orders_once(ordering: Ordering) -> None:
    product = ordering.shop.product(on_hand=9)
    body = {"items": [{"product_id": product, "quantity": 1}]}
    headers = {**ordering.buyer, "Idempotency-Key": f"order-{product}"}
    first, second = (ordering.client.post("/api/orders", json=body, headers=headers) for _ in range(2))
    assert first.json() == second.json() and second.headers["idempotent-replayed"] == "true"
    assert balanced(ordering.shop, product) == (9, 1)


def test_a_number_is_read_aloud_easily_and_says_nothing(ordering: Ordering) -> None:
    product = ordering.shop.product(on_hand=9)
    numbers = [ordering.order({product: 1})["number"] for _ in range(3)]
    assert len(set(numbers)) == 3
    for number in numbers:
        assert len(number) == 9 and set(number) <= set("-0123456789ABCDEFGHJKMNPQRSTVWXYZ")


def test_the_states_are_a_table_for_pages(ordering: Ordering) -> None:
    said = ordering.client.get("/api/orders/states").json()
    assert said["states"][0] == "draft" and "returned" in said["ends"]
    accept = {"source": "placed", "target": "accepted", "movers": ["shop"], "stock": "stays", "needs_reason": False}
    assert {**accept, "only": None} in said["moves"]


def test_where_it_goes_is_needed_by_who_brings_it(ordering: Ordering) -> None:
    product = ordering.shop.product(on_hand=9)
    items = [{"product_id": product, "quantity": 1}]
    for place in ({"delivery": "courier"}, {"delivery": "expedition"}, {"delivery": "pickup", "address": ADDRESS}):
        assert ordering.send(items=items, place={**place, "payment_method": "cash"}).status_code == 422
    no_courier = ordering.send(items=items, place={"delivery": "courier", "address": ADDRESS})
    assert (no_courier.status_code, no_courier.json()["detail"]) == (422, "This shop has no courier.")
    assert balanced(ordering.shop, product) == (9, 0)


def test_who_works_for_the_shop_by_now_places_no_draft_there(ordering: Ordering) -> None:
    product = ordering.shop.product(on_hand=1)
    draft = ordering.draft({product: 1})
    with ordering.shop.market.writing() as session:
        buyer = session.get_one(Order, draft["id"]).buyer
        assert buyer is not None
        session.add(
            SupplierMember(supplier_id=ordering.shop.id, user_id=int(buyer.removeprefix("user:")), role="editor")
        )
    why = "You cannot order from a supplier that you work for."
    assert refusal(ordering.by_buyer("place", draft, delivery="pickup")) == (403, why)
    made(ordering.by_buyer("cancel", draft))
    assert balanced(ordering.shop, product) == (1, 0)


@pytest.mark.parametrize("role", ["owner", "editor"])
def test_who_works_for_the_shop_by_now_answers_no_own_order(ordering: Ordering, role: str) -> None:
    order = ordering.order({ordering.shop.product(): 1})
    with ordering.shop.market.writing() as session:
        buyer = session.get_one(Order, order["id"]).buyer
        assert buyer is not None
        user_id = int(buyer.removeprefix("user:"))
        session.add(SupplierMember(supplier_id=ordering.shop.id, user_id=user_id, role=role))
        maker = Principal(buyer, owned_ids=frozenset([ordering.shop.id]))
        _, secret = new_shop_token(session, maker, ordering.shop.id, "Kasir", ["read", "stock"], 1)
    program = {"Authorization": f"Bearer {secret}"}
    assert ordering.read(order).json()["may_become"] == ["cancelled"]
    for headers in (ordering.buyer, program):
        assert refusal(ordering.move("accept", order, headers)) == (403, "Only the shop may do that.")
        listed = ordering.client.get(f"/api/suppliers/{ordering.shop.id}/orders", headers=headers).json()
        assert [one["id"] for one in listed] == [order["id"]]
    assert ordering.move("refuse", order, ordering.buyer, reason="x").status_code == 403
    other = ordering.shop.auth_headers(f"user:{ordering.shop.editor()}")
    made(ordering.move("accept", order, other))
    assert ordering.move("hand-over", order, ordering.buyer).status_code == 403
    made(ordering.move("hand-over", order, other))
    lines = [{"position": 1, "quantity": 1}]
    assert ordering.move("return", order, ordering.buyer, reason="x", lines=lines).status_code == 403
    assert ordering.move("refunds", order, ordering.buyer, amount=1, reason="x").status_code == 403
    made(ordering.move("receive", order, ordering.buyer))


@pytest.mark.parametrize(
    ("scopes", "placed", "accepted"),
    [(["read", "stock"], ["accepted", "refused"], ["handed_over"]), (["read"], [], [])],
)
def test_a_program_reads_only_the_moves_that_it_may_make(
    ordering: Ordering, scopes: list[TokenScope], placed: list[str], accepted: list[str]
) -> None:
    order = ordering.order({ordering.shop.product(): 1})
    with ordering.shop.market.writing() as session:
        maker = Principal(f"supplier:{ordering.shop.id}", owned_ids=frozenset([ordering.shop.id]))
        _, secret = new_shop_token(session, maker, ordering.shop.id, "Kasir", scopes, 1)
    program = {"Authorization": f"Bearer {secret}"}
    assert ordering.read(order, program).json()["may_become"] == placed
    assert ordering.read(order, ordering.seller).json()["may_become"] == ["accepted", "refused"]
    made(ordering.by_shop("accept", order))
    [listed] = ordering.client.get(f"/api/suppliers/{ordering.shop.id}/orders", headers=program).json()
    assert listed["may_become"] == accepted
    assert ordering.move("cancel", order, program, reason="Habis").status_code == 403
    assert (ordering.move("hand-over", order, program).status_code == 200) == ("stock" in scopes)


def test_every_move_of_the_table_that_is_not_the_clocks_has_its_route(ordering: Ordering) -> None:
    routes = ordering.client.get("/openapi.json").json()["paths"]
    assert {move.target for move in MOVES} - DEEDS.keys() == {"expired"}
    assert all(f"/api/orders/{{order_id}}/{deed}" in routes for deed in DEEDS.values())
