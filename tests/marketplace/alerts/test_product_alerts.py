"""Buyers are told that a price fell or that goods are back: once, and what is true when it is told."""

from datetime import timedelta
from typing import Any

import httpx2
import pytest
from sqlalchemy import select, update

from tests.marketplace.alerts.buyers import Watched
from tests.marketplace.shop import Shop
from tests.marketplace.stock.test_reservations import end, reserve
from tis.errors import Conflict
from tis.marketplace.alerts.product_alerts import add_alert
from tis.marketplace.alerts.schemas import AlertForm
from tis.marketplace.columns import now
from tis.marketplace.context import ServiceRules
from tis.marketplace.kit.principal import Principal
from tis.marketplace.products.service import change_product
from tis.marketplace.promotions.service import PromotionSweep
from tis.marketplace.suppliers.service import set_status
from tis.marketplace.tables import Notice, Product, ProductAlert, Promotion, Supplier


@pytest.fixture
def watched(internet: httpx2.Client, strict_shop: Shop) -> Watched:
    return Watched(internet, strict_shop)


def test_a_price_that_falls_is_told_once(watched: Watched) -> None:
    product = watched.product()
    alert = watched.alert(product, "fall").json()
    watched.change(product, price=90_000)
    watched.look()
    watched.look()
    [told] = watched.told()
    del told["at"]
    assert told == {
        "type": "price.fell",
        "alert_id": alert["id"],
        "product_id": product,
        "supplier_id": watched.shop.id,
        "price": 90_000,
        "price_before": 100_000,
        "role": "buyer",
    }
    assert watched.told(watched.seller) == []


def test_each_fall_is_told_and_no_rise(watched: Watched) -> None:
    product = watched.product()
    watched.alert(product, "fall")
    for price in (90_000, 95_000, 93_000, 93_000, 120_000):
        watched.change(product, price=price, name=f"for {price}")
        watched.look()
    assert watched.prices_told() == [90_000, 93_000]


def test_a_limit_is_told_when_the_price_comes_to_it(watched: Watched) -> None:
    product = watched.product()
    watched.alert(product, "below", max_price=80_000)
    for price in (85_000, 80_000, 70_000, 81_000, 79_000):
        watched.change(product, price=price)
        watched.look()
    assert watched.prices_told() == [80_000, 79_000]  # once each time that it comes below


def test_what_fell_and_rose_again_before_the_look_is_not_told(watched: Watched) -> None:
    product = watched.product()
    watched.alert(product, "fall")
    for price in (50_000, 100_000):
        watched.change(product, price=price)
    watched.look()
    assert watched.told() == []


def test_a_promotion_is_a_fall_of_the_price(watched: Watched) -> None:
    product = watched.product()
    watched.alert(product, "fall")
    watched.alert(product, "below", max_price=85_000)
    times = {"begins_at": (now() + timedelta(hours=1)).isoformat(), "ends_at": (now() + timedelta(hours=9)).isoformat()}
    body = {"price": 80_000, **times}
    watched.client.post(f"/api/products/{product}/promotions", json=body, headers=watched.seller)
    watched.look()
    assert watched.told() == []
    market = watched.shop.market
    with market.writing() as session:
        begun = update(Promotion).where(Promotion.product_id == product)
        session.execute(begun.values(begins_at=now() - timedelta(seconds=1)))
    PromotionSweep(market.reading, market.writing, market.search).move_due()
    watched.look()
    assert watched.prices_told() == [80_000, 80_000]


def test_goods_that_are_back_are_told_once_and_the_request_is_done(watched: Watched) -> None:
    product = watched.product(stock_quantity=0)
    assert watched.alert(product, "stock").status_code == 200
    watched.look()
    assert watched.told() == []
    for units in (3, 0, 3):
        watched.change(product, stock_quantity=units)
        watched.look()
    assert [(one["type"], one["product_id"]) for one in watched.told()] == [("stock.back", product)]
    assert watched.client.get("/api/alerts", headers=watched.buyer).json() == []


