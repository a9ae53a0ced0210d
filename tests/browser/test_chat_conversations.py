"""A conversation: stop, ask again, edit, branch, go on; many of them: search, rename, export, import."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visitor
from tests.browser.looks import (
    DARK_DESKTOP,
    DESKTOP,
    LIGHT_PHONE,
    PHONE,
    in_looks,
    on_both_screens,
    on_both_screens_too,
)
from tests.browser.page_watch import require_accessible
from tests.serving import Served, served, settings_with

_LONG = "A sentence that takes its time. " * 40
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
    with served(settings_with(model_repo_id="echo?tokens_per_second=200")) as server:
        yield server


@on_both_screens
def test_stop_again_edit_and_branch(visitor: Visitor, server: Served) -> None:
    chat = visitor.chat(server.url)
    page, t = chat.page, chat.t
    require_accessible(page)
    chat.send(_LONG)
    chat.until_text("A sentence")
    if chat.look.is_phone:
        chat.button("composer.stop").click()
    else:
        page.keyboard.press("Escape")
    chat.until_done()
    expect(chat.answer).to_contain_text(t("chat.stopped"))
    stopped = chat.text.inner_text()
    assert 0 < len(stopped) < len(_LONG)
    chat.button("chat.continue").click()
    expect(chat.answer).to_have_attribute("aria-busy", "true")
    chat.until_done()
    whole = chat.text.inner_text()
    assert whole.startswith(stopped)
    page.reload()
    chat.until_text("A sentence")
    assert chat.text.inner_text() == whole, "what grew on the page is what is stored"

    chat.button("chat.regenerate").click()
    chat.until_text("A sentence")
    chat.button("composer.stop").click()
    chat.until_done()
    branches = chat.answer.get_by_role("group", name=t("chat.branches"))
    expect(branches).to_contain_text("2 / 2")
    chat.button("chat.branch.before").click()
    expect(branches).to_contain_text("1 / 2")
    assert chat.text.inner_text().startswith(stopped)

    if chat.look.is_phone:
        chat.questions.last.get_by_role("button", name=t("chat.edit"), exact=True).click()
    else:
        chat.field.press("ArrowUp")
    editor = page.get_by_role("textbox", name=t("chat.edit"), exact=True)
    editor.fill("Another question")
    if chat.look.is_phone:
        chat.questions.last.get_by_role("button", name=t("chat.send"), exact=True).click()
    else:
        editor.press("Enter")
    chat.until_text("Another question")
    chat.until_done()
    asked = chat.questions.last.get_by_role("group", name=t("chat.branches"))
    expect(asked).to_contain_text("2 / 2")
    chat.send("And one more")
    chat.until_text("And one more")
    chat.until_done()
    expect(chat.answers).to_have_count(2)
    require_accessible(page)
    visitor.picture(page, "chat-branches")
    page.reload()
    expect(chat.answers).to_have_count(2)
    first = chat.questions.first
    if not chat.look.is_phone:
        first.hover()
    first.get_by_role("button", name=t("chat.branch.before"), exact=True).click()
    expect(chat.answers).to_have_count(1)
    assert {one["role"] for one in chat.stored()["messages"]} == {"user", "assistant"}


@in_looks(DESKTOP, PHONE, DARK_DESKTOP, LIGHT_PHONE)
def test_an_answer_is_set_well_and_safely(visitor: Visitor, server: Served) -> None:
    chat = visitor.chat(server.url)
    chat.send(_MARKDOWN)
    chat.until_done()
    expect(chat.text.get_by_role("heading", name="Ferries")).to_be_visible()
    expect(chat.text.locator("strong")).to_have_text("bold")
    expect(chat.text.get_by_role("cell").first).to_have_text("Merak")
    expect(chat.text.locator(".code-block header")).to_contain_text("python")
    expect(chat.text.locator(".hljs-keyword").first).to_have_text("def")
    expect(chat.text.locator(".katex").first).to_be_visible()
    expect(chat.text).to_contain_text("$5 to $10")
    assert chat.text.locator("img").count() == 0
    link = chat.text.get_by_role("link", name="link", exact=True)
    assert link.get_attribute("rel") == "noopener noreferrer nofollow"
    assert chat.text.locator("a", has_text="trap").get_attribute("href") is None
    require_accessible(chat.page)
    visitor.picture(chat.page, "chat-markdown")
    chat.sidebar().get_by_role("link", name="Ferries").wait_for()
    if chat.look.is_phone:
        require_accessible(chat.page)
        visitor.picture(chat.page, "chat-drawer")


@on_both_screens_too
def test_many_conversations_are_found_renamed_exported_and_imported(
    visitor: Visitor, server: Served, tmp_path: Path
) -> None:
    chat = visitor.chat(server.url)
    page, t = chat.page, chat.t
    for text in ("The price of nutmeg", "Ships of the strait"):
        chat.new_chat()
        chat.send(text)
        chat.until_text(text)
        chat.until_done()
    sidebar = chat.sidebar()
    entries = sidebar.get_by_role("listitem")
    expect(sidebar.get_by_role("heading")).to_have_text([t("chat.day.today")])
    search = page.get_by_role("searchbox", name=t("chat.search"))
    if chat.look.is_phone:
        search.fill("nutmeg")
    else:
        page.keyboard.press("Control+k")
        page.keyboard.type("nutmeg")
    expect(entries).to_have_count(1)
    search.fill("")
    chat.open_menu_of("The price of nutmeg")
    chat.choose("chat.rename")
    title = page.get_by_role("textbox", name=t("chat.title"), exact=True)
    title.fill("Spices")
    title.press("Enter")
    require_accessible(page)
    visitor.picture(page, "chat-conversations")
    sidebar.get_by_role("link", name="Spices").click()
    chat.until_text("The price of nutmeg")

    chat.sidebar()
    for message in ("chat.export_json", "chat.export_markdown"):
        chat.open_menu_of("Spices")
        with page.expect_download() as download:
            chat.choose(message)
        download.value.save_as(tmp_path / download.value.suggested_filename)
    assert json.loads((tmp_path / "Spices.json").read_text())["conversation"]["title"] == "Spices"
    assert "## User\n\nThe price of nutmeg" in (tmp_path / "Spices.md").read_text()
    chat.open_menu_of("Spices")
    chat.choose("delete")
    chat.dialog.last.get_by_role("button", name=t("delete"), exact=True).click()
    expect(entries).to_have_count(1)
    for number, name in enumerate(("Spices.json", "Spices.md")):
        if number and chat.look.is_phone:  # an import shows what it has read
            chat.sidebar()
        chat.import_file(tmp_path / name)
        chat.until_text("The price of nutmeg")
    chat.sidebar()
    expect(entries).to_have_count(3)
    (tmp_path / "bad.json").write_text('{"format": "tis-chat/1", "conversation": {}, "messages": [{"role": "system"}]}')
    chat.import_file(tmp_path / "bad.json")
    expect(page.get_by_role("status").filter(has_text=t("chat.import.unknown"))).to_be_visible()
    visitor.picture(page, "chat-import")


@on_both_screens
def test_a_conversation_that_the_server_keeps_opens_in_another_browser(visitor: Visitor, server: Served) -> None:
    chat = visitor.chat(server.url)
    chat.send("Kept by the server")
    chat.until_done()
    chat.menu().click()
    visitor.picture(chat.page, "chat-menu")
    chat.choose("chat.keep_on_server")
    expect(chat.page.get_by_role("status").filter(has_text=chat.t("chat.server.kept"))).to_be_visible()
    other = visitor.chat(chat.page.url, DARK_DESKTOP if chat.look.is_phone else LIGHT_PHONE)
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
