"""The demo: one clicks, the server dies in mid-answer, and the answer goes on before one's eyes."""

import os
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import expect

from scripts.demo_model.smalltalk import STORIES
from tests.browser.conftest import Visitor
from tests.browser.demo_process import demo_process
from tests.browser.page_watch import require_accessible
from tests.serving import served, settings_with

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[str]:
    with demo_process(tmp_path) as url:
        yield url


@pytest.mark.model
def test_the_answer_goes_on_before_ones_eyes(visitor: Visitor, demo: str) -> None:
    visitor.expected = ("ERR_CONNECTION_", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_EMPTY_RESPONSE", "503")
    page = visitor.open(demo)
    page.get_by_role("button", name="Kill the server").click()
    answer = page.locator("article.assistant")
    expect(answer).to_contain_text("Once upon a time")
    expect(page.locator(".reconnecting")).to_be_visible()
    half = answer.locator(".rich").inner_text().strip()
    require_accessible(page)
    visitor.picture(page, "killed")
    expect(answer).to_have_attribute("aria-busy", "false", timeout=120_000)
    whole = answer.locator(".rich").inner_text().strip()
    assert whole == STORIES["en"][1] and whole.startswith(half) and len(half) < len(whole)
    visitor.picture(page, "killed-and-whole")


def test_a_server_that_is_no_demo_has_no_such_button(visitor: Visitor) -> None:
    with served(settings_with()) as server:
        page = visitor.open(server.url)
        expect(page.get_by_role("button", name="Send")).to_be_visible()
        expect(page.get_by_role("button", name="Kill the server")).to_have_count(0)
        assert httpx2.post(f"{server.url}/pages/kill", headers={"origin": server.url}).status_code in (404, 405)
