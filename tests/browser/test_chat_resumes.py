"""An answer goes on after a reload, in a second tab, on another device, without the network, and after kill -9."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage, recorded_text
from tests.browser.conftest import Visitor
from tests.browser.cut_line import line_to
from tests.browser.looks import DARK_DESKTOP, DESKTOP, LIGHT_PHONE, PHONE, in_looks, on_both_screens
from tests.browser.page_watch import require_accessible
from tests.serving import Served, free_port, served, server_process, settings_with, wait_until_live

# The lost connections that these tests make are errors of the console; what the page does about them is tested.
_LOST = ("ERR_", "net::", "Failed to load resource")
_SENTENCE = "Word {} of a long line that the server repeats, one character at a time. "
_LINE = "".join(map(_SENTENCE.format, range(4)))

_HEARD = """() => {
  window.heard = [];
  const region = document.querySelector("[role=status].visually-hidden");
  const hear = () => { if (region.textContent) window.heard.push(region.textContent); };
  new MutationObserver(hear).observe(region, { childList: true, characterData: true, subtree: true });
}"""


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(settings_with(model_repo_id="echo?tokens_per_second=60")) as server:
        yield server


@on_both_screens
def test_an_answer_goes_on_after_a_reload_and_in_a_second_tab(visitor: Visitor, server: Served) -> None:
    chat = visitor.chat(server.url)
    chat.send(_LINE)
    chat.until_text("Word 0")
    other = chat.second_tab()
    other.until_text("Word 0")
    chat.page.reload()
    chat.until_text("Word 1")
    other.until_text("Word 1")
    session_id = chat.session_id
    chat.until_done()
    other.until_done()
    expect(chat.text).to_have_text(_LINE.strip())
    expect(other.text).to_have_text(_LINE.strip())
    assert chat.stored_answer(session_id)["text"] == recorded_text(server.url, session_id) == _LINE.strip()
    tokens = chat.t("chat.stats.tokens", number=chat.look.number(len(_LINE.strip())))
    # Nobody saw when its tokens were written.
    expect(chat.answer).to_contain_text(tokens)
    expect(chat.answer).not_to_contain_text(chat.look.pattern("chat.stats.speed"))
    visitor.picture(chat.page, "chat-resumed")


@in_looks(LIGHT_PHONE)
def test_an_answer_that_ended_while_no_tab_was_open_has_no_times(visitor: Visitor, server: Served) -> None:
    chat = visitor.chat(server.url)
    speed = chat.look.pattern("chat.stats.speed")
    chat.send(_LINE[:75])
    chat.until_done()
    expect(chat.answer).to_contain_text(speed)
    chat.send(_LINE)
    chat.until_text("Word 0")
    chat.until_stored("Word 0")
    session_id, address, context = chat.session_id, chat.page.url, chat.page.context
    chat.page.close()
    assert recorded_text(server.url, session_id) == _LINE.strip()
    later = ChatPage(context.new_page(), chat.look)
    later.page.goto(address)
    later.until_done()
    expect(later.answer).to_contain_text(later.look.pattern("chat.stats.tokens"))
    expect(later.answer).not_to_contain_text(speed)
    answer = later.stored_answer(session_id)
    assert answer["endedAt"] is None and answer["wasLost"]


@in_looks(DARK_DESKTOP)
def test_a_second_tab_sees_a_question_at_once_and_can_stop_its_answer(visitor: Visitor, server: Served) -> None:
    chat = visitor.chat(server.url)
    chat.send("One")
    chat.until_done()
    other = chat.second_tab()
    other.until_done()
    chat.send(_LINE * 5)
    other.until_text("Word 0")
    other.button("composer.stop").click()
    for one in (chat, other):
        one.until_done()
        expect(one.answer).to_contain_text(one.t("chat.stopped"))
    assert chat.text.inner_text() == other.text.inner_text() != _LINE * 5


@on_both_screens
def test_without_the_network_the_page_says_so_and_goes_on_later(visitor: Visitor, server: Served) -> None:
    visitor.expected = _LOST
    with line_to(server.url) as line:
        chat = visitor.chat(line.url)
        chat.page.evaluate(_HEARD)
        text = _LINE * 3  # it is still being written when the line is cut
        chat.send(text)
        chat.until_text("Word 0")
        line.cut()
        note = chat.answer.locator(".reconnecting")
        expect(note).to_contain_text(chat.t("chat.wait.unreachable"))
        expect(note).to_contain_text(chat.look.pattern("chat.wait.tries"))
        visitor.picture(chat.page, "chat-reconnecting")
        require_accessible(chat.page)
        line.mend()
        chat.until_done()
        expect(chat.text).to_have_text(text.strip())
        # A screen reader hears each of these once, however often the page tries.
        heard = [chat.t(f"chat.said.{name}") for name in ("running", "reconnecting", "resumed", "done")]
        assert chat.page.evaluate("window.heard") == heard


@in_looks(LIGHT_PHONE)
def test_a_connection_that_fell_silent_is_left(visitor: Visitor, server: Served) -> None:
    """As after the sleep of a laptop: nothing says that the connection is dead."""
    visitor.expected = _LOST
    with line_to(server.url) as line:
        chat = visitor.chat(line.url)
        chat.page.clock.install()
        chat.page.reload()
        chat.send(_LINE)
        chat.until_text("Word 0")
        line.freeze()
        for _ in range(3):
            chat.page.clock.fast_forward(40_000)
            chat.page.wait_for_timeout(300)
        chat.until_done()
        expect(chat.text).to_have_text(_LINE.strip())


def test_kill_9_in_mid_answer_loses_nothing(visitor: Visitor, tmp_path: Path) -> None:
    """In two tabs of a desktop and on a phone, of one server that is killed."""
    visitor.expected = _LOST
    variables = {
        "PORT": str(free_port()),
        "MODEL_REPO_ID": "echo?tokens_per_second=20",
        "PERSIST_SESSIONS": "1",
        "SESSIONS_DB_PATH": str(tmp_path / "sessions.db"),
        "DATABASE_URL": f"sqlite:///{tmp_path / 'tis.db'}",
    }
    with server_process(**variables) as first:
        wait_until_live(first.url, 200)
        chats = [visitor.chat(first.url, look) for look in (DESKTOP, PHONE)]
        for one in chats:
            one.send(_LINE)
        seen = [*chats, chats[0].second_tab()]
        for one in seen:
            one.until_text("Word 0")
        first.popen.kill()
        first.popen.wait()
        for one in seen:
            expect(one.answer.locator(".reconnecting")).to_contain_text(one.t("chat.wait.unreachable"))
        for one in chats:
            visitor.picture(one.page, "chat-killed")
            require_accessible(one.page)
    session_ids = [one.session_id for one in chats]
    with server_process(**variables) as second:
        for one in seen:
            one.until_done(200_000)
            expect(one.text).to_have_text(_LINE.strip())
        for one, session_id in zip(chats, session_ids, strict=True):
            text = recorded_text(second.url, session_id)
            assert one.stored_answer(session_id)["text"] == text == _LINE.strip()


def test_a_link_shows_the_answer_to_others_who_have_no_key(visitor: Visitor) -> None:
    """From a desktop to a phone, and from a phone to a desktop."""
    settings = settings_with(model_repo_id="echo?tokens_per_second=60", api_keys=["test-key-of-the-owner"])
    visitor.expected = ("401",)
    with served(settings) as server:
        for owner, reader in ((DARK_DESKTOP, LIGHT_PHONE), (PHONE, DESKTOP)):
            chat = visitor.chat(server.url, owner)
            chat.give_key("test-key-of-the-owner")
            chat.send(_LINE)
            chat.until_text("Word 0")
            chat.menu().click()
            chat.choose("chat.share")
            link = chat.page.get_by_label(chat.t("chat.share.link")).input_value()
            require_accessible(chat.page)
            visitor.picture(chat.page, "chat-share")
            watcher = visitor.chat(link, reader)
            watcher.until_text("Word 1")
            expect(watcher.questions.first).to_contain_text("Word 0 of a long line")
            expect(watcher.page.get_by_role("textbox")).to_have_count(0)
            expect(watcher.text).to_have_text(_LINE.strip())
            require_accessible(watcher.page)
            visitor.picture(watcher.page, "chat-watch")


def test_an_answer_that_the_server_has_forgotten_is_kept_and_can_go_on(visitor: Visitor) -> None:
    visitor.expected = _LOST
    port = str(free_port())
    with server_process(PORT=port, MODEL_REPO_ID="echo?tokens_per_second=60") as first:
        wait_until_live(first.url, 200)
        chats = [visitor.chat(first.url, look) for look in (DARK_DESKTOP, PHONE)]
        for chat in chats:
            chat.send(_LINE)
        for chat in chats:
            chat.until_text("Word 0")
    with server_process(PORT=port, MODEL_REPO_ID="echo") as second:
        wait_until_live(second.url, 200)
        for chat in chats:
            expect(chat.answer).to_contain_text(chat.t("chat.failed.session_lost"), timeout=30_000)
            require_accessible(chat.page)
            visitor.picture(chat.page, "chat-forgotten")
            assert re.match("Word 0", chat.text.inner_text())
            before = chat.text.inner_text()
            chat.button("chat.continue").click()
            expect(chat.text).not_to_have_text(before)
            chat.until_done()
            assert chat.text.inner_text().startswith(before)
