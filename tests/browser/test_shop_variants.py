"""A buyer chooses size and colour of a product whose variants have stock and price of their own."""

import re
from collections.abc import Iterator

import httpx2
import pytest
from playwright.sync_api import Route, expect

from tests.browser.conftest import Visitor
from tests.browser.looks import on_both_screens
from tests.browser.page_watch import require_accessible
from tests.browser.shop_page import ShopPage, sample_market
from tests.marketplace.conftest import SECRET
from tests.serving import Served, served, settings_with

_SHEET = """sku,name,price,stock_quantity,category,description,variant_group,variant_values
SR-41H,Sandal Gunung Semeru,249000,4,shoes,Sol karet yang tidak licin,Sandal Semeru,ukuran: 41; warna: hitam
SR-42H,Sandal Gunung Semeru,249000,0,shoes,Sol karet yang tidak licin,Sandal Semeru,ukuran: 42; warna: hitam
SR-41M,Sandal Gunung Semeru,259000,2,shoes,Sol karet yang tidak licin,Sandal Semeru,ukuran: 41; warna: merah
SR-43M,Sandal Gunung Semeru,279000,3,shoes,Sol karet yang tidak licin,Sandal Semeru,ukuran: 43; warna: merah
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Open to its owner, as `make demo` is, with a sandal in three sizes and two colours."""
    database = sample_market(tmp_path_factory.mktemp("variants"))
    with served(settings_with(database_url=database, marketplace_auth="open", jwt_secret_key=SECRET)) as running:
        headers = {"Content-Type": "text/csv"}
        answer = httpx2.post(f"{running.url}/api/suppliers/1/products/import", content=_SHEET, headers=headers)
        assert answer.status_code == 200, answer.text
        yield running


@pytest.fixture
def ids(server: Served) -> dict[str, int]:
    goods = httpx2.get(f"{server.url}/api/products?category=shoes&variants=all&available_only=false&supplier_id=1")
    return {one["sku"]: one["id"] for one in goods.json()}


@on_both_screens
def test_a_buyer_chooses_a_variant_and_holds_it(visitor: Visitor, server: Served, ids: dict[str, int]) -> None:
    page = visitor.open(f"{server.url}/shop#/?q=sandal+semeru")
    shop, t = ShopPage(page, visitor.look), visitor.look.t
    card = shop.goods.filter(has_text="Sandal Gunung Semeru")
    expect(card).to_have_count(1)
    said = f"2 {t('shop.axis.ukuran')}, 2 {t('shop.axis.warna')}, "  # of those that can be bought
    expect(card.locator(".product-variants")).to_contain_text(said)
    visitor.picture(page, "shop-variants-list")
    page.goto(f"{server.url}/shop#/p/{ids['SR-41H']}")
    sizes = page.get_by_role("group", name=t("shop.attribute.ukuran"))
    colors = page.get_by_role("group", name=t("shop.attribute.warna"))
    price = page.locator(".product-price.large")
    expect(sizes.get_by_role("radio")).to_have_count(3)
    expect(sizes.get_by_role("radio", name="41")).to_be_checked()
    expect(sizes.get_by_role("radio", name=f"42 ({t('shop.variant.sold')})")).to_be_visible()
    expect(sizes.get_by_role("radio", name=f"43 ({t('shop.variant.missing')})")).to_be_visible()
    expect(price).to_contain_text("249")
    require_accessible(page)
    visitor.picture(page, "shop-variants")
    colors.get_by_role("radio", name="hitam").focus()
    page.keyboard.press("ArrowUp")
    expect(price).to_contain_text("259")
    expect(colors.get_by_role("radio", name="merah")).to_be_focused()
    expect(page).to_have_url(f"{server.url}/shop#/p/{ids['SR-41M']}")
    sizes.get_by_role("radio", name="43").check()
    expect(price).to_contain_text("279")
    expect(page).to_have_url(f"{server.url}/shop#/p/{ids['SR-43M']}")
    colors.get_by_role("radio", name="hitam").check()  # there is no black 43: the best black one
    expect(sizes.get_by_role("radio", name="41")).to_be_checked()
    expect(page).to_have_url(f"{server.url}/shop#/p/{ids['SR-41H']}")
    page.reload()
    expect(price).to_contain_text("249")
    page.go_back()
    expect(card).to_have_count(1)


@on_both_screens
def test_a_variant_that_is_sold_out_says_so_and_cannot_be_held(
    visitor: Visitor, server: Served, ids: dict[str, int]
) -> None:
    page = visitor.open(f"{server.url}/shop#/p/{ids['SR-42H']}")
    shop = ShopPage(page, visitor.look)
    expect(page.get_by_text(visitor.look.t("shop.sold.out"), exact=True).first).to_be_visible()
    expect(shop.button("shop.hold.do")).to_have_count(0)
    page.get_by_role("group", name=visitor.look.t("shop.attribute.ukuran")).get_by_role("radio", name="41").check()
    expect(shop.button("shop.hold.do")).to_be_visible()
    require_accessible(page)


@on_both_screens
def test_what_is_shown_while_a_choice_is_read_can_be_read_and_used(
    visitor: Visitor, server: Served, ids: dict[str, int]
) -> None:
    page = visitor.open(f"{server.url}/shop#/p/{ids['SR-41H']}")
    shop, t = ShopPage(page, visitor.look), visitor.look.t
    expect(shop.button("shop.hold.do")).to_be_visible()
    held_back: list[Route] = []
    page.route(re.compile(rf"/api/products/{ids['SR-41M']}\?"), lambda route: held_back.append(route))
    page.get_by_role("group", name=t("shop.attribute.warna")).get_by_role("radio", name="merah").check()
    expect(page.locator(".product")).to_have_attribute("aria-busy", "true")
    expect(page.locator(".product-price.large")).to_contain_text("259")
    require_accessible(page)
    expect(shop.button("shop.hold.do")).to_be_enabled()
    for route in held_back:
        route.continue_()
    expect(page.locator(".product")).to_have_attribute("aria-busy", "false")


@on_both_screens
def test_earlier_prices_are_a_chart_that_says_its_bounds_and_a_table(
    visitor: Visitor, server: Served, ids: dict[str, int]
) -> None:
    path = f"{server.url}/api/products/{ids['SR-43M']}"
    for price in (299_000, 265_000, 279_000):
        assert httpx2.put(path, json={"price": price}).status_code == 200
    page, t = visitor.open(f"{server.url}/shop#/p/{ids['SR-43M']}"), visitor.t
    chart = page.get_by_role("figure")
    bounds = t(
        "shop.price.between", least=f"Rp {visitor.look.number(265_000)}", most=f"Rp {visitor.look.number(299_000)}"
    )
    expect(chart).to_contain_text(bounds)
    chart.get_by_text(t("shop.price.table"), exact=True).click()
    expect(chart.get_by_role("row")).to_have_count(len(httpx2.get(f"{path}/price-history").json()))
    chart.scroll_into_view_if_needed()
    require_accessible(page)
    visitor.picture(page, "shop-prices")
