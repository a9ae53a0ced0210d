"""The desk of a shop beside its goods: holds, stock, reviews, numbers, people and programs, with buyers in the shop."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from playwright.sync_api import APIResponse, Locator, Route, expect

from tests.browser.conftest import Visitor
from tests.browser.desk_page import DeskPage
from tests.browser.looks import DARK_DESKTOP, DESKTOP, LIGHT_PHONE, PHONE, PageLook, with_a_database_each
from tests.browser.page_watch import require_accessible
from tests.browser.shop_page import ShopPage
from tests.databases import new_sqlite
from tests.marketplace.conftest import SECRET
from tests.marketplace.postgres import Postgres
from tests.serving import Served, served, settings_with
from tis.database.database import Database
from tis.marketplace.columns import now
from tis.marketplace.tables import Reservation

_PASSWORD = "a long sentence"
_PLACE = {"latitude": -6.2, "longitude": 106.8, "city": "Jakarta"}
_FAN = {"name": "Kipas meja", "price": 150_000, "stock_quantity": 4, "category": "fan", "sku": "FAN-1"}

on_both = with_a_database_each("database_url", DESKTOP, PHONE)
on_both_too = with_a_database_each("database_url", LIGHT_PHONE, DARK_DESKTOP)


@dataclass(frozen=True)
class ShopOfTest:
    """A shop with one product, whose owner signs in by `email`."""

    url: str
    http: httpx2.Client
    database_url: str
    id: int
    product: int
    email: str
    owner: dict[str, str]

    def person(self, name: str) -> dict[str, Any]:
        """An account, with its `headers`."""
        given = {"name": name, "email": f"{uuid4().hex[:12]}@example.com", "password": _PASSWORD}
        made = _made(self.http.post("/api/users/register", json=given))
        return {**given, "id": made["id"], "headers": {"Authorization": f"Bearer {made['access_token']}"}}


def _made(answer: httpx2.Response) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made


@pytest.fixture(scope="module")
def database_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    if request.param == "sqlite":
        return new_sqlite(tmp_path_factory.mktemp("desk"))
    postgres: Postgres = request.getfixturevalue("postgres")
    return postgres.new_market("desk_shop")


@pytest.fixture(scope="module")
def server(database_url: str) -> Iterator[Served]:
    settings = settings_with(database_url=database_url, jwt_secret_key=SECRET, assistant_model="off")
    with served(settings) as running:
        yield running


@pytest.fixture
def own_shop(server: Served, database_url: str) -> Iterator[ShopOfTest]:
    with httpx2.Client(base_url=server.url, timeout=30) as http:
        owner = {"name": "Sari Specimen", "email": f"{uuid4().hex[:12]}@example.com", "password": _PASSWORD}
        token = _made(http.post("/api/users/register", json=owner))["access_token"]
        headers = {"Authorization": f"Bearer {token}"}
        shop = {"name": "Sari Specimen", "business_name": "Kios Sari", "email": f"{uuid4().hex[:12]}@example.com"}
        shop_id = _made(http.post("/api/suppliers/register", json={**shop, **_PLACE}, headers=headers))["id"]
        product = _made(http.post(f"/api/suppliers/{shop_id}/products", json=_FAN, headers=headers))["id"]
        yield ShopOfTest(server.url, http, database_url, shop_id, product, owner["email"], headers)


class ShopDesk(DeskPage):
    """The parts beside the goods."""

    def show(self, part: str) -> None:
        links = self.page.get_by_role("navigation", name=self.t("page.desk")).get_by_role("link")
        links.filter(has_text=re.compile(f"^{re.escape(self.t(f'desk.{part}'))}")).click()
        expect(self.main.get_by_role("heading", level=1, name=self.t(f"desk.{part}"), exact=True)).to_be_visible()

    def tab(self, message: str) -> None:
        self.main.get_by_role("tab", name=self.t(message), exact=True).click()

    def field(self, message: str, role: Any = "textbox") -> Locator:
        return self.page.get_by_role(role, name=self.t(message), exact=True)


def open_desk(visitor: Visitor, shop: ShopOfTest, email: str | None = None, look: PageLook | None = None) -> ShopDesk:
    desk = ShopDesk(visitor.open(f"{shop.url}/desk", look), look or visitor.look)
    desk.sign_in(email or shop.email, _PASSWORD)
    return desk


@on_both
def test_a_hold_is_answered_on_the_desk_and_the_buyers_page_says_so(visitor: Visitor, own_shop: ShopOfTest) -> None:
    desk = open_desk(visitor, own_shop)
    page, t = desk.page, desk.t
    desk.show("holds")
    expect(page.get_by_role("heading", name=t("holds.none"))).to_be_visible()
    require_accessible(page)
    visitor.picture(page, "desk-holds-none")

    buyer_look = PHONE if visitor.look == DESKTOP else DESKTOP
    shop = ShopPage(visitor.open(f"{own_shop.url}/shop#/p/{own_shop.product}", buyer_look), buyer_look)
    shop.button("shop.hold.do").click()
    shop.register("Dewi Specimen", f"{uuid4().hex[:12]}@example.com", _PASSWORD)
    shop.page.get_by_role("spinbutton", name=shop.t("shop.hold.quantity")).fill("2")
    shop.button("shop.hold.do").click()
    expect(shop.page.get_by_role("timer")).to_be_visible()

    card = page.get_by_role("article", name="Kipas meja")
    expect(card).to_contain_text("Dewi S.")
    expect(card.get_by_role("timer")).to_be_visible()
    expect(card.get_by_role("link", name=re.compile("@example.com"))).to_have_count(0)
    require_accessible(page)
    visitor.picture(page, "desk-holds")
    card.get_by_role("button", name=t("holds.accept"), exact=True).click()
    expect(card.get_by_role("link", name=re.compile("@example.com"))).to_be_visible()
    expect(card).to_contain_text("Dewi Specimen")
    expect(card).to_be_focused()
    require_accessible(page)
    visitor.picture(page, "desk-holds-accepted")
    price = "Rp 300,000" if buyer_look.language == "en" else "Rp 300.000"
    expect(shop.page.get_by_text(shop.t("shop.hold.accepted", number=2, price=price))).to_be_visible()

    card.get_by_role("button", name=t("holds.sold"), exact=True).click()
    expect(page.get_by_role("heading", name=t("holds.none"))).to_be_visible()
    expect(shop.page.get_by_text(shop.t("shop.hold.committed", number=2, price=price))).to_be_visible()

    shop.button("shop.hold.do").click()
    expect(card.get_by_role("timer")).to_be_visible()
    card.get_by_role("button", name=t("holds.refuse"), exact=True).click()
    desk.button("holds.reason.damaged").click()
    require_accessible(page)
    visitor.picture(page, "desk-holds-refuse")
    desk.dialog.get_by_role("button", name=t("holds.refuse.do"), exact=True).click()
    expect(desk.dialog).to_have_count(0)
    expect(shop.page.get_by_text(shop.t("shop.hold.reason", reason=t("holds.reason.damaged")))).to_be_visible()
    desk.tab("holds.tab.all")
    expect(page.get_by_role("article", name="Kipas meja")).to_have_count(2)
    require_accessible(page)
    visitor.picture(page, "desk-holds-all")


@on_both
def test_a_hold_that_is_made_while_the_list_is_read_shows(visitor: Visitor, own_shop: ShopOfTest) -> None:
    buyer = own_shop.person("Budi Specimen")
    desk = ShopDesk(visitor.open(f"{own_shop.url}/desk#/holds"), visitor.look)
    held: list[tuple[Route, APIResponse]] = []

    def answer(route: Route) -> None:
        if held:
            route.continue_()
        else:
            held.append((route, route.fetch()))

    desk.page.route("**/reservations?status=held*", answer)
    with desk.page.expect_response("**/api/notices/stream"):
        desk.sign_in(own_shop.email, _PASSWORD)
    while not held:
        desk.page.wait_for_timeout(50)
    path = f"/api/products/{own_shop.product}/reservations"
    _made(own_shop.http.post(path, json={"quantity": 1}, headers=buyer["headers"]))
    expect(desk.page.locator(".toast", has_text=desk.t("holds.news.made"))).to_be_visible()
    [(route, before)] = held
    route.fulfill(response=before)
    expect(desk.page.get_by_role("article", name="Kipas meja")).to_be_visible()


@on_both_too
def test_the_ledger_says_what_was_left_and_why_it_was_corrected(visitor: Visitor, own_shop: ShopOfTest) -> None:
    buyer = own_shop.person("Budi Specimen")
    held = _made(
        own_shop.http.post(
            f"/api/products/{own_shop.product}/reservations", json={"quantity": 1}, headers=buyer["headers"]
        )
    )
    _made(own_shop.http.post(f"/api/reservations/{held['id']}/commit", headers=own_shop.owner))
    desk = open_desk(visitor, own_shop)
    page, t = desk.page, desk.t
    desk.show("stock")
    movements = page.get_by_role("list", name=t("desk.stock"), exact=True).get_by_role("listitem")
    expect(movements).to_have_count(2)
    expect(movements.first).to_contain_text(f"{t('stock.after')}3")
    desk.button("stock.correct").click()
    desk.field("stock.product", "searchbox").fill("kipas")
    desk.dialog.get_by_role("button", name=re.compile("Kipas meja")).click()
    desk.field("stock.units", "spinbutton").fill("2")
    desk.button("stock.reason.damaged").click()
    expect(desk.dialog.get_by_text(t("stock.will.be", before=3, after=1))).to_be_visible()
    require_accessible(page)
    visitor.picture(page, "desk-stock-correction")
    desk.button("stock.correct.do").click()
    expect(desk.dialog).to_have_count(0)
    expect(movements).to_have_count(3)
    expect(movements.first).to_contain_text(t("stock.reason.damaged"))
    expect(movements.first).to_contain_text(f"{t('stock.after')}1")
    require_accessible(page)
    visitor.picture(page, "desk-stock")
    desk.field("stock.kind", "combobox").select_option("sold")
    expect(movements).to_have_count(1)
    movements.first.get_by_role("button", name="Kipas meja").click()
    desk.field("stock.kind", "combobox").select_option("")
    expect(movements).to_have_count(3)
    desk.button("stock.product.remove", name="Kipas meja").click()
    expect(desk.button("stock.product.remove", name="Kipas meja")).to_have_count(0)


@on_both_too
def test_a_review_is_answered_and_the_shop_page_shows_it(visitor: Visitor, own_shop: ShopOfTest) -> None:
    for name, rating, body in (("Budi Specimen", 2, "Terlambat dua hari."), ("Ani Specimen", 5, "Cepat dan sejuk.")):
        given = {"rating": rating, "title": None, "body": body}
        path = f"/api/products/{own_shop.product}/reviews"
        _made(own_shop.http.post(path, json=given, headers=own_shop.person(name)["headers"]))
    desk = open_desk(visitor, own_shop)
    page, t = desk.page, desk.t
    desk.show("reviews")
    review = page.get_by_role("article", name=t("reviews.of", author="Budi S.", product="Kipas meja"))
    require_accessible(page)
    visitor.picture(page, "desk-reviews")
    review.get_by_role("button", name=t("reviews.answer"), exact=True).click()
    review.get_by_role("textbox").fill("Maaf, kurir kami terlambat.")
    require_accessible(page)
    visitor.picture(page, "desk-reviews-answer")
    review.get_by_role("button", name=t("reviews.answer.send"), exact=True).click()
    expect(review).to_contain_text("Maaf, kurir kami terlambat.")
    review.get_by_role("button", name=t("reviews.answer.change"), exact=True).click()
    review.get_by_role("textbox").fill("Maaf, kurir kami terlambat. Ongkirnya kami ganti.")
    review.get_by_role("button", name=t("reviews.answer.send"), exact=True).click()
    expect(review).to_contain_text("Ongkirnya kami ganti.")

    shop = ShopPage(visitor.open(f"{own_shop.url}/shop#/p/{own_shop.product}"), visitor.look)
    shown = shop.page.locator("article.review").filter(has_text="Terlambat dua hari.")
    expect(shown).to_contain_text(t("shop.review.answer"))
    expect(shown).to_contain_text("Ongkirnya kami ganti.")
    require_accessible(shop.page)
    shown.scroll_into_view_if_needed()
    visitor.picture(shop.page, "shop-review-answered")

    page.reload()
    desk.tab("reviews.tab.unanswered")
    expect(review).to_have_count(0)
    desk.tab("reviews.tab.all")
    review.get_by_role("button", name=t("reviews.answer.remove"), exact=True).click()
    expect(review.get_by_role("button", name=t("reviews.answer"), exact=True)).to_be_visible()


@on_both
def test_a_member_is_invited_accepts_and_works_for_the_shop(visitor: Visitor, own_shop: ShopOfTest) -> None:
    dewi = own_shop.person("Dewi Specimen")
    hers = open_desk(visitor, own_shop, dewi["email"])
    expect(hers.page.get_by_text(str(dewi["id"]), exact=True)).to_be_visible()
    require_accessible(hers.page)

    desk = open_desk(visitor, own_shop)
    page, t = desk.page, desk.t
    desk.show("shop")
    desk.tab("own.tab.members")
    desk.field("members.user").fill(str(dewi["id"]))
    desk.button("members.invite.do").click()
    people = page.get_by_role("listitem")
    expect(people.filter(has_text=t("members.number", number=dewi["id"]))).to_be_visible()
    require_accessible(page)
    visitor.whole_picture(page, "desk-members")

    hers.page.reload()
    invitation = hers.page.get_by_role("region", name=t("invitations"))
    expect(invitation).to_contain_text("Kios Sari")
    require_accessible(hers.page)
    visitor.picture(hers.page, "desk-invitation")
    invitation.get_by_role("button", name=t("invitations.accept"), exact=True).click()
    hers.show("holds")
    hers.show("shop")
    expect(hers.page.get_by_text(t("own.editor"))).to_be_visible()

    page.reload()
    desk.tab("own.tab.members")
    role = page.get_by_role("combobox", name=t("members.role.of", name="Dewi S."), exact=True)
    role.select_option("owner")
    expect(people.filter(has_text=t("members.invited", role=t("members.role.owner")))).to_be_visible()
    desk.button("members.withdraw", name=t("members.number", number=dewi["id"])).click()
    desk.button("members.withdraw.do").click()
    expect(people.filter(has_text=t("members.invited", role=t("members.role.owner")))).to_have_count(0)
    hers.button("own.leave").click()
    hers.button("members.leave.do").click()
    expect(hers.page.get_by_role("heading", name=t("desk.shop.register"))).to_be_visible()


@on_both_too
def test_opening_hours_and_the_profile_are_changed(visitor: Visitor, own_shop: ShopOfTest) -> None:
    desk = open_desk(visitor, own_shop)
    page, t = desk.page, desk.t
    desk.show("shop")
    desk.field("desk.shop.address").fill("Jl. Braga No. 5")
    require_accessible(page)
    visitor.whole_picture(page, "desk-profile")
    save(desk)
    desk.tab("own.tab.hours")
    page.get_by_role("switch", name=t("own.hours.known")).check()
    monday, sunday = (t(f"day.{day}") for day in ("monday", "sunday"))
    page.get_by_label(t("own.hours.from", day=monday), exact=True).fill("08:00")
    page.get_by_label(t("own.hours.to", day=monday), exact=True).fill("12:00")
    desk.button("own.hours.add", day=monday).click()
    page.get_by_label(t("own.hours.to", day=monday), exact=True).last.fill("01:00")
    expect(page.get_by_text(t("own.hours.next.day"))).to_be_visible()
    desk.button("own.hours.more", day=monday).click()
    page.get_by_role("menuitem", name=t("own.hours.copy.workdays")).click()
    expect(page.get_by_text(t("own.hours.next.day"))).to_have_count(5)
    desk.button("own.hours.more", day=sunday).click()
    page.get_by_role("menuitem", name=t("own.hours.whole")).click()
    desk.field("own.zone", "combobox").select_option("WITA")
    require_accessible(page)
    visitor.whole_picture(page, "desk-hours")
    save(desk)
    shop = _made(own_shop.http.get(f"/api/suppliers/{own_shop.id}", headers=own_shop.owner))
    assert shop["address"] == "Jl. Braga No. 5" and shop["time_zone"] == "WITA"
    assert shop["opening_hours"]["friday"] == [["08:00", "12:00"], ["13:00", "01:00"]]
    assert shop["opening_hours"]["sunday"] == [["00:00", "24:00"]]


def save(desk: ShopDesk) -> None:
    with desk.page.expect_response(lambda answer: answer.request.method == "PUT"):
        desk.button("save").click()
    expect(desk.page.get_by_role("alert")).to_have_count(0)


@on_both
def test_a_token_is_shown_once_and_revoked(visitor: Visitor, own_shop: ShopOfTest) -> None:
    desk = open_desk(visitor, own_shop)
    page, t = desk.page, desk.t
    desk.show("shop")
    desk.tab("own.tab.tokens")
    desk.button("tokens.new").click()
    desk.field("tokens.name").fill("Kasir 1")
    page.get_by_role("checkbox", name=re.compile(re.escape(t("tokens.scope.stock.about")))).check()
    require_accessible(page)
    visitor.picture(page, "desk-token-new")
    desk.button("tokens.create").click()
    token = desk.dialog.locator("code").first.inner_text()
    require_accessible(page)
    visitor.picture(page, "desk-token-once")
    read = f"/api/suppliers/{own_shop.id}/stock-movements"
    program = {"Authorization": f"Bearer {token}"}
    assert own_shop.http.get(read, headers=program).status_code == 200
    desk.button("tokens.kept").click()
    expect(desk.dialog).to_have_count(0)
    page.reload()
    desk.tab("own.tab.tokens")
    listed = page.get_by_role("listitem").filter(has_text="Kasir 1")
    expect(listed).to_contain_text(t("tokens.scope.stock"))
    assert token not in page.content()
    require_accessible(page)
    visitor.picture(page, "desk-tokens")
    desk.button("tokens.revoke.of", name="Kasir 1").click()
    desk.button("tokens.revoke").click()
    expect(listed).to_have_count(0)
    assert own_shop.http.get(read, headers=program).status_code == 401


@on_both_too
def test_the_numbers_of_the_week(visitor: Visitor, own_shop: ShopOfTest) -> None:
    _sell(own_shop, [3, 1, 4, 1, 5, 2, 6, 1, 2])
    desk = open_desk(visitor, own_shop)
    page, t, look = desk.page, desk.t, desk.look
    desk.show("numbers")
    sold = page.get_by_role("article").filter(has_text=t("numbers.rupiah")).first
    expect(sold).to_contain_text(f"Rp {look.number(22 * 150_000)}")
    expect(page.locator(".day-chart canvas")).to_be_visible()
    expect(page.locator(".number-lists")).to_contain_text("Kipas meja")
    require_accessible(page)
    visitor.whole_picture(page, "desk-numbers")
    desk.tab("numbers.series.units")
    desk.button("numbers.as.table").click()
    rows = page.get_by_role("row")
    expect(rows).to_have_count(8)
    expect(rows.nth(1)).to_contain_text("3")
    require_accessible(page)
    desk.field("numbers.weeks", "combobox").select_option("2")
    expect(sold).to_contain_text(f"Rp {look.number(25 * 150_000)}")
    expect(rows).to_have_count(15)


def _sell(shop: ShopOfTest, units: list[int]) -> None:
    """So many units today, yesterday, and so on."""
    database = Database(shop.database_url)
    with database.writing() as session:
        for ago, number in enumerate(units):
            at = now() - timedelta(days=ago)
            session.add(
                Reservation(
                    id=str(uuid4()), product_id=shop.product, quantity=number, status="committed",
                    created_at=at, accepted_at=at, expires_at=at, ended_at=at,
                )
            )  # fmt: skip
    database.close()


@on_both
def test_without_the_server_the_desk_says_so_and_tries_again(
    visitor: Visitor, own_shop: ShopOfTest, tmp_path: Path
) -> None:
    visitor.expected = ("ERR_FAILED", "Failed to load resource")
    desk = open_desk(visitor, own_shop)
    page, t = desk.page, desk.t
    page.route("**/api/suppliers/*/numbers*", lambda route: route.abort())
    desk.show("numbers")
    expect(page.get_by_role("alert")).to_contain_text(t("server.unreachable"))
    require_accessible(page)
    visitor.picture(page, "desk-unreachable")
    page.unroute("**/api/suppliers/*/numbers*")
    desk.button("desk.again").click()
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.get_by_text(t("numbers.best.none"))).to_be_visible()


@on_both
def test_an_owner_chooses_what_comes_by_mail_and_names_a_webhook(visitor: Visitor, own_shop: ShopOfTest) -> None:
    desk = open_desk(visitor, own_shop)
    page, t = desk.page, desk.t
    desk.show("shop")
    desk.tab("own.tab.notices")
    desk.field("notices.low").fill("3")
    for label, time in (("notices.quiet.from", "22:00"), ("notices.quiet.until", "06:00")):
        page.get_by_label(t(label), exact=True).fill(time)
    page.get_by_label(t("notices.group.reviews"), exact=True).check()
    require_accessible(page)
    visitor.picture(page, "desk-notices")
    desk.button("save").click()
    expect(page.get_by_text(t("notices.saved")).last).to_be_visible()
    path = f"/api/suppliers/{own_shop.id}"
    chosen = own_shop.http.get(f"{path}/notices/preferences", headers=own_shop.owner).json()
    assert (chosen["low_stock_below"], chosen["quiet_hours"]) == (3, {"from": "22:00", "until": "06:00"})
    assert "reviews" in chosen["mail"]
    desk.button("hooks.new").click()
    desk.field("hooks.url").fill("https://till.example.com/news")
    require_accessible(page)
    visitor.picture(page, "desk-webhook-new")
    desk.button("hooks.create").click()
    assert desk.dialog.locator("code").first.inner_text().startswith("whsec_")
    visitor.picture(page, "desk-webhook-secret")
    desk.button("hooks.kept").click()
    listed = page.get_by_role("listitem").filter(has_text="https://till.example.com/news")
    expect(listed).to_contain_text(t("hooks.on"))
    require_accessible(page)
    visitor.picture(page, "desk-webhooks")
    desk.button("hooks.off").click()
    expect(listed).to_contain_text(t("hooks.off.owner"))
    desk.button("hooks.delete.of", url="https://till.example.com/news").click()
    desk.button("hooks.delete").click()
    expect(listed).to_have_count(0)
    assert own_shop.http.get(f"{path}/webhooks", headers=own_shop.owner).json() == []
