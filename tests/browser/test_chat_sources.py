"""What an answer cites: numbers in its text, sources below it, links and footnotes that are defined after their use."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import Visitor
from tests.browser.looks import DARK_DESKTOP, DESKTOP, LIGHT_PHONE, PHONE, on_both_screens
from tests.browser.page_watch import require_accessible
from tests.mcp_client.weather_process import McpProcess, weather_process
from tests.serving import Served, served, settings_with

_KEY = "test-key-of-the-owner"
# The tool says this, and the echo model repeats it: what is cited was returned by a tool.
_FOUND = """😀 Ferries leave [every hour](https://ships.example/merak?from=2&to=3), says the port.

* Lampung: see https://ports.example/bakauheni.
* More of it [here][2], and [no link](nowhere).

[2]: https://www.news.example/ferries "Ferries in the news"
"""
_MARKDOWN = """Ships[^1] are [large][big], and *old*[^old] ones are slow. See [1], but neither [nothing][x] nor [^y].

1. A list with [a link][BIG] and a note[^1]

[1]: https://ports.example/one
[big]: https://ships.example/big "Big ships"

[^1]: Vessels that carry **much**,
    and people.
[^old]: Built before 1990.

The end.
"""
_IN_STEPS = """async (text) => {
  const address = document.querySelector('script[src*="chat/main.js"]').src;
  const { GrowingText } = await import(address.replace("main.js", "markdown/growing_text.js"));
  const [grown, once] = [0, 1].map(() => document.createElement("div"));
  const growing = new GrowingText(grown);
  for (let end = 1; end <= text.length; end++) growing.update(text.slice(0, end), end === text.length);
  new GrowingText(once).update(text, true);
  return [grown.innerHTML, once.innerHTML];
}"""


def call_of(text: str) -> str:
    return json.dumps({"name": "say", "arguments": {"text": text}})


@pytest.fixture(scope="module")
def weather(tmp_path_factory: pytest.TempPathFactory) -> Iterator[McpProcess]:
    with weather_process(tmp_path_factory.mktemp("weather") / "calls.txt") as weather:
        yield weather


@pytest.fixture(scope="module")
def searching(weather: McpProcess) -> Iterator[Served]:
    settings = settings_with(
        model_repo_id="echo?tokens_per_second=150", mcp_allowed_hosts=[weather.host], api_keys=[_KEY]
    )
    with served(settings) as server:
        yield server


def test_an_answer_cites_and_others_watch_it(visitor: Visitor, searching: Served, weather: McpProcess) -> None:
    """Asked on a desktop, watched on a phone."""
    visitor.expected = ("401",)
    chat = visitor.chat(searching.url, DESKTOP)
    chat.give_key(_KEY)
    _add_server(chat, weather.url, "never")
    chat.ask(call_of(_FOUND))
    expect(chat.answer).to_contain_text("Ferries leave")
    link = _shared(chat)
    chat.page.keyboard.press("Escape")
    watcher = visitor.chat(link, PHONE)
    expect(watcher.questions).to_contain_text('"say"')
    for one in (chat, watcher):
        expect(one.page.get_by_role("region", name=one.t("chat.sources"))).to_be_visible(timeout=60_000)
        cited = one.text.locator("sup.cite a")
        expect(one.answer.locator(".sources a")).to_have_count(3)
        expect(cited).to_have_count(3)
        assert _sources(one.answer) == [
            ("1", "https://ships.example/merak?from=2&to=3"),
            ("2", "https://ports.example/bakauheni"),
            ("3", "https://www.news.example/ferries"),
        ]
        assert [(a.inner_text(), a.get_attribute("href")) for a in cited.all()] == _sources(one.answer)
        assert {a.get_attribute("rel") for a in one.answer.locator("a[target=_blank]").all()} == {
            "noopener noreferrer nofollow"
        }
        news = one.answer.get_by_role("link", name="here")
        expect(news).to_have_attribute("href", "https://www.news.example/ferries")
        expect(one.answer.locator(".step")).to_have_count(2)
        require_accessible(one.page)
        visitor.picture(one.page, "chat-sources")
    expect(watcher.page.get_by_role("textbox")).to_have_count(0)
    chat.page.reload()
    sources = chat.page.get_by_role("region", name=chat.t("chat.sources"))
    expect(sources.get_by_role("link")).to_have_count(3)


def test_who_watches_a_call_that_waits_cannot_decide(visitor: Visitor, searching: Served, weather: McpProcess) -> None:
    """Asked on a phone, watched on a desktop."""
    visitor.expected = ("401",)
    chat = visitor.chat(searching.url, LIGHT_PHONE)
    chat.give_key(_KEY)
    _add_server(chat, weather.url)
    chat.ask(call_of("Halo"))
    expect(chat.button("steps.approve")).to_be_visible()
    watcher = visitor.chat(_shared(chat), DARK_DESKTOP)
    expect(watcher.answer).to_contain_text(watcher.look.pattern("steps.question.watched"))
    expect(watcher.button("steps.approve")).to_have_count(0)
    require_accessible(watcher.page)
    visitor.picture(watcher.page, "chat-watched-approval")


@on_both_screens
def test_links_and_footnotes_that_are_defined_later(visitor: Visitor) -> None:
    with served(settings_with()) as server:
        chat = visitor.chat(server.url)
        page = chat.page
        grown, once = page.evaluate(_IN_STEPS, _MARKDOWN)
        assert grown == once
        chat.send(_MARKDOWN)
        chat.until_done()
        rich = chat.text
        links = [(a.inner_text(), a.get_attribute("href")) for a in rich.locator("a").all()]
        big = "https://ships.example/big"
        assert links == [("large", big), ("1", "https://ports.example/one"), ("a link", big)]
        expect(rich).to_contain_text("but neither [nothing][x] nor [^y].")
        expect(rich.locator("sup.cite")).to_have_text("1")
        assert rich.locator(".note-ref").all_inner_texts() == ["1", "2", "1"]
        notes = rich.get_by_label(chat.t("chat.footnotes")).locator("li")
        expect(notes).to_have_text(
            ["Vessels that carry much,\nand people. ↩", "Built before 1990. ↩"], use_inner_text=True
        )
        expect(rich.locator("> .block").last).to_have_text("The end.")
        address = page.url
        rich.get_by_role("button", name=chat.t("chat.footnote", number=2), exact=True).click()
        expect(notes.nth(1)).to_be_focused()
        notes.nth(1).get_by_role("button").click()
        expect(rich.get_by_role("button", name=chat.t("chat.footnote", number=2), exact=True)).to_be_focused()
        assert page.url == address
        require_accessible(page)
        visitor.picture(page, "chat-footnotes")


def _sources(answer: Locator) -> list[tuple[str, str | None]]:
    links = answer.locator(".sources a").all()
    return [(a.locator(".source-number").inner_text(), a.get_attribute("href")) for a in links]


def _shared(chat: ChatPage) -> str:
    chat.menu().click()
    chat.choose("chat.share")
    return chat.page.get_by_label(chat.t("chat.share.link")).input_value()


def _add_server(chat: ChatPage, url: str, approval: str = "always") -> None:
    dialog = chat.settings("settings.tools")
    dialog.get_by_label(chat.t("mcp.label"), exact=True).fill("pages")
    dialog.get_by_label(chat.t("mcp.url"), exact=True).fill(url)
    dialog.get_by_label(chat.t("mcp.approval"), exact=True).select_option(approval)
    chat.button("mcp.add").click()
    chat.page.keyboard.press("Escape")
