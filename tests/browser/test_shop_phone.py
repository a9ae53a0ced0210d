"""The shop on a phone with a slow line: little is sent before the goods stand, and pictures wait until one scrolls."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visitor
from tests.browser.looks import LIGHT_PHONE, in_looks
from tests.browser.shop_page import ShopPage, sample_market
from tests.serving import Served, served, settings_with

_MAX_FIRST_BYTES = 200_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    database = sample_market(tmp_path_factory.mktemp("shop-phone"))
    with served(settings_with(database_url=database, marketplace_auth="open", assistant_model="off")) as running:
        yield running


# What was asked for until the goods and the pictures in sight stood. Parts that are seldom shown are read afterwards.
_WATCH = """(() => {
  const look = () => {
    const inSight = (one) => one.getBoundingClientRect().top < innerHeight;
    const pictures = [...document.querySelectorAll(".goods img")].filter(inSight);
    const stands = pictures.length && pictures.every((one) => one.complete && one.naturalWidth);
    if (stands) window.stoodAt ??= performance.now();
  };
  new MutationObserver(look).observe(document, { childList: true, subtree: true, attributes: true });
  document.addEventListener("load", look, true);
})();"""
_LOADED = """() => [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
  .filter((one) => one.startTime < window.stoodAt)
  .map((one) => [one.name.split("/").pop().slice(0, 40), one.transferSize])"""


@in_looks(LIGHT_PHONE)
def test_the_first_visit_of_a_phone_loads_less_than_200_kilobytes(visitor: Visitor, server: Served) -> None:
    visitor.expected = ("favicon.ico",)
    page = visitor.open(f"{server.url}/live")
    page.add_init_script(_WATCH)
    page.goto(f"{server.url}/shop")
    shop = ShopPage(page, visitor.look)
    expect(shop.goods.first).to_be_visible()
    expect(shop.field).to_be_enabled()
    page.wait_for_function("() => window.stoodAt")
    loaded = sorted(((size, name) for name, size in page.evaluate(_LOADED)), reverse=True)
    total = sum(size for size, _ in loaded)
    assert 50_000 < total < _MAX_FIRST_BYTES, (total, loaded)
    assert "provinces.js" not in {name for _, name in loaded}


@in_looks(LIGHT_PHONE)
def test_pictures_of_the_list_wait_until_one_scrolls_to_them_and_have_their_place(
    visitor: Visitor, server: Served
) -> None:
    shop = ShopPage(visitor.open(f"{server.url}/shop"), visitor.look)
    pictures = shop.page.locator(".results .goods img")
    expect(pictures.first).to_be_visible()
    lazy = pictures.evaluate_all("(all) => all.map((one) => [one.loading, one.hasAttribute('srcset')])")
    assert len(lazy) > 10 and all(one == ["lazy", True] for one in lazy)
    sizes = pictures.first.evaluate("(one) => [one.clientWidth, one.clientHeight]")
    assert sizes[0] > 100 and sizes[1] == pytest.approx(sizes[0] * 3 / 4, abs=2), "its place is kept before it comes"
