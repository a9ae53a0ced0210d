"""A conversation: stop, ask again, edit, branch, go on; many of them: search, rename, export, import."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import Visitor
from tests.browser.page_watch import require_accessible
from tests.serving import Served, served, settings_with

_LONG = "A sentence that takes its time. " * 20
_MARKDOWN = r"""# Ferries

Some **bold** words, `code`, a [link](https://example.com/ferry), a [trap](javascript:alert(1))
and <img src=x onerror=alert(1)>.

| Port | Ships |
|---|--:|
| Merak | 12 |

```python
def sail(ship):
    return ship  # away
```

Euler wrote \(e^{i\pi} = -1\). It costs $5 to $10.

![far](https://elsewhere.example/picture.png)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(settings_with(model_repo_id="echo?tokens_per_second=150")) as server:
        yield server


def test_stop_again_edit_and_branch(visitor: Visitor, server: Served) -> None:
    chat = ChatPage(visitor.open(server.url))
    page = chat.page
    require_accessible(page)
    chat.send(_LONG)
    chat.until_text("A sentence")
    page.keyboard.press("Escape")
    chat.until_done()
    expect(chat.answer).to_contain_text("Stopped")
    stopped = chat.text.inner_text()
    assert 0 < len(stopped) < len(_LONG)
    page.get_by_role("button", name="Continue").click()
    expect(chat.answer).to_have_attribute("aria-busy", "true")
    chat.until_done()
    whole = chat.text.inner_text()
    assert whole.startswith(stopped)
    page.reload()
    chat.until_text("A sentence")
    assert chat.text.inner_text() == whole, "what grew on the page is what is stored"

    page.get_by_role("button", name="Answer again").click()
    chat.until_text("A sentence")
    page.get_by_role("button", name="Stop", exact=True).click()
    chat.until_done()
    expect(chat.answer.locator(".branches")).to_contain_text("2 / 2")
    page.get_by_role("button", name="The branch before").click()
    expect(chat.answer.locator(".branches")).to_contain_text("1 / 2")
    assert chat.text.inner_text().startswith(stopped)

    page.locator(".chat-bottom textarea").press("ArrowUp")
    editor = page.get_by_role("textbox", name="Edit")
    editor.fill("Another question")
    editor.press("Enter")
    chat.until_text("Another question")
    chat.until_done()
    expect(chat.questions.last.locator(".branches")).to_contain_text("2 / 2")
    chat.send("And one more")
    chat.until_text("And one more")
    chat.until_done()
    expect(chat.answers).to_have_count(2)
    require_accessible(page)
    visitor.picture(page, "chat-branches-desktop")
    page.reload()
    expect(chat.answers).to_have_count(2)
    chat.questions.first.hover()
    chat.questions.first.get_by_role("button", name="The branch before").click()
    expect(chat.answers).to_have_count(1)
    assert {one["role"] for one in chat.stored()["messages"]} == {"user", "assistant"}


@pytest.mark.parametrize(
    ("size", "theme", "locale"), [("desktop", "light", "en-US"), ("phone", "dark", "id-ID")], ids=["desktop", "phone"]
)
def test_an_answer_is_set_well_and_safely(visitor: Visitor, server: Served, size: str, theme: str, locale: str) -> None:
    chat = ChatPage(visitor.open(server.url, size, theme, locale))
    chat.send(_MARKDOWN)
    chat.until_done()
    expect(chat.text.get_by_role("heading", name="Ferries")).to_be_visible()
    expect(chat.text.locator("strong")).to_have_text("bold")
    expect(chat.text.locator(".table-scroll td").first).to_have_text("Merak")
    expect(chat.text.locator(".code-block header")).to_contain_text("python")
    expect(chat.text.locator(".hljs-keyword").first).to_have_text("def")
    expect(chat.text.locator(".katex").first).to_be_visible()
    expect(chat.text).to_contain_text("$5 to $10")
    assert chat.text.locator("img").count() == 0
    link = chat.text.get_by_role("link", name="link", exact=True)
    assert link.get_attribute("rel") == "noopener noreferrer nofollow"
    assert chat.text.locator("a", has_text="trap").get_attribute("href") is None
    require_accessible(chat.page)
    visitor.picture(chat.page, f"chat-markdown-{size}-{theme}")
    if size == "phone":
        chat.page.get_by_role("button", name="Percakapan", exact=True).click()
        chat.page.get_by_role("dialog").get_by_role("link", name="Ferries").wait_for()
        require_accessible(chat.page)
        visitor.picture(chat.page, "chat-drawer-phone-dark-id")


def test_many_conversations_are_found_renamed_exported_and_imported(
    visitor: Visitor, server: Served, tmp_path: Path
) -> None:
    chat = ChatPage(visitor.open(server.url))
    page = chat.page
    for text in ("The price of nutmeg", "Ships of the strait"):
        page.get_by_role("button", name="New chat").click()
        chat.send(text)
        chat.until_text(text)
        chat.until_done()
    sidebar = page.get_by_role("navigation", name="Conversations")
    expect(sidebar.locator("h2")).to_have_text(["Today"])
    page.keyboard.press("Control+k")
    page.keyboard.type("nutmeg")
    expect(sidebar.locator(".entry")).to_have_count(1)
    page.get_by_role("searchbox").fill("")
    sidebar.locator(".entry", has_text="nutmeg").hover()
    page.get_by_role("button", name="More for “The price of nutmeg”").click()
    page.get_by_role("menuitem", name="Rename").click()
    page.get_by_role("textbox", name="Title").fill("Spices")
    page.get_by_role("textbox", name="Title").press("Enter")
    sidebar.get_by_role("link", name="Spices").click()
    chat.until_text("The price of nutmeg")

    for kind in ("JSON", "Markdown"):
        page.get_by_role("button", name="More for “Spices”").click()
        with page.expect_download() as download:
            page.get_by_role("menuitem", name=kind).click()
        download.value.save_as(tmp_path / download.value.suggested_filename)
    assert json.loads((tmp_path / "Spices.json").read_text())["conversation"]["title"] == "Spices"
    assert "## User\n\nThe price of nutmeg" in (tmp_path / "Spices.md").read_text()
    page.get_by_role("button", name="More for “Spices”").click()
    page.get_by_role("menuitem", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(sidebar.locator(".entry")).to_have_count(1)
    for name in ("Spices.json", "Spices.md"):
        page.locator("input[type=file][aria-label=Import]").set_input_files(tmp_path / name)
        expect(sidebar.get_by_role("link", name="Spices").first).to_be_visible()
        chat.until_text("The price of nutmeg")
    (tmp_path / "bad.json").write_text('{"format": "tis-chat/1", "conversation": {}, "messages": [{"role": "system"}]}')
    page.locator("input[type=file][aria-label=Import]").set_input_files(tmp_path / "bad.json")
    expect(page.locator(".toast")).to_contain_text("not an exported chat")
    expect(sidebar.locator(".entry")).to_have_count(3)


def test_a_conversation_that_the_server_keeps_opens_in_another_browser(visitor: Visitor, server: Served) -> None:
    chat = ChatPage(visitor.open(server.url))
    chat.send("Kept by the server")
    chat.until_done()
    chat.page.get_by_role("button", name="More", exact=True).first.click()
    chat.page.get_by_role("menuitem", name="Keep on the server").click()
    expect(chat.page.locator(".toast")).to_contain_text("Kept on the server")
    other = ChatPage(visitor.open(chat.page.url, "phone", "light"))
    other.until_text("Kept by the server")
    other.send("A second question")
    other.until_text("A second question")
    other.until_done()
    _until_items(other.page, 4)
    chat.page.reload()
    chat.until_text("A second question")
    expect(chat.answers).to_have_count(2)


def _until_items(page: Page, count: int) -> None:
    page.wait_for_function(
        """async (count) => {
          const id = location.hash.split("/")[2];
          const answer = await fetch(`v1/conversations/${id}/items?limit=100`);
          return (await answer.json()).data.length === count;
        }""",
        arg=count,
    )
