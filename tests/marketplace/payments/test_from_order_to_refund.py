"""A whole order over HTTP: placed, accepted, paid by each way, cancelled by the shop, and the money given back."""

from typing import Any

import httpx2
import pytest

from tests.marketplace.market_server import new_product
from tests.marketplace.payments.codes import qris_text
from tests.marketplace.payments.provider_process import FakeProvider
from tests.marketplace.payments.till import TRANSFER, Till, until
from tis.marketplace.tables import ShopOrderRules


def accepted(till: Till, method: str) -> dict[str, Any]:
    """An order of two of five laptops."""
    with till.server.market.writing() as session:
        session.merge(ShopOrderRules(supplier_id=till.shop_id, takes_orders=True))
    product = new_product(till.shop, till.shop_id, price=75_000, stock_quantity=5)
    place = {"delivery": "pickup", "payment_method": method}
    body = {"items": [{"product_id": product["id"], "quantity": 2}], "place": place}
    order = said(till.buyer.post("/api/orders", json=body))
    return said(till.shop.post(f"/api/orders/{order['id']}/accept", json={}))


def said(answer: httpx2.Response) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


@pytest.mark.parametrize("name", ["midtrans", "xendit"])
def test_an_order_is_paid_by_a_provider_and_its_money_goes_back(name: str, till: Till, provider: FakeProvider) -> None:
    till.connect(name)
    order = accepted(till, "provider")
    assert till.begin(order["id"])["page"]["url"].startswith("https://")
    [payment] = till.payments(order["id"])
    assert payment.amount == order["total"] == 150_000
    provider.pay(payment.id, 150_000)
    provider.send(name, till.callback_url(name), payment.id, "settlement", "settlement")
    until(lambda: till.row(order["id"]).state == "paid")
    paid = said(till.buyer.get(f"/api/orders/{order['id']}"))
    assert [move["mover"] for move in paid["moves"]][-1] == "payment" and paid["paid_at"]
    cancelled = said(till.shop.post(f"/api/orders/{order['id']}/cancel", json={"reason": "Rusak"}))
    assert (cancelled["state"], cancelled["refund_due"]) == ("cancelled", 150_000)
    refund = {"amount": 150_000, "reason": "Rusak"}
    assert said(till.shop.post(f"/api/orders/{order['id']}/refunds", json=refund))["status"] == "done"
    assert said(till.buyer.get(f"/api/orders/{order['id']}"))["refund_due"] == 0


def test_an_order_that_the_buyer_cancelled_is_not_paid_by_money_that_comes_later(
    till: Till, provider: FakeProvider
) -> None:
    till.connect("midtrans")
    order = accepted(till, "provider")
    till.begin(order["id"])
    [payment] = till.payments(order["id"])
    said(till.buyer.post(f"/api/orders/{order['id']}/cancel", json={}))
    provider.pay(payment.id, 150_000)
    provider.send("midtrans", till.callback_url("midtrans"), payment.id, "settlement")
    until(lambda: till.row(order["id"]).refund_due == 150_000)
    seen = said(till.buyer.get(f"/api/orders/{order['id']}"))
    assert (seen["state"], seen["refund_due"]) == ("cancelled", 150_000)


@pytest.mark.parametrize("method", ["transfer", "qris"])
def test_a_shop_says_that_a_transfer_came(method: str, till: Till) -> None:
    till.change(transfer=TRANSFER, qris={"text": qris_text()})
    order = accepted(till, method)
    assert till.begin(order["id"])[method]
    assert said(till.shop.post(f"/api/orders/{order['id']}/paid", json={}))["state"] == "paid"
    assert said(till.buyer.get(f"/api/orders/{order['id']}/payment"))["status"] == "paid"


def test_a_way_that_the_shop_does_not_offer_is_refused(till: Till) -> None:
    with till.server.market.writing() as session:
        session.merge(ShopOrderRules(supplier_id=till.shop_id, takes_orders=True))
    product = new_product(till.shop, till.shop_id)
    place = {"delivery": "pickup", "payment_method": "transfer"}
    body = {"items": [{"product_id": product["id"], "quantity": 1}], "place": place}
    assert till.buyer.post("/api/orders", json=body).status_code in (409, 422)
