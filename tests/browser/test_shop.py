"""The shop: a buyer searches, compares, holds, and asks the assistant, on a phone and on a desktop."""

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import APIResponse, Page, Route, expect

from tests.browser.conftest import Visitor
from tests.browser.looks import ALL_LOOKS, PHONE, in_looks, on_both_screens, on_both_screens_too
from tests.browser.page_watch import require_accessible
from tests.browser.shop_page import ShopPage, sample_market
from tests.marketplace.conftest import SECRET
from tests.serving import Served, free_port, served, server_process, settings_with, wait_until_live

_G15, _G14 = "Laptop Gaming Rinjani G15", "Laptop Gaming Rinjani G14"
_JAKARTA = {"latitude": -6.2, "longitude": 106.8, "city": "Jakarta"}
_LOST = ("ERR_", "503")
_GOODS = re.compile(r"/api/products(/search)?\?")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Open to its owner, as `make demo` is."""
    database = sample_market(tmp_path_factory.mktemp("shop"))
    with served(settings_with(database_url=database, marketplace_auth="open", assistant_model="off")) as running:
        yield running


@pytest.fixture
def shop(visitor: Visitor, server: Served) -> ShopPage:
    return ShopPage(visitor.open(f"{server.url}/shop"), visitor.look)


@on_both_screens
def test_a_buyer_finds_goods_by_typing_and_by_filters(visitor: Visitor, shop: ShopPage) -> None:
    page, t = shop.page, shop.t
    expect(shop.goods.first).to_be_visible()
    require_accessible(page)
    visitor.picture(page, "shop")
    shop.field.fill("lap")
    suggestions = page.get_by_role("listbox", name=t("shop.suggestions"))
    expect(suggestions.get_by_role("option").first).to_contain_text("laptop")
    require_accessible(page)
    visitor.picture(page, "shop-suggestions")
    with page.expect_response(_GOODS) as found:
        if shop.look.is_phone:
            suggestions.get_by_role("option").first.click()
        else:
            shop.field.press("ArrowDown")
            expect(suggestions.get_by_role("option").first).to_have_attribute("aria-selected", "true")
            shop.field.press("Enter")
    expect(suggestions).to_be_hidden()
    before = len(found.value.json()["items"])
    expect(shop.goods).to_have_count(before)
    expect(shop.names.first).to_contain_text("Laptop")
    shop.tick("shop.filter.brand", "Rinjani")
    chip = shop.chip("rinjani")
    expect(chip).to_be_visible()
    shop.tick("shop.filter.condition", t("shop.value.condition.used"))
    shop.until_found("Laptop Rinjani A14 (bekas)")
    require_accessible(page)
    visitor.picture(page, "shop-filters")
    page.reload()
    shop.until_found("Laptop Rinjani A14 (bekas)")
    shop.chip(t("shop.value.condition.used")).click()
    chip.click()
    expect(shop.goods).to_have_count(before)
    page.go_back()
    expect(chip).to_be_visible()


@on_both_screens_too
def test_what_was_read_in_a_sentence_can_be_taken_away(visitor: Visitor, shop: ShopPage) -> None:
    page, t = shop.page, shop.t
    shop.search("laptop gaming selain merapi di bawah 12 juta di Jakarta")
    shop.until_found(_G15)
    price = shop.chip(
        t("shop.chip.max_price", value="Rp 12,000,000" if shop.look.language == "en" else "Rp 12.000.000")
    )
    expect(price).to_be_visible()
    expect(shop.chip(t("shop.chip.exclude_brand", value="merapi"))).to_be_visible()
    require_accessible(page)
    visitor.picture(page, "shop-understood")
    price.click()
    expect(shop.field).to_have_value("laptop gaming selain merapi di Jakarta")
    shop.until_found(_G15, "Laptop Gaming Rinjani G17 Pro")


@on_both_screens
def test_a_search_without_goods_says_what_would_find_some(visitor: Visitor, shop: ShopPage) -> None:
    page, t = shop.page, shop.t
    shop.search("leptop selain asus di Papua")
    expect(page.get_by_role("status").get_by_text(t("shop.found.none"))).to_be_visible()
    expect(page.get_by_text(t("shop.nothing.in.place", place="Papua"))).to_be_visible()
    expect(page.get_by_role("heading", name=t("shop.nearest", place="Papua"))).to_be_visible()
    require_accessible(page)
    visitor.picture(page, "shop-nothing")
    page.get_by_role("button", name=t("shop.without", name=t("shop.filter.province"))).click()
    expect(shop.names.first).to_contain_text("Laptop")
    expect(shop.chip(t("shop.chip.exclude_brand", value="asus"))).to_be_visible()


@in_looks(*ALL_LOOKS)
def test_a_search_for_what_nobody_sells_leads_back_to_the_goods(visitor: Visitor, shop: ShopPage) -> None:
    page, t = shop.page, shop.t
    shop.search("mobil tesla")
    nothing = page.locator(".nothing")
    expect(nothing).to_contain_text(t("shop.found.hint"))
    expect(page.get_by_role("combobox", name=t("shop.sort"))).to_have_count(0)
    wide = "(said) => said.scrollWidth - said.clientWidth"
    assert page.locator(".results-number").evaluate(wide) <= 0, "no button lies on the words"
    require_accessible(page)
    visitor.picture(page, "shop-nothing-at-all")
    nothing.get_by_role("link", name=t("shop.back"), exact=True).click()
    expect(shop.names.first).to_be_visible()


@on_both_screens_too
def test_products_are_read_and_compared(visitor: Visitor, shop: ShopPage) -> None:
    page, t = shop.page, shop.t
    for name in (_G15, _G14):
        page.get_by_role("checkbox", name=t("shop.compare.choose", name=name)).check()
    shop.button("shop.compare").click()
    row = page.get_by_role("row", name="Price" if shop.look.language == "en" else "Harga")
    expect(row.locator(".best")).to_contain_text("10")
    expect(page.get_by_role("rowheader", name=t("shop.attribute.screen_inch"), exact=True)).to_be_visible()
    require_accessible(page)
    visitor.picture(page, "shop-compare")
    page.get_by_role("link", name=_G15).click()
    expect(page.get_by_role("heading", name=_G15)).to_be_visible()
    expect(page.get_by_text("Lancar untuk game berat")).to_be_visible()
    page.locator(".hours summary").click()
    expect(page.get_by_role("row", name=t("day.sunday"))).to_contain_text("10:00–17:00")
    require_accessible(page)
    visitor.whole_picture(page, "shop-product")
    page.go_back()
    expect(page.get_by_role("heading", name=t("shop.compare"))).to_be_visible()


def test_a_hold_shows_though_the_list_of_holds_was_read_before_it(visitor: Visitor, server: Served) -> None:
    visitor.expected = ("favicon.ico",)
    page = visitor.open(f"{server.url}/live")
    held: list[tuple[Route, APIResponse]] = []

    def answer(route: Route) -> None:
        if held:
            route.continue_()
        else:
            held.append((route, route.fetch()))

    page.route("**/api/reservations?*", answer)
    page.goto(f"{server.url}/shop#/p/3")
    shop = ShopPage(page, visitor.look)
    while not held:
        page.wait_for_timeout(50)
    shop.button("shop.hold.do").click()
    timer = page.get_by_role("timer")
    expect(timer).to_be_visible()
    [(route, before)] = held
    with page.expect_response("**/api/reservations?*"):
        route.fulfill(response=before)
    page.evaluate(_AFTER_AN_ANSWER)
    expect(timer).to_be_visible()
    shop.button("shop.hold.release").click()
    expect(timer).to_have_count(0)


# One that was given before this one is asked for has been read and drawn then.
_AFTER_AN_ANSWER = """async () => {
  await (await fetch("live")).json();
  for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame);
}"""


@on_both_screens
def test_the_shops_answer_to_a_hold_shows_by_itself(visitor: Visitor, tmp_path: Path) -> None:
    settings = settings_with(database_url=sample_market(tmp_path), jwt_secret_key=SECRET, assistant_model="off")
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=30) as http:
        given = {"name": "Sari Specimen", "business_name": "Kios Sari", "email": "kios@example.com", **_JAKARTA}
        answer = http.post("/api/suppliers/register", json=given)
        made = answer.json()
        assert answer.status_code == 200, answer.text
        seller = {"Authorization": f"Bearer {made['access_token']}"}
        goods = {"name": "Kipas meja", "price": 150_000, "stock_quantity": 4, "category": "fan"}
        product = http.post(f"/api/suppliers/{made['id']}/products", json=goods, headers=seller).json()["id"]

        shop = ShopPage(visitor.open(f"{running.url}/shop#/p/{product}"), visitor.look)
        page, t = shop.page, shop.t
        shop.button("shop.hold.do").click()
        shop.register("Dewi Specimen", "dewi@example.com", "a long sentence", picture=lambda: _look_at(visitor, page))
        page.get_by_role("spinbutton", name=t("shop.hold.quantity")).fill("2")
        shop.button("shop.hold.do").click()
        expect(page.get_by_role("timer")).to_be_visible()
        expect(page.get_by_text(t("shop.in.stock", number=2))).to_be_visible()
        require_accessible(page)
        visitor.picture(page, "shop-hold")

        [held] = http.get(f"/api/suppliers/{made['id']}/reservations?status=held", headers=seller).json()
        http.post(f"/api/reservations/{held['id']}/accept", headers=seller).raise_for_status()
        price = "Rp 300,000" if shop.look.language == "en" else "Rp 300.000"
        expect(page.get_by_text(t("shop.hold.accepted", number=2, price=price))).to_be_visible()
        page.reload()
        shop.account("shop.holds")
        expect(page.get_by_role("link", name="Kipas meja")).to_be_visible()
        shop.button("shop.hold.release").click()
        expect(page.get_by_text(t("shop.hold.released"))).to_be_visible()
        page.close()  # before its server


@on_both_screens_too
def test_an_account_reviews_changes_and_ends(visitor: Visitor, tmp_path: Path) -> None:
    visitor.expected = ("403",)  # a wrong password
    settings = settings_with(database_url=sample_market(tmp_path), jwt_secret_key=SECRET, assistant_model="off")
    with served(settings) as running:
        shop = ShopPage(visitor.open(f"{running.url}/shop#/p/1"), visitor.look)
        page, t = shop.page, shop.t
        shop.button("account.login").click()
        shop.register("Dewi Specimen", "dewi@example.com", "a long sentence")
        shop.button("shop.review.write").click()
        page.get_by_role("radio", name=t("shop.stars", number=4)).check()
        page.get_by_role("textbox", name=t("shop.review.title"), exact=True).fill("Cocok")
        require_accessible(page)
        shop.button("shop.review.send").click()
        expect(page.locator("article.review").first).to_contain_text("Dewi S.")

        shop.account("account")
        page.get_by_role("textbox", name=t("shop.preferences.brands"), exact=True).fill("Rinjani, Merapi")
        shop.button("save").first.click()
        expect(page.get_by_text(t("shop.saved")).first).to_be_visible()
        require_accessible(page)
        visitor.whole_picture(page, "shop-account")
        with page.expect_download() as download:
            shop.button("shop.data.export").click()
        assert "rinjani" in download.value.path().read_text()
        shop.button("shop.data.erase").click()
        shop.dialog.get_by_role("textbox", name=t("account.password"), exact=True).fill("wrong")
        shop.button("shop.data.erase.do").click()
        expect(shop.dialog.get_by_role("alert")).to_be_visible()
        shop.dialog.get_by_role("textbox", name=t("account.password"), exact=True).fill("a long sentence")
        shop.button("shop.data.erase.do").click()
        expect(shop.dialog).to_have_count(0)
        expect(shop.button("account.login")).to_be_visible()
        page.close()  # before its server


@on_both_screens_too
def test_the_assistant_answers_with_goods_and_proofs(visitor: Visitor, shop: ShopPage) -> None:
    page, t = shop.page, shop.t
    panel = shop.assistant()
    panel.get_by_role("textbox", name=t("shop.assistant.question")).fill("laptop gaming di bawah 12 juta")
    panel.get_by_role("button", name=t("shop.assistant.send"), exact=True).click()
    answer = panel.get_by_role("article").first
    expect(answer).to_have_attribute("aria-busy", "false")
    expect(answer.locator(".product-name").first).to_have_text(_G14)
    says = t("shop.proof", column="products.price", row=7, value=10499000)
    proof = answer.locator(f"[data-proof={json.dumps(says)}]").first
    expect(proof).to_contain_text("Rp 10.499.000")
    require_accessible(page)
    proof.tap() if shop.look.is_phone else proof.focus()  # a finger has no hover, nor has the keyboard
    shown = "(piece) => [getComputedStyle(piece, '::after').content, getComputedStyle(piece, '::after').position]"
    assert proof.evaluate(shown) == [json.dumps(says), "absolute"]
    visitor.picture(page, "shop-assistant")
    panel.locator(".answered").last.locator(".row-wrap").last.get_by_role("button").first.click()
    expect(panel.locator(".asked")).to_have_count(2)
    expect(panel.locator(".answered").last).to_have_attribute("aria-busy", "false")
    names = answer.locator(".product-name").all_inner_texts()
    page.reload()
    panel = shop.assistant()
    again = panel.get_by_role("article").first
    expect(again.locator(".product-name")).to_have_text(names)
    expect(again.locator(f"[data-proof={json.dumps(says)}]").first).to_be_visible()
    expect(again).to_contain_text(shop.look.pattern("shop.assistant.then"))
    require_accessible(page)
    visitor.picture(page, "shop-assistant-again")


@on_both_screens
def test_what_the_assistant_found_is_held_by_who_presses_the_button(visitor: Visitor, tmp_path: Path) -> None:
    settings = settings_with(database_url=sample_market(tmp_path), marketplace_auth="open", assistant_model="off")
    with served(settings) as running, httpx2.Client(base_url=running.url) as http:
        shop = ShopPage(visitor.open(f"{running.url}/shop"), visitor.look)
        page, t = shop.page, shop.t
        panel = shop.assistant()
        panel.get_by_role("textbox", name=t("shop.assistant.question")).fill("laptop gaming di bawah 12 juta")
        panel.get_by_role("button", name=t("shop.assistant.send"), exact=True).click()
        offer = panel.get_by_role("button", name=t("shop.hold.named", name=_G14), exact=True)
        expect(offer).to_be_visible()
        assert http.get("/api/reservations").json() == []
        require_accessible(page)
        offer.click()
        expect(panel.get_by_role("timer")).to_be_visible()
        expect(offer).to_have_count(0)
        [held] = http.get("/api/reservations").json()
        assert (held["status"], held["quantity"]) == ("held", 1)
        require_accessible(page)
        visitor.picture(page, "shop-assistant-hold")
        panel.get_by_role("button", name=t("shop.hold.release"), exact=True).click()
        expect(offer).to_be_visible()
        page.close()  # before its server


@in_looks(PHONE)
def test_the_address_that_crawlers_know_shows_the_product(visitor: Visitor, server: Served) -> None:
    page = visitor.open(f"{server.url}/shop/products/1")
    expect(page.get_by_role("heading", name=_G15)).to_be_visible()
    expect(page).to_have_title(_G15)
    assert page.url == f"{server.url}/shop#/p/1"
    page.reload()
    expect(page.get_by_role("heading", name=_G15)).to_be_visible()


def test_a_question_is_answered_though_the_server_is_killed_and_the_page_reloaded(
    visitor: Visitor, tmp_path: Path
) -> None:
    visitor.expected = _LOST
    variables = {
        "PORT": str(free_port()),
        "ASSISTANT_MODEL": "off",
        "MARKETPLACE_AUTH": "open",
        "PERSIST_SESSIONS": "1",
        "SESSIONS_DB_PATH": str(tmp_path / "sessions.db"),
        "DATABASE_URL": sample_market(tmp_path),
    }
    with server_process(**variables) as first:
        wait_until_live(first.url, 200)
        shop = ShopPage(visitor.open(f"{first.url}/shop"), visitor.look)
        panel, t = shop.assistant(), shop.t
        expect(shop.button("account.of", name="Sari Specimen")).to_be_visible()
        example = panel.get_by_role("button", name=t("shop.assistant.example.1"), exact=True)
        expect(example).to_be_visible()
        first.popen.send_signal(signal.SIGSTOP)  # it dies with the question in its hands
        example.click()
        expect(panel.locator(".answered[aria-busy=true]")).to_be_visible()
        first.popen.kill()
        expect(panel.get_by_text(t("shop.assistant.reconnecting"))).to_be_visible()
    with server_process(**variables) as second:
        wait_until_live(second.url, 200)
        done = panel.locator(".answered[aria-busy=false]")
        expect(done).to_contain_text(_G15, timeout=60_000)
        text = done.locator(".answered-text").inner_text()
        shop.page.reload()
        expect(panel.locator(".answered-text")).to_contain_text(text.splitlines()[1][:40])


def _look_at(visitor: Visitor, page: Page) -> None:
    require_accessible(page)
    visitor.picture(page, "shop-register")
