"""Messages between buyer and shop: asked, drafted, answered, read, reported and hidden; and about an order."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.admin_page import PASSWORD, AdminPage, AdminsMarket
from tests.browser.conftest import Visitor
from tests.browser.desk_page import DeskPage
from tests.browser.looks import PageLook, on_both_screens
from tests.browser.page_watch import require_accessible
from tests.browser.shop_page import ShopPage
from tests.databases import new_sqlite
from tests.marketplace.conftest import SECRET
from tests.marketplace.pictures.photos import photo
from tests.serving import pictures_url, served, settings_with

_QUESTION = "Halo kak, harganya berapa dan masih ready?"
_ADDED = "Silakan datang."


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdminsMarket]:
    database_url = new_sqlite(tmp_path_factory.mktemp("talks"))
    settings = settings_with(
        database_url=database_url, jwt_secret_key=SECRET, assistant_model="off", pictures_url=pictures_url()
    )
    with served(settings) as server:
        market = AdminsMarket(server.url, database_url)
        yield market
        market.http.close()


class TalkOnPage:
    """The open talk of a page of the shop or of the desk."""

    def __init__(self, page: Page, look: PageLook) -> None:
        self.page, self.t = page, look.t
        self.log = page.get_by_role("log", name=look.t("talk.messages"), exact=True)
        self.field = page.get_by_role("main").get_by_role("textbox", name=look.t("talk.text"), exact=True)

    def message(self, text: str) -> Locator:
        return self.log.get_by_role("listitem").filter(has_text=text)

    def button(self, message: str) -> Locator:
        return self.page.get_by_role("main").get_by_role("button", name=self.t(message), exact=True)

    def begin(self, message: str, text: str) -> None:
        """By the button that asks for the first text, and leads to the talk."""
        self.button(message).click()
        dialog = self.page.get_by_role("dialog")
        dialog.get_by_role("textbox", name=self.t("talk.text"), exact=True).fill(text)
        require_accessible(self.page)
        dialog.get_by_role("button", name=self.t("talk.send"), exact=True).click()
        expect(self.message(text)).to_be_visible()


def opened_desk(visitor: Visitor, market: AdminsMarket, name: str) -> tuple[DeskPage, dict[str, Any]]:
    """Of a shop that is new, where its owner has signed in."""
    owner = market.person(f"{name} Specimen")
    given = {"name": f"{name} Specimen", "business_name": f"Kios {name}"}
    given["email"] = owner["email"].replace("@", "-shop@")
    place = {"latitude": -6.2, "longitude": 106.8, "city": "Jakarta"}
    shop = market.made("/api/suppliers/register", {**given, **place}, owner)
    desk = DeskPage(visitor.open(f"{market.url}/desk"), visitor.look)
    desk.sign_in(owner["email"], PASSWORD)
    return desk, {**shop, "access_token": owner["access_token"]}


def part_of_desk(desk: DeskPage, part: str) -> Locator:
    parts = desk.page.get_by_role("navigation", name=desk.t("page.desk"), exact=True)
    return parts.get_by_role("link", name=re.compile(f"^{re.escape(desk.t(f'desk.{part}'))}"))


@on_both_screens
def test_a_question_is_answered_from_a_draft_and_a_reported_message_is_hidden(
    visitor: Visitor, market: AdminsMarket
) -> None:
    desk, shop = opened_desk(visitor, market, "Sari")
    product = market.product(shop, name="Tampah bambu", price=45_000)
    part_of_desk(desk, "messages").click()
    expect(desk.page.get_by_text(desk.t("talks.desk.none.waiting"))).to_be_visible()
    require_accessible(desk.page)
    visitor.picture(desk.page, "desk-messages-none")

    buyer = ShopPage(visitor.open(f"{market.url}/shop#/p/{product}"), visitor.look)
    buyer.button("talk.ask.shop").click()
    buyer.register("Dewi Specimen", f"dewi-{product}@example.com", PASSWORD)
    mine = TalkOnPage(buyer.page, visitor.look)
    mine.begin("talk.ask.shop", _QUESTION)
    expect(mine.message(_QUESTION)).to_contain_text(buyer.t("talk.sent"))
    buyer.page.set_input_files(
        ".talk-form input[type=file]", {"name": "a.jpg", "mimeType": "image/jpeg", "buffer": photo(product, (640, 420))}
    )
    expect(mine.log.get_by_role("img", name=buyer.t("talk.picture.of", name=buyer.t("talk.you")))).to_be_visible()

    expect(part_of_desk(desk, "messages")).to_contain_text(desk.t("desk.waiting", number=1))
    row = desk.main.get_by_role("listitem").filter(has_text="Dewi S.").get_by_role("link")
    expect(row).to_contain_text(desk.t("talk.unread", number=2))
    visitor.picture(desk.page, "desk-messages")
    row.click()
    theirs = TalkOnPage(desk.page, visitor.look)
    expect(theirs.message(_QUESTION)).to_be_visible()
    theirs.button("talk.draft").click()
    expect(theirs.field).to_have_value(re.compile("45.000"))
    expect(desk.page.get_by_text(desk.t("talk.draft.read"))).to_be_visible()
    theirs.field.fill(f"{theirs.field.input_value()} {_ADDED}")
    require_accessible(desk.page)
    visitor.picture(desk.page, "desk-talk-draft")
    theirs.button("talk.send").click()
    expect(theirs.message(_ADDED)).to_contain_text(desk.t("talk.drafted"))
    expect(theirs.field).to_have_value("")
    expect(part_of_desk(desk, "messages")).not_to_contain_text(desk.t("desk.waiting", number=1))

    answer = mine.message(_ADDED)
    expect(answer).to_contain_text(buyer.t("talk.drafted"))
    expect(mine.message(_QUESTION)).to_contain_text(buyer.t("talk.read"))
    answer.get_by_role("button", name=buyer.t("talk.report"), exact=True).click()
    buyer.dialog.get_by_role("textbox", name=buyer.t("talk.report.reason"), exact=True).fill("Ia minta uang di luar.")
    require_accessible(buyer.page)
    visitor.picture(buyer.page, "shop-talk-report")
    buyer.dialog.get_by_role("button", name=buyer.t("talk.report.do"), exact=True).click()
    expect(answer).to_contain_text(buyer.t("talk.reported"))
    require_accessible(buyer.page)
    visitor.picture(buyer.page, "shop-talk")

    admin = AdminPage(visitor.open(f"{market.url}/admin"), visitor.look)
    admin.button(admin.main, "account.login").click()
    admin.sign_in(market.person("Ada Specimen", role="admin"))
    tile = admin.main.get_by_role("link").filter(has_text=admin.t("admin.overview.reported_messages"))
    expect(tile).to_contain_text("1")
    admin.go("messages")
    reported = admin.item(_ADDED).filter(has_text=admin.t("admin.message.is.waiting"))
    expect(reported).to_contain_text("Ia minta uang di luar.")
    require_accessible(admin.page)
    visitor.picture(admin.page, "admin-messages")
    admin.button(reported, "admin.message.hidden.do").click()
    admin.answer("admin.message.hidden.do")
    expect(reported).to_have_count(0)

    for talk in (mine, theirs):
        expect(talk.message(visitor.t("talk.hidden"))).to_be_visible()
        expect(talk.message(_ADDED)).to_have_count(0)
    visitor.picture(desk.page, "desk-talk-hidden")

    login = {"Authorization": f"Bearer {shop['access_token']}"}
    assert market.http.delete(f"/api/products/{product}", headers=login).status_code == 200
    for page, talk in ((buyer.page, mine), (desk.page, theirs)):
        page.reload()
        expect(talk.message(_QUESTION)).to_be_visible()
        expect(page.get_by_text(visitor.t("talk.closed.product_gone"))).to_be_visible()
        expect(talk.field).to_have_count(0)
        require_accessible(page)
    visitor.picture(buyer.page, "shop-talk-closed")
    buyer.account("talks")
    expect(buyer.page.get_by_role("link").filter(has_text="Kios Sari")).to_be_visible()
    require_accessible(buyer.page)
    visitor.picture(buyer.page, "shop-messages")
    for page in (desk.page, buyer.page, admin.page):
        page.close()


@on_both_screens
def test_buyer_and_shop_write_about_an_order(visitor: Visitor, market: AdminsMarket) -> None:
    desk, shop = opened_desk(visitor, market, "Budi")
    product = market.product(shop, name="Caping", price=30_000)
    login = {"Authorization": f"Bearer {shop['access_token']}"}
    rules = market.http.put(f"/api/suppliers/{shop['id']}/order-rules", json={"takes_orders": True}, headers=login)
    assert rules.status_code == 200, rules.text
    person = market.person("Dewi Specimen")
    place = {"delivery": "pickup", "payment_method": "cash"}
    wanted = {"items": [{"product_id": product, "quantity": 1}], "place": place}
    market.made("/api/orders", wanted, person)

    part_of_desk(desk, "orders").click()
    theirs = TalkOnPage(desk.page, visitor.look)
    theirs.begin("talk.write.buyer", "Kapan mau diambil?")
    theirs.button("talk.draft").click()
    expect(desk.page.get_by_text(desk.t("talk.draft.none"))).to_be_visible()
    require_accessible(desk.page)
    visitor.picture(desk.page, "desk-talk-of-order")

    buyer = ShopPage(visitor.open(f"{market.url}/shop#/orders"), visitor.look)
    buyer.button("account.login").first.click()
    for field, value in (("email", person["email"]), ("password", PASSWORD)):
        buyer.dialog.get_by_role("textbox", name=buyer.t(f"account.{field}"), exact=True).fill(value)
    buyer.dialog.get_by_role("button", name=buyer.t("account.login.do"), exact=True).click()
    mine = TalkOnPage(buyer.page, visitor.look)
    mine.begin("talk.write.shop", "Besok siang.")
    expect(mine.message("Kapan mau diambil?")).to_be_visible()
    expect(theirs.message("Besok siang.")).to_be_visible()
    for page in (desk.page, buyer.page):
        page.close()
