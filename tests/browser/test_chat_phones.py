"""The narrowest phones: all that one can press is on the screen, large enough for a finger, and works."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import Visitor
from tests.browser.demo_process import demo_process
from tests.browser.looks import PageLook
from tests.browser.page_watch import require_accessible, until_at_rest

# What can be pressed and is not whole on the screen; what scrolls below the screen is reached.
_BEYOND = """() => [...document.querySelectorAll("button, a[href], input, textarea, select")].filter((element) => {
  const box = element.getBoundingClientRect();
  if (!box.width || element.closest(".skip-link, .visually-hidden")) return false;
  return box.left < 0 || box.right > innerWidth;
}).map((element) => element.ariaLabel || element.textContent)"""
_LEAST = 24  # pixels, of WCAG 2.2


def whole(page: Page) -> None:
    until_at_rest(page)  # a dialog comes in from the side
    assert page.evaluate(_BEYOND) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    boxes = [one.bounding_box() for one in page.locator(".top-bar > button:visible, .top-bar > .menu > button").all()]
    ends = [(box["x"], box["x"] + box["width"]) for box in boxes if box and box["width"] >= _LEAST]
    assert len(ends) == len(boxes) and all(end <= start for (_, end), (start, _) in zip(ends, ends[1:], strict=False))


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A demo has one button more in its bar."""
    with demo_process(tmp_path_factory.mktemp("demo"), MODEL_REPO_ID="echo") as url:
        yield url


@pytest.mark.parametrize(("width", "language"), [(320, "id"), (390, "en")])
def test_nothing_is_beyond_the_edge(visitor: Visitor, url: str, width: int, language: str) -> None:
    look = PageLook("phone", "light", language)
    page = visitor.open(url, look, viewport={"width": width, "height": 640})
    page.locator(".example").first.wait_for()
    whole(page)
    expect(page.locator("h1")).to_have_count(1)
    require_accessible(page)
    visitor.picture(page, f"chat-empty-{width}")
    chat = ChatPage(page, look)
    chat.send("Halo, kapal! https://ships.example/a-very-long-address-that-goes-on-and-on-without-any-end/1234567890")
    chat.until_done()
    whole(page)
    expect(page.locator("h1")).to_have_count(1)
    chat.button("preferences.pages").tap()
    whole(page)
    visitor.picture(page, f"chat-preferences-{width}")
    page.get_by_role("menuitemradio", name=look.t("theme.dark")).tap()
    expect(page.locator("html[data-theme=dark]")).to_have_count(1)
    chat.answer.locator(".message-actions .menu > button").tap()
    whole(page)
    page.keyboard.press("Escape")
    page.locator(".model-button").tap()
    whole(page)
    page.keyboard.press("Escape")
    page.locator(".top-bar .icon-only").first.tap()
    whole(page)
    page.keyboard.press("Escape")
    page.locator(".top-bar > .icon-only").last.tap()
    tabs = page.get_by_role("dialog").get_by_role("tab")
    tabs.first.wait_for()
    for tab in tabs.all():
        tab.tap()
        whole(page)
    require_accessible(page)
    visitor.picture(page, f"chat-settings-{width}")
    page.keyboard.press("Escape")
    chat.button("preferences.pages").tap()
    page.get_by_role("menuitem", name="Status").tap()
    page.wait_for_url(f"{url}/status")
    page.get_by_role("heading", level=1).wait_for()
    whole(page)
