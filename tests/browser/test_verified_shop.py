"""A shop shows a card at its desk, an admin decides what is doubtful, and buyers see and use the badge."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.admin_page import PASSWORD, AdminPage, AdminsMarket
from tests.browser.conftest import Visitor
from tests.browser.desk_page import DeskPage
from tests.browser.looks import on_both_screens
from tests.browser.page_watch import require_accessible
from tests.browser.shop_page import ShopPage
from tests.databases import new_sqlite
from tests.marketplace.conftest import SECRET
from tests.marketplace.verification.card_pictures import CERTAIN, ReadsJson
from tests.serving import served, settings_with


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdminsMarket]:
    database_url = new_sqlite(tmp_path_factory.mktemp("verified"))
    settings = settings_with(database_url=database_url, jwt_secret_key=SECRET, assistant_model="off")
    with served(settings) as server:
        server.app.state.marketplace.market.card_check = ReadsJson()
        market = AdminsMarket(server.url, database_url)
        yield market
        market.http.close()


def _card(folder: Path, **read: object) -> Path:
    path = folder / "card.jpg"
    path.write_text(json.dumps({**CERTAIN, **read}))
    return path


@on_both_screens
def test_a_card_is_shown_decided_and_seen(visitor: Visitor, market: AdminsMarket, tmp_path: Path) -> None:
    visitor.expected = ("404",)  # no card was shown yet
    owner = market.person("Sari Specimen")
    place = {"latitude": -6.2, "longitude": 106.8, "city": "Jakarta"}
    name = f"Kios {visitor.look.language} {visitor.look.is_phone}"
    given = {"name": "Sari Specimen", "business_name": name, "email": f"{visitor.look}@example.com".replace(" ", "-")}
    shop = market.made("/api/suppliers/register", {**given, **place}, owner)
    market.product({**shop, "access_token": owner["access_token"]}, name=f"Tampah {name}")
    nik = "32010117088590" + ("03" if visitor.look.is_phone else "02")

    desk = DeskPage(visitor.open(f"{market.url}/desk"), visitor.look)
    desk.sign_in(owner["email"], PASSWORD)
    parts = desk.page.get_by_role("navigation", name=desk.t("page.desk"))
    parts.get_by_role("link", name=desk.t("desk.shop"), exact=True).click()
    desk.main.get_by_role("tab", name=desk.t("own.tab.card"), exact=True).click()
    expect(desk.button("own.card.show")).to_be_disabled()
    desk.page.get_by_role("checkbox", name=desk.t("own.card.consent"), exact=True).check()
    require_accessible(desk.page)
    visitor.picture(desk.page, "desk-card")
    with desk.page.expect_file_chooser() as chooser:
        desk.button("own.card.show").click()
    chooser.value.set_files(_card(tmp_path, nik=nik, name="DEWI LESTARI"))
    expect(desk.main.get_by_text(desk.t("own.card.doubt.name_differs"))).to_be_visible()
    require_accessible(desk.page)
    visitor.picture(desk.page, "desk-card-doubtful")

    admin = AdminPage(visitor.open(f"{market.url}/admin"), visitor.look)
    admin.button(admin.main, "account.login").click()
    admin.sign_in(market.person("Ada Specimen", role="admin"))
    admin.go("cards")
    waiting = admin.item(name)
    expect(waiting).to_contain_text(admin.t("admin.cards.doubt.name_differs", name="Sari Specimen"))
    require_accessible(admin.page)
    visitor.picture(admin.page, "admin-cards")
    admin.button(waiting, "admin.cards.verify.do").click()
    admin.answer("admin.cards.verify.do", "She came with her mother, whose card it is.")
    expect(waiting).to_have_count(0)

    buyer = ShopPage(visitor.open(f"{market.url}/shop"), visitor.look)
    buyer.search("tampah")
    buyer.tick("shop.filter.verified", buyer.t("shop.value.verified.1"))
    expect(buyer.chip(buyer.t("shop.chip.verified"))).to_be_visible()
    found = buyer.goods.filter(has_text=name)
    expect(found.get_by_title(buyer.t("shop.verified.shop"))).to_be_visible()
    require_accessible(buyer.page)
    visitor.picture(buyer.page, "shop-verified")
    found.get_by_role("link").first.click()
    expect(buyer.page.get_by_text(buyer.t("shop.verified.shop"), exact=True)).to_be_visible()

    desk.page.bring_to_front()
    desk.page.reload()
    desk.main.get_by_role("tab", name=desk.t("own.tab.card"), exact=True).click()
    expect(desk.main.get_by_text(desk.t("own.card.verified"), exact=True)).to_be_visible()
    desk.button("own.card.withdraw").click()
    expect(desk.button("own.card.show")).to_be_visible()
    for page in (desk.page, admin.page, buyer.page):
        page.close()
