"""What a page must not do: log errors, break its Content-Security-Policy, ask other hosts."""

from urllib.parse import urlsplit

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Request

_LOCAL_SCHEMES = ("data", "blob")
_AT_REST = """() => Promise.all(document.getAnimations()
  .filter((one) => one.effect.getComputedTiming().endTime < 5000)
  .map((one) => one.finished.catch(() => null))).then(() => null)"""
_TWO_FRAMES = "() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))"
_VIOLATIONS = """async () => {
  const { violations } = await axe.run({ resultTypes: ["violations"] });
  return violations.flatMap(({ id, help, nodes }) => nodes.map((node) => `${id}: ${help}: ${node.html.slice(0, 200)}`));
}"""


class PageWatch:
    """Collects the problems of all pages of a context."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.problems: list[str] = []
        self._host = urlsplit(url).netloc
        context.on("console", self._on_console)
        context.on("weberror", lambda error: self.problems.append(f"uncaught: {error.error}"))
        context.on("request", self._on_request)

    def _on_console(self, message: ConsoleMessage) -> None:
        # Violations of the policy are errors of the console, too.
        if message.type in ("error", "warning"):
            self.problems.append(f"console {message.type}: {message.text} ({message.location.get('url', '')})")

    def _on_request(self, request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme not in _LOCAL_SCHEMES and address.netloc != self._host:
            self.problems.append(f"asked elsewhere: {request.url}")


def require_accessible(page: Page) -> None:
    """axe-core finds nothing, in the state that the page is in once it has stopped to move."""
    page.evaluate(_AT_REST)
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    found = page.evaluate(_VIOLATIONS)
    assert not found, "\n".join(found)


def require_accessible_in_both_themes(page: Page) -> None:
    """Whoever looks at it chooses the other theme and then this one again."""
    is_dark = page.evaluate("() => matchMedia('(prefers-color-scheme: dark)').matches")
    for theme in ("light", "dark") if is_dark else ("dark", "light"):
        page.emulate_media(color_scheme=theme)
        require_accessible(page)


def until_at_rest(page: Page) -> None:
    """What was just done is drawn, and has stopped to move."""
    page.evaluate(_TWO_FRAMES)
    page.evaluate(_AT_REST)


def require_no_sideways_scroll(page: Page) -> None:
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0, f"the page is {wide} pixels wider than the screen"
