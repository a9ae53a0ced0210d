"""The map of the shop: drawn from open geodata, so it needs no internet; what it shows stands in a list, too."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visitor
from tests.browser.looks import on_both_screens, on_both_screens_too
from tests.browser.page_watch import require_accessible
from tests.browser.shop_page import ShopPage, sample_market
from tests.serving import Served, served, settings_with

_AT_MONAS: dict[str, Any] = {
    "geolocation": {"latitude": -6.1754, "longitude": 106.8272},
    "permissions": ["geolocation"],
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    database = sample_market(tmp_path_factory.mktemp("shop-map"))
    with served(settings_with(database_url=database, marketplace_auth="open", assistant_model="off")) as running:
        yield running


@on_both_screens
def test_the_shops_of_the_goods_are_on_a_map_with_their_distance(visitor: Visitor, server: Served) -> None:
    asked: list[str] = []
    visitor.expected = ("favicon.ico",)
    shop = ShopPage(visitor.open(f"{server.url}/live", **_AT_MONAS), visitor.look)
    page, t = shop.page, shop.t
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{server.url}/shop#/?q=laptop")
    expect(shop.goods.first).to_be_visible()
    assert not [url for url in asked if "/market/map/" in url], "the map is loaded by those who open it"
    shop.button("shop.near.me").first.click()
    shop.button("shop.map").click()
    shops = page.get_by_role("list", name=t("shop.map.shops"))
    nearest = shops.get_by_role("listitem").first
    expect(nearest).to_contain_text(re.compile(r"\d km"))
    group, point = (",", ".") if shop.look.language == "en" else (".", ",")
    shown = [text.split()[0] for text in shops.locator(".numbers").all_inner_texts()]
    kilometres = [float(text.replace(group, "").replace(point, ".")) for text in shown]
    assert len(kilometres) > 2 and kilometres == sorted(kilometres)
    expect(_points(page).first).to_be_visible()
    require_accessible(page)
    visitor.picture(page, "shop-map")

    button = nearest.get_by_role("button").first
    button.click()
    expect(button).to_have_attribute("aria-expanded", "true")
    expect(nearest.locator(".product-name").first).to_contain_text("Laptop")
    require_accessible(page)
    visitor.whole_picture(page, "shop-map-chosen")
    page.reload()
    expect(_points(page).first).to_be_visible()
    shop.button("shop.map").click()
    expect(shop.goods.first).to_be_visible()


@on_both_screens_too
def test_a_point_shows_its_goods_and_keys_zoom_and_move(visitor: Visitor, server: Served) -> None:
    shop = ShopPage(visitor.open(f"{server.url}/shop#/map"), visitor.look)
    page, t = shop.page, shop.t
    medan = page.get_by_role("button", name="Deli Digital", exact=True)
    expect(medan).to_be_visible()
    box = _settled(page)
    medan.click()
    expect(medan).to_have_attribute("aria-pressed", "true")
    opened = page.locator(".map-shop[aria-expanded=true]")
    expect(opened).to_contain_text("Medan")
    assert _seen(page) == box, "to choose a shop that is in sight does not move the map"

    frame = page.get_by_role("group", name=t("shop.map.of"))
    frame.focus()
    page.keyboard.press("+")
    nearer = _until_other(page, box)
    assert nearer[2] < box[2]
    page.keyboard.press("ArrowRight")
    moved = _until_other(page, nearer)
    assert moved[0] > nearer[0] and moved[2] == nearer[2]
    frame.hover()
    page.mouse.wheel(0, -400)
    wheeled = _until_other(page, moved)
    assert wheeled[2] < moved[2]
    page.get_by_role("button", name=t("map.farther")).click()
    farther = _until_other(page, wheeled)
    assert farther[2] > wheeled[2]
    place = frame.bounding_box()
    assert place
    middle = (place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    page.mouse.move(*middle)
    page.mouse.down()
    page.mouse.move(middle[0] - 60, middle[1] - 10, steps=4)
    page.mouse.up()
    dragged = _until_other(page, farther)
    assert dragged[0] > farther[0]
    page.get_by_role("button", name=t("map.all")).click()
    assert _until_other(page, dragged) == pytest.approx(box, abs=1)


def test_two_fingers_zoom_the_map(visitor: Visitor, server: Served) -> None:
    page = visitor.open(f"{server.url}/shop#/map", has_touch=True)
    expect(_points(page).first).to_be_visible()
    box, place = _seen(page), page.locator(".map-frame").bounding_box()
    assert place
    x, y = place["x"] + place["width"] / 2, place["y"] + place["height"] / 2
    client = page.context.new_cdp_session(page)

    def touch(kind: str, apart: float) -> None:
        fingers = [] if kind == "touchEnd" else [{"x": x - apart, "y": y, "id": 0}, {"x": x + apart, "y": y, "id": 1}]
        client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": fingers})

    touch("touchStart", 30)
    for apart in (40, 50, 60):
        touch("touchMove", apart)
    touch("touchEnd", 0)
    assert _until_other(page, box)[2] < box[2]


def _points(page: Page) -> Any:
    return page.locator(".map-point")


def _seen(page: Page) -> list[float]:
    """The part of the map that is seen: left, top, width, height in hundredths of a degree."""
    text = page.locator(".map-land").get_attribute("viewBox")
    assert text
    return [float(one) for one in text.split()]


def _settled(page: Page) -> list[float]:
    """What is seen once the map has all of its points: it learns of a few shops at a time."""
    page.wait_for_function("() => document.querySelector('.map-land')")
    seen = [_seen(page)]
    while len(seen) < 6 or any(box != seen[-1] for box in seen[-6:]):
        page.wait_for_timeout(300)
        seen.append(_seen(page))
    return seen[-1]


def _until_other(page: Page, box: list[float]) -> list[float]:
    script = """(old) => document.querySelector('.map-land').getAttribute('viewBox').split(' ').map(Number)
      .some((value, at) => value !== old[at])"""
    page.wait_for_function(script, arg=box)
    return _seen(page)