def test_units_that_somebody_gives_back_are_back_in_stock(watched: Watched) -> None:
    product = watched.product(stock_quantity=1)
    other = watched.shop.auth_headers(f"user:{watched.shop.user()}")
    held = reserve(watched.client, product, headers=other).json()["id"]
    watched.alert(product, "stock")
    watched.look()
    assert watched.told() == []
    end(watched.client, "release", held, **other)
    watched.look()
    assert [one["type"] for one in watched.told()] == ["stock.back"]


def test_a_shop_that_opens_again_has_its_goods_back(watched: Watched) -> None:
    product = watched.product(stock_quantity=0)
    watched.alert(product, "stock")
    admin, market = Principal("user:0", is_admin=True), watched.shop.market
    with market.writing() as session:
        set_status(session, admin, market.search, watched.shop.id, "suspended")
    watched.look()
    with market.writing() as session:
        set_status(session, admin, market.search, watched.shop.id, "active")
    watched.look()
    assert watched.told() == []  # it is still sold out
    seller = watched.shop.auth_headers(f"supplier:{watched.shop.id}")
    watched.client.put(f"/api/products/{product}", json={"stock_quantity": 2}, headers=seller)
    with market.writing() as session:
        set_status(session, admin, market.search, watched.shop.id, "suspended")
    watched.look()
    assert watched.told() == []  # nobody can buy it
    with market.writing() as session:
        set_status(session, admin, market.search, watched.shop.id, "active")
    watched.look()
    assert [one["type"] for one in watched.told()] == ["stock.back"]


def test_a_price_is_told_when_it_can_be_bought_at(watched: Watched) -> None:
    product = watched.product(stock_quantity=0)
    watched.alert(product, "fall")
    watched.change(product, price=70_000)
    watched.look()
    assert watched.told() == []
    watched.change(product, stock_quantity=1)
    watched.look()
    assert watched.prices_told() == [70_000]


@pytest.mark.parametrize(
    ("kind", "said", "status", "why"),
    [
        ("stock", {}, 409, "It is in stock."),
        ("below", {"max_price": 100_000}, 409, "for 100000 already"),
        ("below", {}, 422, "max_price"),
        ("fall", {"max_price": 1}, 422, "max_price"),
        ("rise", {}, 422, "kind"),
    ],
)
def test_what_can_never_be_news_is_refused(
    watched: Watched, kind: str, said: dict[str, Any], status: int, why: str
) -> None:
    refused = watched.alert(watched.product(), kind, **said)
    assert refused.status_code == status and why in refused.text


def test_alerts_are_listed_replaced_and_deleted_by_their_user_alone(watched: Watched) -> None:
    first, second = watched.product(), watched.product(name="Mouse")
    alert = watched.alert(first, "below", max_price=50_000).json()
    again = watched.alert(first, "below", max_price=60_000).json()
    assert (again["id"], again["max_price"]) == (alert["id"], 60_000)
    other = watched.alert(second, "fall").json()
    path = "/api/alerts"

    def ids(**parameters: Any) -> list[int]:
        return [one["id"] for one in watched.client.get(path, params=parameters, headers=watched.buyer).json()]

    assert ids() == [other["id"], alert["id"]] and ids(product_id=first) == [alert["id"]]
    assert ids(before=other["id"]) == [alert["id"]]
    stranger = watched.shop.auth_headers(f"user:{watched.shop.user()}")
    assert watched.client.delete(f"{path}/{alert['id']}", headers=stranger).status_code == 404
    assert watched.client.delete(f"{path}/{alert['id']}", headers=watched.buyer).json()["id"] == alert["id"]
    assert ids() == [other["id"]]


