"""Goods that a shop has at two places: a buyer reads what is where, and holds and orders from the one he wants."""

import re
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import Visitor
from tests.browser.looks import ALL_LOOKS, in_looks, on_both_screens, on_both_screens_too
from tests.browser.page_watch import require_accessible, require_accessible_in_both_themes
from tests.browser.shop_page import ShopPage, sample_market
from tests.marketplace.conftest import SECRET
from tests.serving import Served, served, settings_with

_MALANG = "Tugu Elektronik Malang"
_IN_MALANG: dict[str, Any] = {
    "geolocation": {"latitude": -7.96, "longitude": 112.63},
    "permissions": ["geolocation"],
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Open to its owner, as `make demo` is; Tugu Elektronik takes orders."""
    database = sample_market(tmp_path_factory.mktemp("places"))
    with served(settings_with(database_url=database, marketplace_auth="open", jwt_secret_key=SECRET)) as running:
        shop = _spread(running)["supplier_id"]
        rules = {"takes_orders": True, "courier_bands": [{"up_to_km": 20, "fee": 10_000}]}
        answer = httpx2.put(f"{running.url}/api/suppliers/{shop}/order-rules", json=rules)
        assert answer.status_code == 200, answer.text
        yield running


def _spread(server: Served) -> dict[str, Any]:
    """A product of the sample that lies in Surabaya and in Malang."""
    found: list[dict[str, Any]] = httpx2.get(f"{server.url}/api/products?sku=KRN-N5G").json()
    read: dict[str, Any] = httpx2.get(f"{server.url}/api/products/{found[0]['id']}").json()
    assert len(read["places"]) == 2
    return read


def _units(server: Served) -> dict[str, int]:
    return {one["name"]: one["available_quantity"] for one in _spread(server)["places"]}


def _place(shop: ShopPage, name: str) -> Locator:
    group = shop.page.get_by_role("group", name=shop.t("shop.places"), exact=True)
    return group.get_by_role("radio", name=re.compile(f"^{re.escape(name)}"))


def _held_at(shop: ShopPage, name: str) -> Locator:
    return shop.page.get_by_text(shop.t("shop.hold.at", place=name), exact=True)


@on_both_screens
def test_a_buyer_reads_what_is_where_and_holds_at_the_place_that_he_chose(visitor: Visitor, server: Served) -> None:
    product, before = _spread(server), _units(server)
    page = visitor.open(f"{server.url}/shop#/p/{product['id']}")
    shop, t = ShopPage(page, visitor.look), visitor.look.t
    expect(_place(shop, t("shop.places.any"))).to_be_checked()
    expect(_place(shop, _MALANG)).to_be_enabled()
    rows = page.locator(".goods-places > li").filter(has_text="Malang")
    expect(rows).to_contain_text(t("shop.in.stock", number=before[_MALANG]))
    expect(rows.locator(".hours")).to_contain_text("09:00–17:00")
    quantity = page.get_by_role("spinbutton", name=t("shop.hold.quantity"), exact=True)
    expect(quantity).to_have_attribute("max", str(max(before.values())))
    require_accessible_in_both_themes(page)
    visitor.whole_picture(page, "shop-places")
    _place(shop, _MALANG).check()
    expect(quantity).to_have_attribute("max", str(before[_MALANG]))
    require_accessible_in_both_themes(page)
    visitor.picture(page, "shop-places-chosen")
    quantity.fill("2")
    shop.button("shop.hold.do").click()
    expect(_held_at(shop, _MALANG)).to_be_visible()
    assert _units(server) == {**before, _MALANG: before[_MALANG] - 2}
    expect(page.get_by_role("radio")).to_have_count(0)
    require_accessible_in_both_themes(page)
    visitor.picture(page, "shop-places-held")
    shop.button("shop.hold.release").click()
    expect(_place(shop, _MALANG)).to_be_enabled()
    assert _units(server) == before


@on_both_screens_too
def test_without_a_choice_a_hold_is_of_the_place_that_is_nearest_to_the_buyer(visitor: Visitor, server: Served) -> None:
    product = _spread(server)
    page = visitor.open(f"{server.url}/shop#/?q={product['name'].replace(' ', '+')}", **_IN_MALANG)
    shop, t = ShopPage(page, visitor.look), visitor.look.t
    card = shop.goods.filter(has_text=product["name"])
    expect(card.locator(".product-place")).to_contain_text("Surabaya")
    shop.button("shop.near.me").first.click()
    expect(card.locator(".product-place")).to_contain_text(_MALANG)
    expect(card.locator(".product-place")).to_contain_text(re.compile(r"\d km"))
    require_accessible(page)
    visitor.picture(page, "shop-places-card")
    page.goto(f"{server.url}/shop#/p/{product['id']}")
    expect(page.get_by_text(t("shop.places.any.near"), exact=True)).to_be_visible()
    expect(page.locator(".goods-places > li").nth(1)).to_contain_text(_MALANG)
    shop.button("shop.hold.do").click()
    expect(_held_at(shop, _MALANG)).to_be_visible()
    shop.button("shop.hold.release").click()
    expect(shop.button("shop.hold.do")).to_be_visible()


@on_both_screens_too
def test_an_order_is_of_the_chosen_place_whose_courier_is_near(visitor: Visitor, server: Served) -> None:
    product, before = _spread(server), _units(server)
    page = visitor.open(f"{server.url}/shop#/p/{product['id']}", **_IN_MALANG)
    shop, t = ShopPage(page, visitor.look), visitor.look.t
    shop.button("shop.near.me").first.click()
    own = next(name for name in before if name != _MALANG)
    courier = shop.dialog.get_by_role("radio", name=re.compile(f"^{re.escape(t('order.delivery.courier'))}"))
    page.get_by_role("radio", name=re.compile(f"^{re.escape(own)} ?Surabaya")).check()
    shop.button("order.do").click()
    expect(shop.dialog.get_by_text(t("shop.places.from", place=f"{own}, Surabaya"))).to_be_visible()
    expect(courier).to_be_disabled()
    page.keyboard.press("Escape")
    expect(shop.dialog).to_have_count(0)
    _place(shop, _MALANG).check()
    shop.button("order.do").click()
    expect(courier).to_be_enabled()
    expect(shop.dialog.get_by_text(t("shop.places.from", place=_MALANG))).to_be_visible()
    require_accessible(page)
    visitor.picture(page, "shop-places-order")
    shop.dialog.get_by_role("button", name=t("order.place.do"), exact=True).click()
    expect(shop.dialog).to_have_count(0)
    assert _units(server) == {**before, _MALANG: before[_MALANG] - 1}


@in_looks(*ALL_LOOKS)
def test_who_comes_too_late_for_a_place_reads_it_in_the_language_of_the_page(visitor: Visitor, server: Served) -> None:
    visitor.expected = ("409",)
    product, before = _spread(server), _units(server)
    page = visitor.open(f"{server.url}/shop#/p/{product['id']}")
    shop, t = ShopPage(page, visitor.look), visitor.look.t
    _place(shop, _MALANG).check()
    branch = next(one["branch_id"] for one in product["places"] if one["name"] == _MALANG)
    path = f"{server.url}/api/products/{product['id']}/reservations"
    # Who has no token is the buyer of the page here.
    body = {"name": "Dewi Specimen", "email": f"{uuid4()}@example.com", "password": "a sentence nobody guesses"}
    token = httpx2.post(f"{server.url}/api/auth/register", json=body).raise_for_status().json()["access_token"]
    faster = {"Authorization": f"Bearer {token}"}
    wanted = {"quantity": before[_MALANG], "branch_id": branch}
    held = httpx2.post(path, json=wanted, headers=faster).raise_for_status().json()
    shop.button("shop.hold.do").click()
    in_all = sum(before.values()) - before[_MALANG]
    expect(page.get_by_role("alert")).to_have_text(t("fault.insufficient_at_this_place", left=0, in_all=in_all))
    require_accessible(page)
    visitor.picture(page, "shop-places-too-late")
    httpx2.post(f"{server.url}/api/reservations/{held['id']}/release", headers=faster).raise_for_status()
