"""An order from both sides: asked for in the shop, answered and handed over at the desk, received, and returned."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.admin_page import PASSWORD, AdminsMarket
from tests.browser.conftest import Visitor
from tests.browser.desk_page import DeskPage
from tests.browser.looks import on_both_screens
from tests.browser.page_watch import require_accessible
from tests.browser.shop_page import ShopPage
from tests.databases import new_sqlite
from tests.marketplace.conftest import SECRET
from tests.serving import served, settings_with


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdminsMarket]:
    database_url = new_sqlite(tmp_path_factory.mktemp("orders"))
    settings = settings_with(database_url=database_url, jwt_secret_key=SECRET, assistant_model="off")
    with served(settings) as server:
        market = AdminsMarket(server.url, database_url)
        yield market
        market.http.close()


class OrderDesk(DeskPage):
    def show(self, part: str) -> None:
        parts = self.page.get_by_role("navigation", name=self.t("page.desk"))
        parts.get_by_role("link", name=self.t(f"desk.{part}"), exact=True).click()
        expect(self.main.get_by_role("heading", level=1, name=self.t(f"desk.{part}"), exact=True)).to_be_visible()

    def tab(self, message: str) -> None:
        self.main.get_by_role("tab", name=self.t(message), exact=True).click()

    def act(self, order: Locator, message: str, reason: str | None = None) -> None:
        """Presses, and answers the question."""
        order.get_by_role("button", name=self.t(message), exact=True).click()
        if reason is not None:
            self.dialog.get_by_role("textbox", name=self.t("order.reason"), exact=True).fill(reason)
        self.dialog.get_by_role("button", name=self.t(message), exact=True).click()
        expect(self.dialog).to_have_count(0)


@on_both_screens
def test_an_order_goes_all_the_way_and_one_piece_comes_back(visitor: Visitor, market: AdminsMarket) -> None:
    owner = market.person("Sari Specimen")
    given = {"name": "Sari Specimen", "business_name": "Kios Sari", "email": owner["email"].replace("@", "-shop@")}
    shop = market.made(
        "/api/suppliers/register", {**given, "latitude": -6.2, "longitude": 106.8, "city": "Jakarta"}, owner
    )
    product = market.product({**shop, "access_token": owner["access_token"]}, name="Tampah bambu", price=45_000)

    desk = OrderDesk(visitor.open(f"{market.url}/desk"), visitor.look)
    desk.sign_in(owner["email"], PASSWORD)
    desk.show("shop")
    desk.tab("own.tab.orders")
    desk.page.get_by_role("switch", name=desk.t("rules.takes_orders"), exact=True).check()
    desk.button("rules.band.add").click()
    desk.page.get_by_role("spinbutton", name=desk.t("rules.up_to_km"), exact=True).fill("5")
    desk.page.get_by_role("spinbutton", name=desk.t("rules.fee"), exact=True).fill("10000")
    desk.page.get_by_role("spinbutton", name=desk.t("rules.tax_rate"), exact=True).fill("11")
    desk.button("save").click()
    expect(desk.page.get_by_text(desk.t("own.saved")).first).to_be_visible()
    require_accessible(desk.page)
    visitor.picture(desk.page, "desk-order-rules")

    buyer = ShopPage(visitor.open(f"{market.url}/shop#/p/{product}"), visitor.look)
    buyer.page.get_by_role("spinbutton", name=buyer.t("shop.hold.quantity"), exact=True).fill("2")
    buyer.button("order.do").click()
    buyer.register("Dewi Specimen", f"dewi-{product}@example.com", PASSWORD)
    buyer.button("order.do").click()
    expect(buyer.dialog.get_by_text(buyer.t("order.free"))).to_be_visible()
    buyer.dialog.get_by_role("textbox", name=buyer.t("order.note"), exact=True).fill("Tolong dibungkus")
    require_accessible(buyer.page)
    visitor.picture(buyer.page, "shop-checkout")
    buyer.dialog.get_by_role("button", name=buyer.t("order.place.do"), exact=True).click()
    mine = buyer.page.get_by_role("article", name=re.compile(buyer.t("order.of", number=".*")))
    expect(mine).to_contain_text(buyer.t("order.state.placed"))
    require_accessible(buyer.page)
    visitor.picture(buyer.page, "shop-orders")

    desk.show("orders")
    theirs = desk.page.get_by_role("article", name=re.compile(desk.t("order.of", number=".*")))
    expect(theirs).to_contain_text("Tampah bambu")
    for hidden in ("Tolong dibungkus", "@example.com"):
        expect(theirs).not_to_contain_text(hidden)
    desk.act(theirs, "orders.accepted.do")
    expect(mine).to_contain_text(buyer.t("order.state.accepted"))
    desk.tab("order.state.accepted")
    expect(theirs).to_contain_text("Tolong dibungkus")
    expect(theirs.get_by_role("link", name=re.compile("@example.com"))).to_be_visible()
    require_accessible(desk.page)
    visitor.picture(desk.page, "desk-orders")
    desk.act(theirs, "orders.handed_over.do")
    desk.tab("orders.tab.all")

    buyer.page.get_by_role("button", name=buyer.t("order.receive.do"), exact=True).click()
    buyer.dialog.get_by_role("button", name=buyer.t("order.receive.do"), exact=True).click()
    expect(mine).to_contain_text(buyer.t("order.state.received"))
    buyer.button("order.return.do").click()
    buyer.dialog.get_by_role("textbox", name=buyer.t("order.reason"), exact=True).fill("Retak")
    buyer.dialog.get_by_role("button", name=buyer.t("order.return.do"), exact=True).click()
    expect(theirs).to_contain_text("Retak")
    theirs.get_by_role("button", name=desk.t("orders.returned.do"), exact=True).click()
    desk.dialog.get_by_role("spinbutton").fill("1")
    desk.dialog.get_by_role("textbox", name=desk.t("order.reason"), exact=True).fill("Retak")
    require_accessible(desk.page)
    visitor.picture(desk.page, "desk-order-return")
    desk.dialog.get_by_role("button", name=desk.t("orders.returned.do"), exact=True).click()
    expect(theirs).to_contain_text(desk.t("order.state.returned"))
    expect(mine).to_contain_text(buyer.t("order.line.returned", number=1))
    mine.get_by_text(buyer.t("order.history"), exact=True).click()
    expect(mine.get_by_role("listitem").filter(has_text=buyer.t("order.mover.shop")).first).to_be_visible()
    require_accessible(buyer.page)
    visitor.picture(buyer.page, "shop-order-returned")
    for page in (desk.page, buyer.page):
        page.close()


@on_both_screens
def test_an_order_is_paid_into_the_account_that_the_shop_has_named(visitor: Visitor, market: AdminsMarket) -> None:
    owner = market.person("Budi Specimen")
    given = {"name": "Budi Specimen", "business_name": "Kios Budi", "email": owner["email"].replace("@", "-shop@")}
    place = {"latitude": -6.2, "longitude": 106.8, "city": "Jakarta"}
    shop = market.made("/api/suppliers/register", {**given, **place}, owner)
    product = market.product({**shop, "access_token": owner["access_token"]}, name="Sapu lidi", price=20_000)
    headers = {"Authorization": f"Bearer {owner['access_token']}"}
    rules = market.http.put(f"/api/suppliers/{shop['id']}/order-rules", json={"takes_orders": True}, headers=headers)
    assert rules.status_code == 200, rules.text

    desk = OrderDesk(visitor.open(f"{market.url}/desk"), visitor.look)
    desk.sign_in(owner["email"], PASSWORD)
    desk.show("shop")
    desk.tab("own.tab.payments")
    for field, text in (("bank_name", "Bank Contoh"), ("account_number", "1234567890"), ("account_holder", "Budi S.")):
        desk.page.get_by_role("textbox", name=desk.t(f"methods.{field}"), exact=True).fill(text)
    desk.button("methods.account.save").click()
    expect(desk.button("methods.account.remove")).to_be_visible()
    require_accessible(desk.page)
    visitor.picture(desk.page, "desk-payments")

    buyer = market.person("Dewi Specimen")
    order = {"items": [{"product_id": product, "quantity": 1}], "place": {"payment_method": "transfer"}}
    made = market.made("/api/orders", order, buyer)
    market.made(f"/api/orders/{made['id']}/accept", {}, owner)
    shopper = ShopPage(visitor.open(f"{market.url}/shop"), visitor.look)
    shopper.button("account.login").click()
    for field, text in (("email", buyer["email"]), ("password", PASSWORD)):
        shopper.dialog.get_by_role("textbox", name=shopper.t(f"account.{field}"), exact=True).fill(text)
    shopper.dialog.get_by_role("button", name=shopper.t("account.login.do"), exact=True).click()
    expect(shopper.dialog).to_have_count(0)
    shopper.account("orders")
    box = shopper.page.get_by_role("region", name=shopper.t("pay.how"), exact=True)
    expect(box).to_contain_text("1234567890")
    expect(box).to_contain_text(made["number"])
    require_accessible(shopper.page)
    visitor.picture(shopper.page, "shop-pay")

    desk.show("orders")
    desk.tab("order.state.accepted")
    theirs = desk.page.get_by_role("article", name=desk.t("order.of", number=made["number"]), exact=True)
    desk.act(theirs, "orders.paid.do")
    expect(box).to_have_count(0)
    expect(shopper.page.get_by_text(shopper.t("order.state.paid"), exact=True).first).to_be_visible()

    mine = shopper.page.get_by_role("article", name=shopper.t("order.of", number=made["number"]), exact=True)
    expect(shopper.button("order.cancel.do")).to_have_count(0)
    market.let_time_pass(made["id"])
    expect(mine).to_contain_text(shopper.look.pattern("order.overdue"))
    require_accessible(shopper.page)
    visitor.picture(shopper.page, "shop-order-late")
    shopper.button("order.cancel.do").click()
    shopper.dialog.get_by_role("button", name=shopper.t("order.cancel.do"), exact=True).click()
    expect(mine).to_contain_text(shopper.t("order.state.cancelled"))
    for page in (desk.page, shopper.page):
        page.close()