def test_a_user_has_so_many_alerts_and_no_more(watched: Watched) -> None:
    products = [watched.product() for _ in range(3)]
    user, rules = Principal(f"user:{watched.buyer_id}", watched.buyer_id), ServiceRules(max_alerts_per_user=2)
    with watched.shop.market.writing() as session:
        for product in products[:2]:
            add_alert(session, user, product, AlertForm(kind="fall"), rules)
        add_alert(session, user, products[0], AlertForm(kind="fall"), rules)  # takes the place of its like
        with pytest.raises(Conflict, match="at most 2 alerts"):
            add_alert(session, user, products[2], AlertForm(kind="fall"), rules)


def test_many_buyers_are_told_some_at_a_time_and_each_once(watched: Watched) -> None:
    product = watched.product()
    buyers = [watched.shop.user() for _ in range(23)]
    with watched.shop.market.writing() as session:
        session.add_all(
            ProductAlert(user_id=one, product_id=product, kind="fall", last_price=100_000) for one in buyers
        )
    watched.change(product, price=90_000)
    watched.look(alerts=5, changes=3)
    accounts = [f"user:{one}" for one in buyers]
    with watched.shop.market.reading() as session:
        told = session.scalars(select(Notice.account).where(Notice.account.in_(accounts))).all()
    assert sorted(told) == sorted(accounts)


def test_a_change_that_is_committed_late_is_looked_at(watched: Watched) -> None:
    """A cursor over growing numbers would have passed it by. SQLite has one writer at a time, so nothing is late."""
    if watched.shop.market.database.dialect == "sqlite":
        return
    slow, fast = watched.product(), watched.product()
    watched.alert(slow, "fall")
    watched.look()
    market, seller = watched.shop.market, Principal(is_open=True)
    with market.writing() as session:
        change_product(session, market.search, seller, slow, {"price": 90_000})
        session.flush()
        watched.change(fast, price=50_000)  # takes a later number, and is committed before
        watched.look()
        assert watched.told() == []
    watched.look()
    assert watched.prices_told() == [90_000]


def test_an_erased_account_leaves_no_alerts_and_its_export_has_them(watched: Watched) -> None:
    product = watched.product()
    watched.alert(product, "fall")
    watched.save({"q": "laptop"})
    exported = watched.client.get("/api/users/me/export", headers=watched.buyer).json()
    assert [one["kind"] for one in exported["product_alerts"]] == ["fall"]
    assert [one["parameters"] for one in exported["saved_searches"]] == [[["q", "laptop"]]]
    assert exported["search_finds"] == []
    gone = watched.client.request("DELETE", "/api/users/me", headers=watched.buyer, json={})
    assert gone.status_code == 200, gone.text
    with watched.shop.market.reading() as session:
        assert not session.scalars(select(ProductAlert).where(ProductAlert.user_id == watched.buyer_id)).all()
    watched.change(product, price=10_000)
    watched.look()
    with watched.shop.market.reading() as session:
        assert not session.scalars(select(Notice).where(Notice.account == f"user:{watched.buyer_id}")).all()


@pytest.mark.parametrize(
    ("deed", "reason"), [("delete", "product_gone"), ("suspend", "shop_suspended"), ("close", "shop_closed")]
)
def test_an_alert_on_goods_that_are_not_offered_says_so_and_no_price(watched: Watched, deed: str, reason: str) -> None:
    """Of a product that nobody else can read by now, the price is not told by the list of alerts either."""
    path, product = "/api/alerts", watched.product()
    made = watched.alert(product, "fall").json()
    assert (made["price"], made["closed_reason"]) == (100_000, None)
    with watched.shop.market.writing() as session:
        if deed == "delete":
            session.get_one(Product, product).deleted_at = now()
        else:
            values = {"deleted_at": now()} if deed == "close" else {"status": "suspended"}
            session.execute(update(Supplier).where(Supplier.id == watched.shop.id).values(**values))
    assert watched.client.get(f"/api/products/{product}", headers=watched.buyer).status_code == 404
    [listed] = watched.client.get(path, headers=watched.buyer).json()
    assert listed == {**made, "price": None, "closed_reason": reason}
    assert watched.client.delete(f"{path}/{made['id']}", headers=watched.buyer).json() == listed
    assert watched.client.get(path, headers=watched.buyer).json() == []
