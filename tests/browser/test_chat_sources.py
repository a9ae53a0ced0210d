"""What an answer cites: numbers in its text, sources below it, links and footnotes that are defined after their use."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.asking import answer_of, ask, field_of, request_of
from tests.browser.chat_page import ChatPage
from tests.browser.conftest import Visitor
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
    visitor.expected = ("401",)
    page = visitor.open(searching.url)
    _give_key(page, "API key", "Use this key")
    _add_server(page, weather.url, "Settings", "Tools", "Name", "Address", "Approval", "Add this server")
    ask(page, call_of(_FOUND))
    expect(page.locator(".message.assistant")).to_contain_text("Ferries leave")
    page.get_by_role("banner").get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="Share").click()
    expect(page.get_by_role("dialog")).to_contain_text("With tools")
    link = page.get_by_label("Link").input_value()
    page.keyboard.press("Escape")
    watcher = visitor.open(link, "phone", "dark", "id-ID")
    expect(watcher.locator(".message.user")).to_contain_text('"say"')
    for one, name in ((page, "Sources"), (watcher, "Sumber")):
        expect(one.get_by_role("region", name=name)).to_be_visible(timeout=60_000)
        answer = one.locator(".message.assistant")
        assert _sources(answer) == [
            ("1", "https://ships.example/merak?from=2&to=3"),
            ("2", "https://ports.example/bakauheni"),
            ("3", "https://www.news.example/ferries"),
        ]
        cited = answer.locator(".rich sup.cite a")
        assert [(a.inner_text(), a.get_attribute("href")) for a in cited.all()] == _sources(answer)
        assert {a.get_attribute("rel") for a in answer.locator("a[target=_blank]").all()} == {
            "noopener noreferrer nofollow"
        }
        expect(answer.get_by_role("link", name="here")).to_have_attribute("href", "https://www.news.example/ferries")
        expect(answer.locator(".step")).to_have_count(2)
        require_accessible(one)
    expect(watcher.locator("textarea")).to_have_count(0)
    visitor.picture(page, "chat-sources")
    visitor.picture(watcher, "chat-sources-watched-phone-dark-id")
    page.reload()
    expect(page.get_by_role("region", name="Sources").get_by_role("link")).to_have_count(3)


def test_who_watches_a_call_that_waits_cannot_decide(visitor: Visitor, searching: Served, weather: McpProcess) -> None:
    visitor.expected = ("401",)
    page = visitor.open(searching.url, "phone", "light", "id-ID")
    _give_key(page, "Kunci API", "Pakai kunci ini")
    _add_server(page, weather.url, "Pengaturan", "Alat", "Nama", "Alamat", None, "Tambahkan server ini")
    field_of(page).fill(call_of("Halo"))
    request_of(page, page.get_by_role("button", name="Kirim").click)
    expect(answer_of(page).get_by_role("button", name="Setujui")).to_be_visible()
    page.get_by_role("banner").get_by_role("button", name="Lainnya").click()
    page.get_by_role("menuitem", name="Bagikan").click()
    watcher = visitor.open(page.get_by_label("Tautan").input_value())
    expect(watcher.locator(".step.waiting_for_approval")).to_contain_text("Who asked decides.")
    expect(watcher.get_by_role("button", name="Approve")).to_have_count(0)
    require_accessible(watcher)
    visitor.picture(watcher, "chat-watched-approval")


def test_links_and_footnotes_that_are_defined_later(visitor: Visitor) -> None:
    with served(settings_with()) as server:
        page = visitor.open(server.url)
        grown, once = page.evaluate(_IN_STEPS, _MARKDOWN)
        assert grown == once
        chat = ChatPage(page)
        chat.send(_MARKDOWN)
        chat.until_done()
        rich = chat.text
        links = [(a.inner_text(), a.get_attribute("href")) for a in rich.locator("a").all()]
        big = "https://ships.example/big"
        assert links == [("large", big), ("1", "https://ports.example/one"), ("a link", big)]
        expect(rich).to_contain_text("but neither [nothing][x] nor [^y].")
        expect(rich.locator("sup.cite")).to_have_text("1")
        assert rich.locator(".note-ref").all_inner_texts() == ["1", "2", "1"]
        notes = rich.get_by_label("Footnotes").locator("li")
        said = ["Vessels that carry much,\nand people. ↩", "Built before 1990. ↩"]
        expect(notes).to_have_text(said, use_inner_text=True)
        expect(rich.locator("> .block").last).to_have_text("The end.")
        address = page.url
        rich.get_by_role("button", name="Footnote 2", exact=True).click()
        expect(notes.nth(1)).to_be_focused()
        notes.nth(1).get_by_role("button").click()
        expect(rich.get_by_role("button", name="Footnote 2", exact=True)).to_be_focused()
        assert page.url == address
        require_accessible(page)
        visitor.picture(page, "chat-footnotes")


def _sources(answer: Locator) -> list[tuple[str, str | None]]:
    links = answer.locator(".sources a").all()
    return [(a.locator(".source-number").inner_text(), a.get_attribute("href")) for a in links]


def _give_key(page: Page, name: str, use: str) -> None:
    page.get_by_role("textbox", name=name).fill(_KEY)
    page.get_by_role("button", name=use).click()


def _add_server(
    page: Page, url: str, settings: str, tools: str, name: str, address: str, approval: str | None, add: str
) -> None:
    page.get_by_role("banner").get_by_role("button", name=settings).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("tab", name=tools).click()
    dialog.get_by_label(name, exact=True).fill("pages")
    dialog.get_by_label(address).fill(url)
    if approval:
        dialog.get_by_label(approval).select_option("never")
    dialog.get_by_role("button", name=add).click()
    page.keyboard.press("Escape")
