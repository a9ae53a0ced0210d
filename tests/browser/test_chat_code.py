"""A request as curl, Python and JavaScript: the programs are run, and send what the page has sent."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visitor
from tests.browser.looks import on_both_screens
from tests.browser.page_watch import require_accessible
from tests.serving import Served, served, settings_with

_AWKWARD = """It's "5 $HOME" \\n `date` 100% {é} 😀"""


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(settings_with(api_keys=["sk-of-the-test"])) as server:
        yield server


@on_both_screens
def test_the_request_of_an_answer_runs_as_curl_and_python(visitor: Visitor, server: Served, tmp_path: Path) -> None:
    visitor.expected = ("401",)
    chat = visitor.chat(server.url)
    chat.give_key("sk-of-the-test")
    chat.send(_AWKWARD)
    answer = chat.until_done()
    expect(answer).to_contain_text("It's")
    answer.get_by_role("button", name=chat.t("chat.more"), exact=True).click()
    chat.choose("chat.as_code")
    code = chat.dialog.locator("pre")
    expect(chat.dialog.get_by_text(chat.t("code.key"))).to_be_visible()
    require_accessible(chat.page)
    visitor.picture(chat.page, "chat-code")
    curl = code.inner_text()
    assert "sk-of-the-test" not in curl
    chat.dialog.get_by_role("tab", name="Python").click()
    python = code.inner_text()
    chat.dialog.get_by_role("tab", name="JavaScript").click()
    javascript = code.inner_text()
    assert f'baseURL: "{server.url}/v1"' in javascript and "process.env.API_KEY" in javascript
    assert json.dumps(_AWKWARD, ensure_ascii=False) in javascript
    if visitor.look.is_phone:
        return  # it is the same code, and to start Python and openai takes seconds
    assert _run(["bash", "-c", curl]) == _AWKWARD
    program = tmp_path / "program.py"
    program.write_text(python, encoding="utf-8")
    assert _output([sys.executable, str(program)]).strip() == _AWKWARD


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
