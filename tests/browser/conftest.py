"""Real Chromium, driven by Playwright. A page that logs an error, breaks its policy or asks elsewhere fails a test."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.browser.page_watch import PageWatch

SIZES = {"desktop": {"width": 1280, "height": 860}, "phone": {"width": 390, "height": 844}}


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        if os.environ.get("BROWSER") == "none":
            pytest.skip("BROWSER=none: there is no Chromium here")
        pytest.fail("Chromium is not here (`apt-get install chromium`); BROWSER=none leaves the pages untested.")
    expect.set_options(timeout=30_000)
    with sync_playwright() as playwright:
        # The flags make a test of a microphone or a camera possible without one.
        flags = ["--no-sandbox", "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]
        browser = playwright.chromium.launch(executable_path=path, args=flags)
        yield browser
        browser.close()


class Visitor:
    """Opens pages as somebody with this screen, theme and language would, and watches them."""

    def __init__(self, browser: Browser, artefacts: Path, expected: tuple[str, ...] = ()) -> None:
        self._browser, self._artefacts = browser, artefacts
        self._contexts: list[tuple[BrowserContext, PageWatch]] = []
        self.expected = expected

    def open(
        self, url: str, size: str = "desktop", theme: str = "light", locale: str = "en-US", **options: Any
    ) -> Page:
        """A browser of its own: nothing is shared with the others."""
        touch: dict[str, Any] = {"has_touch": True, "is_mobile": True} if size == "phone" else {}
        look: dict[str, Any] = {"viewport": SIZES[size], "color_scheme": theme, "locale": locale}
        context = self._browser.new_context(**{**look, **touch, **options})
        watch = PageWatch(context, url)
        self._contexts.append((context, watch))
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.goto(url)
        return page

    def picture(self, page: Page, name: str) -> None:
        """A screenshot among the artefacts of the run (PAGES_ARTEFACTS)."""
        page.screenshot(path=self._artefacts / f"{name}.png")

    def close(self) -> None:
        problems = []
        for context, watch in self._contexts:
            context.close()
            problems += watch.problems
        unexpected = [one for one in problems if not any(part in one for part in self.expected)]
        assert not unexpected, "\n".join(unexpected)


@pytest.fixture(scope="session")
def artefacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Path(os.environ.get("PAGES_ARTEFACTS") or tmp_path_factory.mktemp("pages"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def visitor(browser: Browser, artefacts: Path) -> Iterator[Visitor]:
    visitor = Visitor(browser, artefacts)
    yield visitor
    visitor.close()
