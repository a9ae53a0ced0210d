"""From page to page: each has the bar, and what one did on it is there when one comes back."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import Visitor
from tests.browser.looks import ALL_LOOKS, PageLook, in_looks, on_both_screens
from tests.browser.page_watch import require_accessible, require_no_sideways_scroll
from tests.browser.test_status_numbers import IDLE
from tests.serving import Served, served, settings_with

SWAGGER = "#swagger-ui .opblock-tag"
_MAX_SCREENS = 200


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(settings_with(model_repo_id="echo?tokens_per_second=100")) as server:
        yield server


def go_to(page: Page, look: PageLook, label: str) -> None:
    """By the bar; on a phone its menu has the pages."""
    if look.is_phone:
        page.get_by_role("button", name=look.t("preferences.pages"), exact=True).click()
        page.get_by_role("menuitem", name=look.t(label), exact=True).click()
    else:
        page.get_by_role("navigation").get_by_role("link", name=look.t(label), exact=True).click()


@on_both_screens
def test_the_conversation_and_the_charts_are_there_when_one_comes_back(visitor: Visitor, server: Served) -> None:
    chat = visitor.chat(server.url)
    page, look = chat.page, visitor.look
    chat.ask("satu dua tiga")
    chat.until_done()
    go_to(page, look, "page.status")
    page.locator(IDLE).wait_for()
    as_table = page.get_by_role("button", name=look.t("status.as.table", title=look.t("status.chart.memory")))
    rows = page.get_by_role("group", name=look.t("status.chart.memory"), exact=True).locator("tbody tr")
    as_table.click()
    expect(rows.nth(2)).to_be_visible()
    oldest = rows.last.inner_text()
    go_to(page, look, "page.docs")
    page.locator(SWAGGER).first.wait_for()
    go_to(page, look, "page.chat")
    expect(ChatPage(page, look).questions).to_contain_text(["satu dua tiga"])
    go_to(page, look, "page.status")
    page.locator(IDLE).wait_for()
    as_table.click()
    expect(page.get_by_role("row", name=oldest.replace("\t", " "), exact=True)).to_be_visible()


@in_looks(*ALL_LOOKS)
def test_the_api_page_has_the_bar_the_theme_and_no_stranger(visitor: Visitor, server: Served) -> None:
    page = visitor.open(f"{server.url}/docs")
    page.locator(SWAGGER).first.wait_for()
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    is_dark = sum(int(part) for part in ground.removeprefix("rgb(").removesuffix(")").split(",")) < 3 * 128
    assert is_dark == (visitor.look.theme == "dark")
    require_no_sideways_scroll(page)
    visitor.picture(page, "docs")
    operation = page.locator(".opblock").filter(has=page.locator("[data-path='/v1/models']"))
    for _ in range(_MAX_SCREENS):  # operations are drawn as one comes to them
        if operation.count():
            break
        page.evaluate("scrollBy(0, innerHeight)")
        page.wait_for_timeout(50)
    operation.locator("button.opblock-summary-control").click()
    operation.get_by_role("button", name="Try it out").click()
    operation.get_by_role("button", name="Execute").click()
    expect(operation.locator(".live-responses-table tbody .response-col_status")).to_contain_text("200")


@on_both_screens
def test_the_focus_stays_with_who_starts_and_stops(visitor: Visitor, server: Served) -> None:
    chat = visitor.chat(server.url)
    field = chat.page.locator("#content") if visitor.look.is_phone else chat.field
    example = chat.page.locator("button.example").first
    example.focus()
    example.press("Enter")
    chat.until_done()
    expect(field).to_be_focused()
    chat.ask("laut " * 200)
    stop = chat.button("composer.stop")
    stop.focus()
    stop.press("Enter")
    chat.until_done()
    expect(field).to_be_focused()
    require_accessible(chat.page)
