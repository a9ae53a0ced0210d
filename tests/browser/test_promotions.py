"""A seller sets a promotion at the desk; a buyer sees it in the shop and asks to be told when the price falls again."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visitor
from tests.browser.desk_page import DeskPage
from tests.browser.looks import on_both_screens
from tests.browser.page_watch import require_accessible
from tests.browser.test_desk_goods import _EMAIL, _PASSWORD, Seller
from tests.databases import new_sqlite
from tests.marketplace.conftest import SECRET
from tests.serving import Served, pictures_url, served, settings_with
from tis.marketplace.columns import now


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    settings = settings_with(
        database_url=new_sqlite(tmp_path), jwt_secret_key=SECRET, assistant_model="off", pictures_url=pictures_url()
    )
    with served(settings) as running:
        yield running


@on_both_screens
def test_a_promotion_that_the_desk_sets_is_shown_in_the_shop(visitor: Visitor, server: Served) -> None:
    with httpx2.Client(base_url=server.url, timeout=30) as http:
        laptop = Seller(http).add("Laptop", 10_000_000, 4)
    desk = DeskPage(visitor.open(f"{server.url}/desk#/goods"), visitor.look)
    desk.sign_in(_EMAIL, _PASSWORD)
    page, t = desk.page, desk.t
    desk.button("goods.actions.of", name="Laptop").click()
    page.get_by_role("menuitem", name=t("goods.promotion"), exact=True).click()
    desk.dialog.get_by_role("textbox", name=t("goods.promotion.price"), exact=True).fill("8.000.000")
    ends = (now() + timedelta(days=3)).strftime("%Y-%m-%dT%H:%M")
    desk.dialog.get_by_label(t("goods.promotion.ends_at", zone="WIB")).fill(ends)
    desk.button("goods.promotion.do").click()
    expect(desk.dialog.get_by_text(t("goods.promotion.state.running"), exact=True)).to_be_visible()
    expect(desk.dialog.get_by_text("−20%")).to_be_visible()
    require_accessible(page)
    visitor.picture(page, "desk-promotion")
    page.keyboard.press("Escape")
    expect(desk.cell("Laptop", "price")).to_contain_text(desk.rupiah(10_000_000))  # the one that the shop sets

    page.goto(f"{server.url}/shop#/p/{laptop}")
    price = page.locator(".product-price.large")
    expect(price).to_contain_text(desk.rupiah(8_000_000))
    expect(price.locator("s")).to_have_text(desk.rupiah(10_000_000))
    expect(price.get_by_text(t("shop.promotion.percent", percent=20))).to_be_visible()
    expect(page.get_by_text(t("shop.promotion.lowest", price=desk.rupiah(10_000_000)))).to_be_visible()
    tell = desk.button("shop.tell.fall")
    tell.click()
    expect(tell).to_have_attribute("aria-pressed", "true")
    require_accessible(page)
    visitor.picture(page, "shop-promotion")
    tell.click()
    expect(tell).to_have_attribute("aria-pressed", "false")
    page.get_by_text(t("shop.tell.below"), exact=True).click()
    visitor.expected = ("409",)  # it is cheaper already
    wanted = page.get_by_role("textbox", name=t("shop.tell.below.price"), exact=True)
    for limit, answer in (
        ("9.000.000", "It can be bought for 8000000 already."),
        ("7.500.000", None),
        ("7000000", None),
    ):
        wanted.fill(limit)
        wanted.press("Enter")
        number = int(limit.replace(".", ""))
        text = answer or t("shop.tell.below.set", price=desk.rupiah(number))
        expect(page.get_by_text(text, exact=True)).to_have_count(1)
    require_accessible(page)
    visitor.picture(page, "shop-tell-below")
    page.locator(".tell-below").get_by_role("button", name=t("delete"), exact=True).click()
    expect(page.locator(".tell-below [role=status]")).to_be_empty()
    page.goto(f"{server.url}/shop#/")
    expect(page.locator(".product-card .product-price s")).to_have_text(desk.rupiah(10_000_000))
    visitor.picture(page, "shop-promotion-list")
    page.goto(f"{server.url}/shop#/?q=laptop&max_price=9000000")
    desk.button("shop.saved.do").click()
    expect(page.locator(".toast").get_by_text(t("shop.saved.done"))).to_be_visible()
    page.goto(f"{server.url}/shop#/saved")
    expect(page.get_by_role("heading", level=2, name=t("shop.saved.searches"), exact=True)).to_be_visible()
    told = page.get_by_role("switch", name=t("shop.saved.tells"), exact=True)
    expect(told).to_be_checked()
    require_accessible(page)
    visitor.picture(page, "shop-saved")
    page.locator(".card").get_by_role("button").click()
    expect(page.get_by_text(t("shop.saved.none"))).to_be_visible()
    page.goto("about:blank")  # ends the stream of notices, for which the server would wait
