"""The shop on a phone with a slow line: little is sent before the goods stand, and pictures wait until one scrolls."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

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


@in_looks(LIGHT_PHONE)
def test_the_first_visit_of_a_phone_loads_less_than_200_kilobytes(visitor: Visitor, server: Served) -> None:
    page = visitor.open("about:blank")
    session = page.context.new_cdp_session(page)
    kinds: dict[str, str] = {}
    loaded: Counter[str] = Counter()

    def note_kind(event: dict[str, Any]) -> None:
        kinds[event["requestId"]] = f"{event['type']} {event['response']['url'].rpartition('/')[2][:40]}"

    def note_bytes(event: dict[str, Any]) -> None:
        loaded[kinds.get(event["requestId"], "?")] += int(event["encodedDataLength"])

    session.on("Network.responseReceived", note_kind)
    session.on("Network.loadingFinished", note_bytes)
    session.send("Network.enable")
    page.goto(f"{server.url}/shop")
    shop = ShopPage(page, visitor.look)
    expect(shop.goods.first).to_be_visible()
    expect(shop.field).to_be_enabled()
    page.wait_for_function("() => [...document.images].filter((one) => one.complete && one.naturalWidth).length > 0")
    total = sum(loaded.values())
    assert 50_000 < total < _MAX_FIRST_BYTES, loaded.most_common(20)
    assert not [kind for kind in loaded if "/market/map/" in kind or kind.endswith("provinces.js")]


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
