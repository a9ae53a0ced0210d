"""Real Chromium, driven by Playwright. A page that logs an error, breaks its policy or asks elsewhere fails a test."""

import json
import os
import shutil
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.browser.chat_page import ChatPage
from tests.browser.looks import DESKTOP, LOCALES, SIZES, PageLook
from tests.browser.page_watch import PageWatch, require_no_sideways_scroll, until_at_rest
from tests.databases import place_of_servers
from tests.marketplace.postgres import Postgres, required_postgres
from tests.mcp_client.weather_process import McpProcess, weather_process
from tests.serving import served, settings_with

_ARE_PICTURES_KEPT = bool(os.environ.get("PAGES_ARTEFACTS"))
# A test of a microphone or a camera is possible without one.
FAKE_DEVICES = ("--no-sandbox", "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")


def chromium_path() -> str:
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        if os.environ.get("BROWSER") == "none":
            pytest.skip("BROWSER=none: there is no Chromium here")
        pytest.fail("Chromium is not here (`apt-get install chromium`); BROWSER=none leaves the pages untested.")
    return path


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = chromium_path()
    expect.set_options(timeout=30_000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FAKE_DEVICES)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """All files share it: each has databases of its own there."""
    with required_postgres(place_of_servers(), "-c autovacuum=off") as running:
        yield running


class Visitor:
    """Opens pages as somebody with this screen, theme and language would, and watches them."""

    def __init__(
        self, browser: Browser, artefacts: Path, look: PageLook = DESKTOP, expected: tuple[str, ...] = ()
    ) -> None:
        self._browser, self._artefacts = browser, artefacts
        self._contexts: dict[BrowserContext, tuple[PageWatch, PageLook]] = {}
        self.look, self.t = look, look.t
        self.expected = expected

    def open(self, url: str, look: PageLook | None = None, **options: Any) -> Page:
        """A browser of its own: nothing is shared with the others."""
        look = look or self.look
        touch: dict[str, Any] = {"has_touch": True, "is_mobile": True} if look.is_phone else {}
        seen: dict[str, Any] = {
            "viewport": SIZES[look.size], "color_scheme": look.theme, "locale": LOCALES[look.language],
        }  # fmt: skip
        context = self._browser.new_context(**{**seen, **touch, **options})
        self._contexts[context] = (PageWatch(context, url), look)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.goto(url)
        return page

    def chat(self, url: str, look: PageLook | None = None) -> ChatPage:
        return ChatPage(self.open(url, look), look or self.look)

    def picture(self, page: Page, name: str) -> None:
        """A screenshot among the artefacts of the run, if they are kept (PAGES_ARTEFACTS)."""
        require_no_sideways_scroll(page)
        if _ARE_PICTURES_KEPT:
            page.screenshot(path=self._artefacts / f"{name}-{self._contexts[page.context][1]}.png")

    def whole_picture(self, page: Page, name: str) -> None:
        """With what is below the end of the screen."""
        seen = page.viewport_size
        assert seen
        page.set_viewport_size({**seen, "height": page.evaluate("() => document.documentElement.scrollHeight")})
        until_at_rest(page)  # what is drawn when it comes into sight
        if _ARE_PICTURES_KEPT:
            page.wait_for_timeout(300)
        self.picture(page, f"{name}-whole")
        page.set_viewport_size(seen)

    def close_pages(self) -> None:
        for context in self._contexts:
            context.close()

    def require_no_problems(self) -> None:
        problems = [problem for watch, _ in self._contexts.values() for problem in watch.problems]
        unexpected = [one for one in problems if not any(part in one for part in self.expected)]
        assert not unexpected, "\n".join(unexpected)


@pytest.fixture(scope="session")
def artefacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Path(os.environ.get("PAGES_ARTEFACTS") or tmp_path_factory.mktemp("pages"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def look(request: pytest.FixtureRequest) -> PageLook:
    """What `in_looks` gives; a desktop otherwise."""
    found = getattr(request, "param", DESKTOP)
    assert isinstance(found, PageLook)
    return found


@pytest.fixture
def visitor(browser: Browser, artefacts: Path, look: PageLook) -> Iterator[Visitor]:
    visitor = Visitor(browser, artefacts, look)
    yield visitor
    visitor.close_pages()
    visitor.require_no_problems()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Pages end before the servers that they ask, whichever fixture came first."""
    visitor = item.funcargs.get("visitor") if isinstance(item, pytest.Function) else None
    if isinstance(visitor, Visitor):
        visitor.close_pages()


@dataclass(frozen=True)
class DemoChat:
    url: str
    weather: McpProcess


@pytest.fixture(scope="session")
def demo_chat(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoChat]:
    """The demo's models, and an MCP server that they may call: they take seconds to start, so all files share them."""
    with weather_process(tmp_path_factory.mktemp("weather") / "calls.txt") as weather:
        settings = settings_with(
            model_repo_id="models/demo",
            models=["demo-whisper"],
            eager_load_model=True,
            mcp_allowed_hosts=[weather.host],
            load_wait_seconds=300,
        )
        with served(settings) as server:
            _ask_once(server.url)
            yield DemoChat(server.url, weather)


def _ask_once(url: str) -> None:
    """The tests do not wait for the model to load."""
    body = json.dumps({"messages": [{"role": "user", "content": "Ping"}]}).encode()
    request = urllib.request.Request(f"{url}/v1/chat/completions", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=300) as answer:
        answer.read()
