"""Two tabs with the same conversation: what one does the other shows, and nothing is done twice."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.chat_page import ChatPage, recorded_text
from tests.browser.conftest import Visitor
from tests.browser.looks import DARK_DESKTOP, PHONE, in_looks
from tests.serving import Served, served, settings_with

_LONG = "A sentence that takes its time. " * 40


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(settings_with(model_repo_id="echo?tokens_per_second=60")) as server:
        yield server


@in_looks(PHONE)
def test_a_conversation_that_is_deleted_while_its_answer_runs_leaves_nothing(visitor: Visitor, server: Served) -> None:
    chat = visitor.chat(server.url)
    other = chat.second_tab()
    for deleting in (chat, other):
        chat.page.goto(server.url)
        chat.send(_LONG)
        chat.until_text("A sentence")
        session_id = chat.session_id
        other.page.goto(chat.page.url)
        other.until_text("A sentence")
        _choose(deleting, "delete")
        deleting.dialog.get_by_role("button", name=chat.t("delete"), exact=True).click()
        watching = other if deleting is chat else chat
        expect(watching.page.locator(".toast")).to_contain_text(chat.t("chat.deleted_elsewhere"))
        for one in (chat, other):
            expect(one.page.locator(".message")).to_have_count(0)
            expect(one.page.locator(".empty")).to_be_visible()
        assert len(recorded_text(server.url, session_id)) < len(_LONG), "the server has stopped"
        chat.page.wait_for_timeout(1200)  # longer than an answer that is read waits to store itself
        assert chat.stored() == {"conversations": [], "messages": []}


@in_looks(DARK_DESKTOP)
def test_two_tabs_keep_one_copy_at_the_server(visitor: Visitor, server: Served) -> None:
    visitor.expected = ("500",)
    chat = visitor.chat(server.url)
    chat.send("First")
    chat.until_done()
    _keeping_fails_whole(chat)
    _choose(chat, "chat.keep_on_server")
    expect(chat.page.locator(".toast", has_text=chat.t("chat.server.kept"))).to_be_visible()
    other = chat.second_tab()
    other.until_text("First")
    for number, (asking, watching) in enumerate(((other, chat), (chat, other)), start=2):
        asking.send(f"Question {number}")
        for one in (asking, watching):
            one.until_text(f"Question {number}")
            one.until_done()
        _until_items(asking.page, 2 * number)
    chat.page.wait_for_timeout(500)  # the other tab has its turn, too
    assert _item_texts(chat.page) == [text for text in ("First", "Question 2", "Question 3") for _ in range(2)]
    _choose(chat, "chat.keep_in_browser")
    for one in (chat, other):
        expect(one.page).to_have_url(re.compile("#/c/chat-"))
        one.until_text("Question 3")
    [conversation] = chat.stored()["conversations"]
    assert conversation["place"] == "browser" and conversation.get("serverId") is None


def _keeping_fails_whole(chat: ChatPage) -> None:
    """The server takes the conversation and refuses its messages: the copy is no copy."""
    asked: list[str] = []

    def refuse(route: Route) -> None:
        asked.append(route.request.url)
        route.fulfill(status=500, json={"error": {"message": "No disk.", "type": "x", "param": None, "code": "x"}})

    # `times=1` would end the interception while the page asks for the next: Playwright then misses its response.
    chat.page.route("**/v1/conversations/*/items", refuse)
    with chat.page.expect_response(lambda response: response.request.method == "DELETE") as deleted:
        _choose(chat, "chat.keep_on_server")
    chat.page.unroute("**/v1/conversations/*/items")
    expect(chat.page.locator(".toast")).to_contain_text("No disk.")
    assert deleted.value.ok and len(asked) == 1 and asked[0].startswith(deleted.value.url)
    [conversation] = chat.stored()["conversations"]
    assert conversation["place"] == "browser" and conversation.get("serverId") is None


def _choose(chat: ChatPage, action: str) -> None:
    chat.menu().click()
    chat.choose(action)


_ITEMS = """async () => {
  const id = location.hash.split("/")[2];
  const answer = await fetch(`v1/conversations/${id}/items?limit=100&order=asc`);
  return (await answer.json()).data.map((item) => item.content[0].text);
}"""


def _item_texts(page: Page) -> Any:
    return page.evaluate(_ITEMS)


def _until_items(page: Page, count: int) -> None:
    page.wait_for_function(f"async (count) => (await ({_ITEMS})()).length >= count", arg=count)
