"""What the page does when the server refuses: it waits as long as it is told, or says what is the matter.

The refusals are put between the page and a real server, as the server would have to be overloaded for them.
"""

import json
import time
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Route, expect

from tests.browser.conftest import Visitor
from tests.browser.looks import on_both_screens, on_both_screens_too
from tests.browser.page_watch import require_accessible
from tests.serving import Served, served, settings_with

_LINE = "A line that takes a moment, and then another moment, until it is complete at last. " * 2
_ASKED = "**/v1/chat/completions"


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(settings_with(model_repo_id="echo?tokens_per_second=200")) as server:
        yield server


def _refuse(status: int, code: str, headers: dict[str, str] | None = None) -> Callable[[Route], None]:
    body = json.dumps({"error": {"message": f"Refused: {code}.", "type": "x", "param": None, "code": code}})

    def answer(route: Route) -> None:
        route.fulfill(status=status, headers={"content-type": "application/json", **(headers or {})}, body=body)

    return answer


@on_both_screens
def test_the_page_waits_for_a_server_that_is_busy_or_not_ready(visitor: Visitor, server: Served) -> None:
    visitor.expected = ("Failed to load resource",)
    chat = visitor.chat(server.url)
    chat.page.route(_ASKED, _refuse(503, "server_shutting_down"), times=1)
    chat.page.route(_ASKED, _refuse(429, "rate_limit_exceeded", {"Retry-After": "4"}), times=1)
    times: list[float] = []
    chat.page.on("request", lambda request: times.append(time.monotonic()) if request.method == "POST" else None)
    chat.send(_LINE)
    expect(chat.answer.locator(".reconnecting")).to_contain_text(chat.look.pattern("chat.wait.busy"))
    chat.page.evaluate(
        "for (const name of ['online', 'visibilitychange']) document.dispatchEvent(new Event(name, { bubbles: true }))"
    )
    visitor.picture(chat.page, "chat-busy")
    chat.until_done()
    expect(chat.text).to_have_text(_LINE.strip())
    assert times[1] - times[0] > 3.9, "a page that is seen again waits as long as the server said"


@on_both_screens_too
def test_what_cannot_be_replayed_is_said_and_the_answer_is_kept(visitor: Visitor, server: Served) -> None:
    visitor.expected = ("Failed to load resource",)
    chat = visitor.chat(server.url)
    line = _LINE * 10  # it is still being written when the page is open again
    chat.send(line)
    chat.until_text("A line")
    chat.until_stored("A line")
    chat.page.route("**/v1/stream/**", _refuse(410, "replay_gap"))
    chat.page.reload()
    expect(chat.answer).to_contain_text(chat.t("chat.failed.replay_gap"))
    chat.until_text("A line")
    require_accessible(chat.page)
    visitor.picture(chat.page, "chat-replay-gap")
    chat.button("chat.retry").click()
    expect(chat.answer.get_by_role("group", name=chat.t("chat.branches"))).to_contain_text("2 / 2")
    chat.until_done()
    expect(chat.text).to_have_text(line.strip())


@on_both_screens
def test_a_wrong_request_is_explained(visitor: Visitor, server: Served) -> None:
    visitor.expected = ("Failed to load resource",)
    chat = visitor.chat(server.url)
    chat.page.route(_ASKED, _refuse(400, "invalid_value"), times=1)
    chat.send(_LINE)
    expect(chat.answer).to_contain_text("Refused: invalid_value.")
    require_accessible(chat.page)
    visitor.picture(chat.page, "chat-refused")
    chat.button("chat.retry").click()
    chat.until_done()
    expect(chat.text).to_have_text(_LINE.strip())


@on_both_screens_too
def test_an_answer_that_has_not_begun_is_stopped(visitor: Visitor, server: Served) -> None:
    chat = visitor.chat(server.url)
    chat.page.route(_ASKED, lambda route: None)  # as long as a model is loaded
    chat.send("Halo")
    chat.button("composer.stop").click()
    chat.until_done()
    expect(chat.answer).to_contain_text(chat.t("chat.stopped"))
    visitor.picture(chat.page, "chat-stopped-early")
