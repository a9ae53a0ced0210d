"""The demo: one clicks, the server dies in mid-answer, and the answer goes on before one's eyes."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visitor
from tests.browser.page_watch import require_accessible
from tests.cli.tis_process import TIS, environment
from tests.serving import free_port, served, settings_with, wait_until_live

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

TEXT = " ".join(f"kapal-{number}" for number in range(25))


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[str]:
    """`tis serve` with the settings of `make demo`, and a model that is slow enough to watch."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    variables = {"PORT": str(port), "PERSIST_SESSIONS": "1", "DEMO": "1", "MODEL_REPO_ID": "echo?tokens_per_second=20"}
    with (tmp_path / "log").open("w") as log:
        parent = subprocess.Popen([*TIS, "serve"], cwd=tmp_path, env=environment(**variables), stderr=log)
    try:
        wait_until_live(url, 90)
        yield url
    finally:
        parent.send_signal(signal.SIGTERM)
        parent.wait(30)


def ask(page: Page, text: str) -> None:
    page.get_by_role("textbox", name="Your message").fill(text)
    page.get_by_role("button", name="Send").click()


def test_the_answer_goes_on_before_ones_eyes(visitor: Visitor, demo: str) -> None:
    visitor.expected = ("ERR_CONNECTION_", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_EMPTY_RESPONSE")
    page = visitor.open(demo)
    ask(page, TEXT)
    answer = page.locator("article.assistant")
    expect(answer).to_contain_text("kapal-4")
    page.get_by_role("button", name="Kill the server").click()
    expect(page.locator(".reconnecting")).to_be_visible()
    require_accessible(page)
    visitor.picture(page, "killed")
    expect(answer).to_have_attribute("aria-busy", "false", timeout=90_000)
    assert answer.locator(".rich").inner_text().strip() == TEXT
    visitor.picture(page, "killed-and-whole")


def test_a_server_that_is_no_demo_has_no_such_button(visitor: Visitor) -> None:
    with served(settings_with()) as server:
        page = visitor.open(server.url)
        expect(page.get_by_role("button", name="Send")).to_be_visible()
        expect(page.get_by_role("button", name="Kill the server")).to_have_count(0)
        assert httpx2.post(f"{server.url}/pages/kill", headers={"origin": server.url}).status_code in (404, 405)
