"""What delivery costs: the shop's rules, quotes for everybody, and what an order freezes of them."""

import httpx2
import pytest

from tests.marketplace.orders.ordering import ADDRESS, Ordering, made, refusal
from tests.marketplace.shop import Shop
from tis.marketplace.kit.geo import Point, kilometres_between

RULES = {
    "takes_orders": True,
    "courier_bands": [{"up_to_km": 9, "fee": 20_000}, {"up_to_km": 4, "fee": 10_000}],
    "expedition_fee": 30_000,
    "tax_rate": 1100,
    "tax_number": "09.254.294.3-407.000",
}


@pytest.fixture
def ordering(internet: httpx2.Client, strict_shop: Shop) -> Ordering:
    ordering = Ordering(internet, strict_shop)
    made(internet.put(f"/api/suppliers/{strict_shop.id}/order-rules", json=RULES, headers=ordering.seller))
    return ordering


def quoted(ordering: Ordering, **place: float) -> dict[str, dict[str, object]]:
    answer = ordering.client.get(f"/api/suppliers/{ordering.shop.id}/order-quote", params=place)
    return {one["delivery"]: one for one in made(answer)["deliveries"]}


def north(km: float) -> dict[str, float]:
    """A place so far from the shop, which stands at -6.2, 106.8."""
    return {"latitude": -6.2 + km / 111.195, "longitude": 106.8}


def test_the_courier_costs_what_its_band_says(ordering: Ordering) -> None:
    assert round(kilometres_between(Point(-6.2, 106.8), Point(**north(4))), 2) == 4
    fees = {km: quoted(ordering, **north(km))["courier"]["fee"] for km in (0, 3.9, 4.1, 8.9, 9.1)}
    assert fees == {0: 10_000, 3.9: 10_000, 4.1: 20_000, 8.9: 20_000, 9.1: None}
    far = quoted(ordering, **north(12))["courier"]
    assert far["reason"] == "It is 12.0 km away, and the courier of this shop goes 9 km."
    assert quoted(ordering)["courier"]["fee"] is None
    assert (quoted(ordering)["pickup"]["fee"], quoted(ordering)["expedition"]["fee"]) == (0, 30_000)


def test_a_hidden_place_is_not_told_by_fees(ordering: Ordering, internet: httpx2.Client) -> None:
    """Distances count from the place that is shown, which is rounded."""
    hidden = ordering.shop.supplier(latitude=-6.2049, longitude=106.8)
    headers = ordering.shop.auth_headers(f"supplier:{hidden}")
    made(internet.put(f"/api/suppliers/{hidden}/order-rules", json=RULES, headers=headers))
    answer = internet.get(f"/api/suppliers/{hidden}/order-quote", params={"latitude": -6.2, "longitude": 106.8})
    assert made(answer)["deliveries"][1]["distance_km"] == 0.0


def test_an_order_freezes_its_fee_its_taxes_and_its_names(ordering: Ordering, internet: httpx2.Client) -> None:
    product = ordering.shop.product(on_hand=9, price=100_000, name="Kipas meja")
    order = ordering.order({product: 1}, delivery="courier", address={**ADDRESS, **north(5)})
    assert (order["items_total"], order["delivery_fee"], order["total"]) == (100_000, 20_000, 120_000)
    assert (order["tax_rate"], order["tax_included"], order["tax_number"]) == (1100, 11_892, RULES["tax_number"])
    rules = {**RULES, "courier_bands": [], "tax_rate": 0, "return_days": 1}
    made(internet.put(f"/api/suppliers/{ordering.shop.id}/order-rules", json=rules, headers=ordering.seller))
    made(internet.put(f"/api/products/{product}", json={"name": "Kipas baru", "price": 1}, headers=ordering.seller))
    same = ordering.read(order).json()
    assert same == order
    far = ordering.send(
        items=[{"product_id": product, "quantity": 1}],
        place={"delivery": "courier", "address": {**ADDRESS, **north(5)}, "payment_method": "cash"},
    )
    assert refusal(far) == (422, "This shop has no courier.")


