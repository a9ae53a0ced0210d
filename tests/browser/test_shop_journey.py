"""A buyer finds a laptop near Jakarta and holds it; the shop accepts, and both of the buyer's browsers say so."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import APIResponse, Route, expect

from tests.browser.conftest import Visitor
from tests.browser.looks import DARK_DESKTOP, PHONE
from tests.browser.page_watch import require_accessible
from tests.browser.shop_page import ShopPage, fill_with_sample, sample_market
from tests.marketplace.conftest import SECRET
from tests.marketplace.postgres import Postgres
from tests.serving import pictures_url, served, settings_with
from tis.database.database import Database
from tis.marketplace.auth.tokens import begin_chain
from tis.marketplace.market import Market, MarketRules

_SENTENCE = "laptop dekat Jakarta di bawah 12 juta"
_PASSWORD = "a long sentence"


class JourneySeller:
    """The shop, as curl would be it."""

    def __init__(self, http: httpx2.Client, market: Market) -> None:
        self._http, self._market = http, market

    def answer(self, product: int, how: str) -> None:
        supplier = self._http.get(f"/api/products/{product}").json()["supplier_id"]
        with self._market.writing() as session:
            token = begin_chain(session, self._market, f"supplier:{supplier}").access_token
        headers = {"Authorization": f"Bearer {token}"}
        [held] = self._http.get(f"/api/suppliers/{supplier}/reservations?status=held", headers=headers).json()
        assert held["buyer"]["email"] is None or held["accepted_at"], "contact data comes with the acceptance"
        answer = self._http.post(f"/api/reservations/{held['id']}/{how}", headers=headers)
        assert answer.status_code == 200, answer.text
        assert how != "accept" or answer.json()["buyer"]["email"] == "dewi@example.com"


@contextmanager
def _running(url: str) -> Iterator[tuple[str, JourneySeller]]:
    settings = settings_with(database_url=url, jwt_secret_key=SECRET, assistant_model="off")
    market = Market(Database(url), MarketRules(jwt_secret=SECRET, pictures_url=pictures_url()))
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=30) as http:
        yield running.url, JourneySeller(http, market)
    market.close()


@pytest.fixture
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if getattr(request, "param", "sqlite") == "sqlite":
        return sample_market(tmp_path)
    postgres: Postgres = request.getfixturevalue("postgres")
    return fill_with_sample(postgres.new_market("shop_journey"))


@pytest.mark.parametrize("database_url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True)
def test_a_laptop_near_jakarta_is_held_and_the_shops_answer_comes_by_itself(
    visitor: Visitor, database_url: str
) -> None:
    with _running(database_url) as (url, seller):
        phone = ShopPage(visitor.open(f"{url}/shop", PHONE), PHONE)
        page, t = phone.page, phone.t
        phone.search(_SENTENCE)
        expect(phone.names.first).to_contain_text("Laptop")
        expect(phone.chip(t("shop.chip.max_price", value="Rp 12.000.000"))).to_be_visible()
        phone.names.first.click()
        phone.button("shop.hold.do").click()
        phone.register("Dewi Specimen", "dewi@example.com", _PASSWORD)
        phone.button("shop.hold.do").click()
        expect(page.get_by_role("timer")).to_be_visible()
        product = int(page.url.rpartition("/")[2])

        desktop = ShopPage(visitor.open(f"{url}/shop#/holds", DARK_DESKTOP), DARK_DESKTOP)
        desktop.button("account.login").first.click()
        for field, value in (("email", "dewi@example.com"), ("password", _PASSWORD)):
            desktop.dialog.get_by_role("textbox", name=desktop.t(f"account.{field}"), exact=True).fill(value)
        desktop.dialog.get_by_role("button", name=desktop.t("account.login.do"), exact=True).click()
        expect(desktop.page.get_by_role("timer")).to_be_visible()

        reads: list[str] = []
        phone.page.on("request", lambda one: reads.append(one.url) if "/api/reservations/" in one.url else None)
        seller.answer(product, "accept")
        for shop in (phone, desktop):
            expect(shop.page.locator(".note.good")).to_contain_text(shop.look.pattern("shop.hold.accepted"))
        assert len(reads) == 1, "the news came by the stream, and the page read the reservation once"
        require_accessible(page)
        visitor.picture(page, f"shop-accepted-{database_url.partition(':')[0]}")
        seller.answer(product, "commit")
        for shop in (phone, desktop):
            expect(shop.page.locator(".note.good")).to_contain_text(shop.look.pattern("shop.hold.committed"))
        for shop in (phone, desktop):
            shop.page.close()  # before their server


def test_where_the_stream_is_cut_the_page_asks_and_goes_on_when_it_is_back(visitor: Visitor, database_url: str) -> None:
    visitor.expected = ("ERR_", "favicon.ico")
    with _running(database_url) as (url, seller):
        shop = ShopPage(visitor.open(f"{url}/live"), visitor.look)
        page = shop.page
        is_cut = True
        page.route("**/api/notices/stream", lambda route: route.abort() if is_cut else route.continue_())
        page.goto(f"{url}/shop#/p/1")
        shop.button("account.login").first.click()
        shop.register("Dewi Specimen", "dewi@example.com", _PASSWORD)
        shop.button("shop.hold.do").click()
        expect(page.get_by_role("timer")).to_be_visible()
        seller.answer(1, "accept")
        expect(page.locator(".note.good")).to_contain_text(shop.look.pattern("shop.hold.accepted"))
        with page.expect_response("**/api/notices/stream") as found:
            is_cut = False
        assert found.value.status == 200
        seller.answer(1, "commit")
        expect(page.locator(".note.good")).to_contain_text(shop.look.pattern("shop.hold.committed"))
        page.close()  # before its server


def test_an_answer_that_comes_late_does_not_bring_back_what_was_before(visitor: Visitor, database_url: str) -> None:
    """While the stream is cut the page asks; the answer to that is slow, and news overtake it."""
    visitor.expected = ("ERR_", "favicon.ico")
    with _running(database_url) as (url, seller):
        shop = ShopPage(visitor.open(f"{url}/live"), visitor.look)
        page = shop.page
        is_cut, is_slow = True, False
        late: list[tuple[Route, APIResponse]] = []

        def answer_slowly(route: Route) -> None:
            if is_slow and not late:
                late.append((route, route.fetch()))
            else:
                route.continue_()

        page.route("**/api/notices/stream", lambda route: route.abort() if is_cut else route.continue_())
        page.route(re.compile(r"/api/reservations/[0-9a-f-]{36}$"), answer_slowly)
        page.goto(f"{url}/shop#/p/1")
        shop.button("account.login").first.click()
        shop.register("Dewi Specimen", "dewi@example.com", _PASSWORD)
        shop.button("shop.hold.do").click()
        expect(page.get_by_role("timer")).to_be_visible()
        seller.answer(1, "accept")
        expect(page.locator(".note.good")).to_contain_text(shop.look.pattern("shop.hold.accepted"))
        with page.expect_request(re.compile(r"/api/reservations/[0-9a-f-]{36}$")):
            is_slow = True
        with page.expect_response("**/api/notices/stream"):
            is_cut = False
        seller.answer(1, "commit")
        expect(page.locator(".note.good")).to_contain_text(shop.look.pattern("shop.hold.committed"))
        [(route, before)] = late
        with page.expect_event("requestfinished", lambda request: request == route.request):
            route.fulfill(response=before)
        page.evaluate("() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))")
        expect(page.locator(".note.good")).to_contain_text(shop.look.pattern("shop.hold.committed"))
        page.close()  # before its server
