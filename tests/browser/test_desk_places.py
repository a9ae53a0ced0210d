"""The places of a shop on its desk: added, changed, and closed once nothing lies there."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.admin_page import PASSWORD, AdminsMarket
from tests.browser.conftest import Visitor
from tests.browser.desk_page import DeskPage
from tests.browser.looks import on_both_screens, on_both_screens_too
from tests.browser.page_watch import require_accessible_in_both_themes
from tests.databases import new_sqlite
from tests.marketplace.conftest import SECRET
from tests.serving import served, settings_with


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdminsMarket]:
    database_url = new_sqlite(tmp_path_factory.mktemp("desk-places"))
    settings = settings_with(database_url=database_url, jwt_secret_key=SECRET, assistant_model="off")
    with served(settings) as server:
        market = AdminsMarket(server.url, database_url)
        yield market
        market.http.close()


class OwnShop:
    """Of a new owner, with one product: eight units at its own address."""

    def __init__(self, market: AdminsMarket) -> None:
        self.market, self.owner = market, market.person("Sari Specimen")
        email = self.owner["email"].replace("@", "-shop@")
        place = {"latitude": -7.2575, "longitude": 112.7521, "city": "Surabaya"}
        shop = {"name": "Sari Specimen", "business_name": "Kios Sari", "email": email, **place}
        self.id = market.made("/api/suppliers/register", shop, self.owner)["id"]
        goods = {"name": "Kipas meja", "price": 150_000, "stock_quantity": 8, "category": "fan"}
        self.product = market.made(f"/api/suppliers/{self.id}/products", goods, self.owner)["id"]

    def read(self, path: str) -> Any:
        answer = self.market.http.get(path, headers={"Authorization": f"Bearer {self.owner['access_token']}"})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def branches(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.read(f"/api/suppliers/{self.id}/branches")
        return found

    def move(self, quantity: int, source: int, target: int) -> None:
        body = {"quantity": quantity, "from_branch_id": source, "to_branch_id": target}
        self.market.made(f"/api/products/{self.product}/stock-transfers", body, self.owner)


def open_desk(visitor: Visitor, shop: OwnShop, part: str) -> DeskPage:
    desk = DeskPage(visitor.open(f"{shop.market.url}/desk"), visitor.look)
    desk.sign_in(shop.owner["email"], PASSWORD)
    parts = desk.page.get_by_role("navigation", name=desk.t("page.desk"))
    parts.get_by_role("link", name=desk.t(f"desk.{part}"), exact=True).click()
    return desk


@on_both_screens
def test_an_owner_adds_a_place_changes_it_and_closes_it_once_nothing_lies_there(
    visitor: Visitor, market: AdminsMarket
) -> None:
    visitor.expected = ("409",)
    shop = OwnShop(market)
    desk = open_desk(visitor, shop, "shop")
    page, t = desk.page, desk.t
    desk.main.get_by_role("tab", name=t("own.tab.branches"), exact=True).click()
    expect(page.get_by_text(t("branches.none"))).to_be_visible()
    require_accessible_in_both_themes(page)
    visitor.picture(page, "desk-places-none")
    desk.button("branches.new").click()
    expect(page.get_by_role("textbox", name=t("branches.name"), exact=True)).to_be_focused()
    fields = {"branches.name": "Kios Sari Malang", "desk.shop.city": "Malang", "desk.shop.province": "Jawa Timur"}
    for field, text in {**fields, "desk.shop.latitude": "-7,9666", "desk.shop.longitude": "112,6326"}.items():
        page.get_by_role("textbox", name=t(field), exact=True).fill(text)
    page.get_by_role("switch", name=t("own.hours.known")).check()
    require_accessible_in_both_themes(page)
    visitor.whole_picture(page, "desk-places-new")
    desk.button("save").click()
    row = page.get_by_role("listitem").filter(has_text="Kios Sari Malang")
    expect(row).to_contain_text("Malang, Jawa Timur")
    [branch] = shop.branches()
    assert (branch["latitude"], branch["longitude"]) == (-7.9666, 112.6326)
    assert branch["opening_hours"]["monday"] == [["09:00", "17:00"]] and not branch["shows_place"]
    shop.move(3, 0, branch["id"])

    desk.button("branches.change", name="Kios Sari Malang").click()
    page.get_by_role("textbox", name=t("branches.name"), exact=True).fill("Kios Sari Dinoyo")
    page.get_by_role("switch", name=t("branches.shows_place"), exact=True).check()
    desk.button("save").click()
    close = desk.button("branches.close", name="Kios Sari Dinoyo")
    close.click()
    expect(page.get_by_role("alert")).to_have_text(t("fault.branch_has_stock", units=3, products=1, reserved=0))
    require_accessible_in_both_themes(page)
    visitor.picture(page, "desk-places-refused")
    shop.move(3, branch["id"], 0)
    close.click()
    again = desk.button("branches.open", name="Kios Sari Dinoyo")
    expect(again).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
    require_accessible_in_both_themes(page)
    visitor.picture(page, "desk-places-closed")
    [branch] = shop.branches()
    assert branch["name"] == "Kios Sari Dinoyo" and branch["shows_place"] and not branch["is_active"]
    again.click()
    expect(close).to_be_visible()
    assert shop.branches()[0]["is_active"]


@on_both_screens_too
def test_a_seller_reads_what_lies_where_and_moves_and_corrects_units_of_a_place(
    visitor: Visitor, market: AdminsMarket
) -> None:
    shop = OwnShop(market)
    place = {"name": "Kios Sari Malang", "city": "Malang", "latitude": -7.9666, "longitude": 112.6326}
    branch = market.made(f"/api/suppliers/{shop.id}/branches", place, shop.owner)["id"]
    desk = open_desk(visitor, shop, "stock")
    page, t = desk.page, desk.t
    page.get_by_role("button", name="Kipas meja", exact=True).click()
    expect(desk.button("stock.product.remove", name="Kipas meja")).to_be_visible()
    desk.button("stock.correct").click()
    by_place = desk.dialog.get_by_role("region", name=t("stock.places"), exact=True)
    row = by_place.get_by_role("row").filter(has_text="Kios Sari Malang")
    expect(row.get_by_role("cell")).to_have_text(["0", "0"])
    units = by_place.get_by_role("spinbutton", name=t("stock.move.units"), exact=True)
    expect(units).to_have_attribute("max", "8")
    units.fill("3")
    by_place.get_by_role("button", name=t("stock.move.do"), exact=True).click()
    expect(row.get_by_role("cell")).to_have_text(["3", "0"])
    expect(units).to_have_attribute("max", "5")
    require_accessible_in_both_themes(page)
    by_place.scroll_into_view_if_needed()
    visitor.picture(page, "desk-stock-places")
    desk.dialog.get_by_role("combobox", name=t("stock.place"), exact=True).select_option("Kios Sari Malang")
    expect(desk.dialog.get_by_text(t("stock.will.be", before=3, after=2), exact=True)).to_be_visible()
    desk.button("stock.reason.damaged").click()
    visitor.picture(page, "desk-stock-place-corrected")
    desk.button("stock.correct.do").click()
    expect(desk.dialog).to_have_count(0)
    places = shop.read(f"/api/products/{shop.product}/stock")["places"]
    assert {one["branch_id"]: one["on_hand"] for one in places} == {0: 5, branch: 2}
    expect(page.locator(".movement").filter(has_text=t("stock.kind.transfer"))).to_have_count(2)
