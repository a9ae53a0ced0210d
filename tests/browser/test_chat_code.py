"""A request as curl, Python and JavaScript: the programs are run, and send what the page has sent."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.asking import answer_of, ask
from tests.browser.conftest import Visitor
from tests.browser.page_watch import require_accessible
from tests.serving import Served, served, settings_with

_AWKWARD = """It's "5 $HOME" \\n `date` 100% {é} 😀"""


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(settings_with(api_keys=["sk-of-the-test"])) as server:
        yield server


def test_the_request_of_an_answer_runs_as_curl_and_python(visitor: Visitor, server: Served, tmp_path: Path) -> None:
    visitor.expected = ("401",)
    page = visitor.open(server.url)
    page.get_by_role("textbox", name="API key").fill("sk-of-the-test")
    page.get_by_role("button", name="Use this key").click()
    ask(page, _AWKWARD)
    expect(answer_of(page)).to_contain_text("It's")
    dialog = _code_dialog(page)
    expect(dialog.get_by_text("Your key is not in the code")).to_be_visible()
    require_accessible(page)
    visitor.picture(page, "chat-code")
    curl = dialog.locator("pre").inner_text()
    assert "sk-of-the-test" not in curl
    assert _run(["bash", "-c", curl]) == _AWKWARD
    dialog.get_by_role("tab", name="Python").click()
    program = tmp_path / "program.py"
    program.write_text(dialog.locator("pre").inner_text(), encoding="utf-8")
    assert _output([sys.executable, str(program)]).strip() == _AWKWARD
    dialog.get_by_role("tab", name="JavaScript").click()
    code = dialog.locator("pre").inner_text()
    assert f'baseURL: "{server.url}/v1"' in code and "process.env.API_KEY" in code
    assert json.dumps(_AWKWARD, ensure_ascii=False) in code


def _code_dialog(page: Page) -> Locator:
    answer_of(page).get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="As curl, Python, JavaScript").click()
    return page.get_by_role("dialog")


def _run(command: list[str]) -> str:
    """The text of a streamed answer."""
    lines = [line[6:] for line in _output(command).splitlines() if line.startswith("data: {")]
    choices = [choice for line in lines for choice in json.loads(line)["choices"]]
    return "".join(choice["delta"].get("content") or "" for choice in choices).strip()


def _output(command: list[str]) -> str:
    environment = {
        "API_KEY": "sk-of-the-test",
        "PATH": "/usr/bin:/bin",
        "HOME": "/nowhere",
        "PYTHONIOENCODING": "utf-8",
    }
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