def test_an_expedition_is_not_paid_in_cash(ordering: Ordering) -> None:
    place = {"delivery": "expedition", "address": ADDRESS, "payment_method": "cash"}
    cash = ordering.send(items=[{"product_id": ordering.shop.product(), "quantity": 1}], place=place)
    assert refusal(cash) == (422, "An expedition takes no cash: pay before it is sent.")
    by_bank = {**place, "payment_method": "transfer"}
    other = ordering.send(items=[{"product_id": ordering.shop.product(), "quantity": 1}], place=by_bank)
    assert refusal(other) == (422, "This shop does not take transfer.")


def test_only_owners_set_the_rules_and_see_what_changed_meanwhile(ordering: Ordering, internet: httpx2.Client) -> None:
    path = f"/api/suppliers/{ordering.shop.id}/order-rules"
    editor = ordering.shop.auth_headers(f"user:{ordering.shop.editor()}")
    assert internet.put(path, json=RULES, headers=editor).status_code == 403
    seen = internet.get(path, headers=editor)
    assert seen.json()["courier_bands"] == [{"up_to_km": 4, "fee": 10_000}, {"up_to_km": 9, "fee": 20_000}]
    assert internet.get(path, headers=ordering.thief).status_code == 403
    stale = internet.put(path, json={**RULES, "version": seen.json()["version"] + 1}, headers=ordering.seller)
    assert stale.status_code == 412
    again = internet.put(path, json=RULES, headers={**ordering.seller, "If-Match": seen.headers["etag"]})
    assert again.status_code == 200 and again.headers["etag"] == seen.headers["etag"], "nothing changed"
    twice = {**RULES, "courier_bands": [{"up_to_km": 4, "fee": 1}, {"up_to_km": 4, "fee": 2}]}
    assert internet.put(path, json=twice, headers=ordering.seller).status_code == 422


@pytest.mark.parametrize(
    "wrong",
    [
        {"pay_days": 3},
        {"takes_orders": "yes"},
        {"takes_orders": 1},
        {"accept_hours": "24"},
        {"pay_hours": 24.0},
        {"handover_hours": True},
        {"return_days": "7"},
        {"tax_rate": "11"},
        {"expedition_fee": "20000"},
        {"courier_bands": [{"up_to_km": 4, "fee": "10000"}]},
        {"courier_bands": [{"up_to_km": 4, "fee": 1, "name": "x"}]},
        {"version": "1"},
        {"handover_hours": 0},
        {"handover_hours": 721},
    ],
    ids=str,
)
def test_rules_that_are_not_as_the_form_says_are_refused(ordering: Ordering, wrong: dict[str, object]) -> None:
    path = f"/api/suppliers/{ordering.shop.id}/order-rules"
    before = ordering.client.get(path, headers=ordering.seller).json()
    answer = ordering.client.put(path, json={**RULES, **wrong}, headers=ordering.seller)
    assert answer.status_code == 422 and next(iter(wrong)) in answer.text
    assert ordering.client.get(path, headers=ordering.seller).json() == before


def test_a_shop_that_said_nothing_takes_no_orders(ordering: Ordering, internet: httpx2.Client) -> None:
    other = ordering.shop.supplier()
    said = made(internet.get(f"/api/suppliers/{other}/order-quote"))
    assert said["takes_orders"] is False and said["payment_methods"] == ["cash"]
    headers = ordering.shop.auth_headers(f"supplier:{other}")
    assert made(internet.get(f"/api/suppliers/{other}/order-rules", headers=headers))["version"] == 0
    assert internet.get("/api/suppliers/999999/order-quote").status_code == 404
    assert internet.get(f"/api/suppliers/{other}/order-quote?latitude=1").status_code == 422
