"""What the browser stores: where it refuses, has no room, or belongs to a newer page, nothing that is shown is lost."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import Visitor
from tests.browser.looks import LIGHT_PHONE, in_looks, on_both_screens, on_both_screens_too
from tests.browser.page_watch import require_accessible
from tests.serving import Served, served, settings_with

_FORBIDDEN = "IDBFactory.prototype.open = () => { throw new DOMException('No.', 'SecurityError'); };"
# A browser that is full says so when something is put; what is there can still be read and deleted.
_FULL = """
  const put = IDBObjectStore.prototype.put;
  window.puts = [];
  IDBObjectStore.prototype.put = function (value) {
    window.puts.push(this.name);
    if (window.isFull) throw new DOMException("Full.", "QuotaExceededError");
    return put.call(this, value);
  };
"""
# As fast as a finger does it, however slow the machine is.
_MOVE_BY_20_STEPS = """async (slider) => {
  for (let step = 0; step < 20; step++) {
    slider.stepUp();
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    await Promise.resolve();
  }
}"""
_NEWER = """() => new Promise((resolve) => {
  const request = indexedDB.open("tis-chat", 1000);
  request.onsuccess = () => { request.result.close(); resolve(); };
})"""


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(settings_with(model_repo_id="echo?tokens_per_second=200")) as server:
        yield server


@on_both_screens
def test_a_browser_that_forbids_storage_shows_and_exports_all(visitor: Visitor, server: Served, tmp_path: Path) -> None:
    chat = _chat_with(_FORBIDDEN, visitor, server)
    expect(_note(chat)).to_contain_text(chat.t("chat.storage.forbidden"))
    require_accessible(chat.page)
    _ask(chat, "Pertanyaan pertama")
    _ask(chat, "Pertanyaan kedua")
    expect(chat.answers).to_have_count(2)
    require_accessible(chat.page)
    visitor.picture(chat.page, "chat-storage-forbidden")
    assert _exported(chat, tmp_path) == ["Pertanyaan pertama"] * 2 + ["Pertanyaan kedua"] * 2
    _note(chat).get_by_role("button", name=chat.t("close")).click()
    expect(_note(chat)).to_have_count(0)


@on_both_screens_too
def test_a_full_browser_says_so_and_stores_when_there_is_room(visitor: Visitor, server: Served, tmp_path: Path) -> None:
    chat = _chat_with(_FULL, visitor, server)
    page, t = chat.page, chat.t
    _ask(chat, "An old conversation")
    chat.new_chat()
    _ask(chat, "The first question")
    chat.until_stored("The first question")
    page.evaluate("window.isFull = true")
    _ask(chat, "The second question")
    expect(_note(chat)).to_contain_text(t("chat.storage.full"))
    require_accessible(page)
    visitor.picture(page, "chat-storage-full")
    chat.sidebar().get_by_role("link", name="An old conversation").click()
    chat.until_text("An old conversation")
    chat.sidebar().get_by_role("link", name="The first question").click()
    chat.until_text("The second question")
    assert _exported(chat, tmp_path) == ["The first question"] * 2 + ["The second question"] * 2
    chat.button("chat.regenerate").last.click()
    branches = chat.answer.get_by_role("group", name=t("chat.branches"))
    expect(branches).to_contain_text("2 / 2")
    chat.until_done()
    assert len(chat.stored()["messages"]) == 4, "nothing of the second question fits"

    page.evaluate("window.isFull = false")
    chat.sidebar()
    chat.open_menu_of("An old conversation")
    chat.choose("delete")
    chat.dialog.last.get_by_role("button", name=t("delete"), exact=True).click()
    expect(_note(chat)).to_have_count(0)
    page.reload()
    chat.until_text("The second question")
    expect(branches).to_contain_text("2 / 2")
    assert len(chat.stored()["messages"]) == 5


@on_both_screens
def test_a_tab_with_an_older_page_says_reload(visitor: Visitor, server: Served) -> None:
    chat = visitor.chat(server.url)
    _ask(chat, "Before the update")
    other = chat.page.context.new_page()
    other.goto(f"{server.url}/status")
    other.evaluate(_NEWER)
    _ask(chat, "After the update")
    expect(_note(chat)).to_contain_text(chat.t("chat.storage.outdated"))
    expect(_note(chat).get_by_role("button", name=chat.t("chat.storage.reload"))).to_be_visible()
    expect(chat.answers).to_have_count(2)
    require_accessible(chat.page)
    visitor.picture(chat.page, "chat-storage-outdated")


@in_looks(LIGHT_PHONE)
def test_settings_are_stored_when_a_slider_rests_or_the_page_is_left(visitor: Visitor, server: Served) -> None:
    chat = _chat_with(_FULL, visitor, server)
    page = chat.page
    _ask(chat, "A question")
    page.evaluate("window.puts = []")
    chat.settings()
    slider = page.get_by_role("slider", name=chat.t("settings.temperature"))
    slider.fill("0.5")
    slider.evaluate(_MOVE_BY_20_STEPS)
    assert page.evaluate("window.puts").count("conversations") <= 3
    page.reload()
    chat.until_text("A question")
    [conversation] = chat.stored()["conversations"]
    assert conversation["settings"]["temperature"] == 1.5


def test_an_answer_is_stored_without_the_messages_of_its_request(visitor: Visitor, server: Served) -> None:
    chat = visitor.chat(server.url)
    for text in ("data:text/plain,A question that looks like a file", "Another question"):
        _ask(chat, text)
    answers = [one["answer"] for one in chat.stored()["messages"] if one["answer"]]
    assert len(answers) == 2
    assert all("messages" not in one["request"] and one["request"]["stream"] for one in answers)
    chat.page.reload()
    chat.until_text("Another question")
    chat.answer.get_by_role("button", name=chat.t("chat.more"), exact=True).click()
    chat.choose("chat.as_code")
    code = chat.dialog.locator("pre").inner_text()
    body: Any = json.loads(code[code.index("{") : code.rindex("}") + 1])
    first = "data:text/plain,A question that looks like a file"
    assert body["messages"] == [
        {"role": "user", "content": first},
        {"role": "assistant", "content": first},
        {"role": "user", "content": "Another question"},
    ]


def _chat_with(script: str, visitor: Visitor, server: Served) -> ChatPage:
    chat = visitor.chat(server.url)
    chat.page.add_init_script(script)
    chat.page.reload()
    return chat


def _note(chat: ChatPage) -> Locator:
    return chat.page.locator(".storage-note")


def _ask(chat: ChatPage, text: str) -> None:
    chat.send(text)
    chat.until_text(text)
    chat.until_done()


def _exported(chat: ChatPage, folder: Path) -> list[str]:
    with chat.page.expect_download() as download:
        _note(chat).get_by_role("button", name=chat.t("chat.storage.export")).click()
    download.value.save_as(folder / "chat.json")
    messages = json.loads((folder / "chat.json").read_text())["messages"]
    assert all(one["answer"] is None or one["answer"]["status"] == "done" for one in messages)
    return [one["text"] for one in sorted(messages, key=lambda one: one["createdAt"])]
