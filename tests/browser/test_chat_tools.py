"""MCP servers in the chat: a call is approved, another is refused, and what was done stands in steps."""

import json
from typing import Any

from playwright.sync_api import Locator, Route, expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import DemoChat, Visitor
from tests.browser.looks import DARK_DESKTOP, in_looks, on_both_screens, on_both_screens_too
from tests.browser.page_watch import require_accessible
from tests.serving import served, settings_with


@on_both_screens
def test_a_call_is_approved_and_another_refused(visitor: Visitor, demo_chat: DemoChat) -> None:
    calls = len(demo_chat.weather.calls)
    chat = visitor.chat(demo_chat.url)
    page, t = chat.page, chat.t
    dialog = chat.settings("settings.tools")
    chat.button("mcp.add").click()
    expect(dialog.get_by_text(t("mcp.fault.label"))).to_be_visible()
    require_accessible(page)
    _fill(chat, "weather", demo_chat.weather.url, "get_weather")
    visitor.picture(page, "chat-tool-form")
    chat.button("mcp.add").click()
    expect(dialog.get_by_text(t("mcp.only", tools="get_weather"))).to_be_visible()
    require_accessible(page)
    visitor.picture(page, "chat-tools")
    chat.close_dialog()
    body = chat.ask("What is the weather in Jakarta?")
    [tool] = body["tools"]
    assert tool["server_label"] == "weather" and tool["require_approval"] == "always"
    answer = chat.until_done()
    approve = chat.button("steps.approve")
    expect(approve).to_be_visible()
    require_accessible(page)
    visitor.picture(page, "chat-approval")
    assert len(demo_chat.weather.calls) == calls
    # The question waits for as long as it takes, also in a page that is opened again.
    page.reload()
    body = chat.request_of(approve.click)
    assert [item["approve"] for item in body["input"] if item.get("type") == "mcp_approval_response"] == [True]
    expect(chat.until_done()).to_contain_text("29")
    assert demo_chat.weather.calls[calls:] == ["get_weather Jakarta"]
    for fold in answer.locator("summary").all():
        fold.click()
    expect(answer.get_by_label(t("steps.arguments"))).to_contain_text('"city": "Jakarta"')
    expect(answer.get_by_label(t("steps.output"))).to_contain_text('"temperature": 29')
    require_accessible(page)
    visitor.picture(page, "chat-steps")
    chat.ask("What is the weather in Bandung?")
    chat.until_done()
    body = chat.request_of(chat.button("steps.refuse").click)
    assert [item["approve"] for item in body["input"] if item.get("type") == "mcp_approval_response"] == [True, False]
    expect(chat.until_done().get_by_text(t("steps.state.refused"))).to_be_visible()
    assert demo_chat.weather.calls[calls:] == ["get_weather Jakarta"]
    visitor.picture(page, "chat-call-refused")


@in_looks(DARK_DESKTOP)
def test_a_call_that_two_tabs_approve_is_made_once(visitor: Visitor, demo_chat: DemoChat) -> None:
    calls = len(demo_chat.weather.calls)
    chat = visitor.chat(demo_chat.url)
    _add(chat, "weather", demo_chat.weather.url, "get_weather")
    chat.ask("What is the weather in Jakarta?")
    expect(chat.button("steps.approve")).to_be_enabled()
    other = chat.second_tab()
    expect(other.button("steps.approve")).to_be_enabled()
    for one in (chat, other):
        one.page.evaluate("setTimeout(() => document.querySelector('.step button.primary')?.click(), 200)")
    for one in (chat, other):
        expect(one.until_done()).to_contain_text("29")
        expect(one.button("steps.approve")).to_have_count(0)
    chat.ask("What is the weather in Bandung?")
    other.button("steps.refuse").click()
    for one in (chat, other):
        expect(one.until_done().get_by_text(one.t("steps.state.refused"))).to_be_visible()
    assert demo_chat.weather.calls[calls:] == ["get_weather Jakarta"]


_REQUEST = {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "weather", "name": "get_weather"}


def test_a_call_is_decided_when_the_answer_has_ended(visitor: Visitor, demo_chat: DemoChat) -> None:
    """Before, the answer may ask for more, and the browser has not stored what would be decided."""
    chat = visitor.chat(demo_chat.url)
    _add(chat, "weather", demo_chat.weather.url, "get_weather")
    readings: list[Route] = []
    chat.page.route("**/v1/responses", lambda route: _give_events(route, _CREATED, _ASKED))
    chat.page.route("**/v1/responses/resp_1?*", lambda route: readings.append(route))
    with chat.page.expect_request("**/v1/responses/resp_1?*"):
        chat.ask("What is the weather in Jakarta?")
    approve = chat.button("steps.approve")
    expect(approve).to_be_disabled()
    expect(chat.button("steps.refuse")).to_be_disabled()
    _give_events(readings[0], _COMPLETED)
    expect(approve).to_be_enabled()
    body = chat.request_of(approve.click)
    assert [item["approve"] for item in body["input"] if item.get("type") == "mcp_approval_response"] == [True]


_CREATED = {"type": "response.created", "sequence_number": 0, "response": {"id": "resp_1"}}
_ASKED = {"type": "response.output_item.done", "sequence_number": 1, "item": {**_REQUEST, "arguments": "{}"}}
_COMPLETED = {"type": "response.completed", "sequence_number": 2, "response": {"id": "resp_1"}}


def _give_events(route: Route, *events: dict[str, Any]) -> None:
    body = "".join(f"id: resp_1:{event['sequence_number']}\ndata: {json.dumps(event)}\n\n" for event in events)
    route.fulfill(content_type="text/event-stream", body=body)


_HOLD_READINGS = """() => {
  const getAll = IDBIndex.prototype.getAll;
  window.heldReadings = [];
  IDBIndex.prototype.getAll = function (...bounds) {
    const request = getAll.apply(this, bounds);
    Object.defineProperty(request, "onsuccess", {
      set: (take) => request.addEventListener("success", () => window.heldReadings.push(take)),
    });
    return request;
  };
}"""
_LET_THE_FIRST_END = """async () => {
  window.heldReadings[0]();
  for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame);
}"""


def test_what_the_database_held_before_an_answer_ended_does_not_replace_it(
    visitor: Visitor, demo_chat: DemoChat
) -> None:
    chat = visitor.chat(demo_chat.url)
    _add(chat, "weather", demo_chat.weather.url, "get_weather")
    chat.ask("What is the weather in Jakarta?")
    expect(chat.button("steps.approve")).to_be_enabled()
    other = chat.second_tab()
    expect(other.button("steps.approve")).to_be_enabled()
    requests: list[Route] = []
    chat.page.route("**/v1/responses", lambda route: requests.append(route))
    chat.page.evaluate(_HOLD_READINGS)
    with chat.page.expect_request("**/v1/responses"):
        chat.button("steps.approve").click()
    [conversation] = chat.stored()["conversations"]
    other.page.evaluate(
        "id => new BroadcastChannel('tis.chat').postMessage({ conversationId: id })", conversation["id"]
    )
    chat.page.wait_for_function("() => window.heldReadings.length")  # what is no function is not looked at twice
    requests[0].continue_()
    expect(chat.answer).to_contain_text("29")
    chat.until_done()
    chat.page.evaluate(_LET_THE_FIRST_END)
    expect(chat.answer).to_contain_text("29", timeout=1)
    chat.until_done(timeout=1)


@on_both_screens_too
def test_calls_without_approval(visitor: Visitor, demo_chat: DemoChat) -> None:
    chat = visitor.chat(demo_chat.url)
    dialog = chat.settings("settings.tools")
    _fill(chat, "cuaca", demo_chat.weather.url, "get_weather")
    dialog.get_by_label(chat.t("mcp.approval"), exact=True).select_option("never")
    require_accessible(chat.page)
    chat.button("mcp.add").click()
    chat.close_dialog()
    body = chat.ask("Bagaimana cuaca di Bandung?")
    assert body["tools"][0]["require_approval"] == "never"
    expect(chat.until_done()).to_contain_text("Cuaca di Bandung: cerah, 29 derajat.")
    require_accessible(chat.page)
    visitor.picture(chat.page, "chat-called")


@on_both_screens_too
def test_a_host_that_the_server_may_not_call_is_explained(visitor: Visitor, demo_chat: DemoChat) -> None:
    visitor.expected = ("400",)
    chat = visitor.chat(demo_chat.url)
    _add(chat, "other", "https://tools.example.com/mcp")
    chat.ask("Hello")
    expect(chat.until_done()).to_contain_text("MCP_ALLOWED_HOSTS")
    visitor.picture(chat.page, "chat-host-refused")


def test_an_answer_with_tools_goes_on_after_a_reload(visitor: Visitor, demo_chat: DemoChat) -> None:
    line = "".join(f"Word {number} of a long line that the model repeats. " for number in range(5)).strip()
    settings = settings_with(model_repo_id="echo?tokens_per_second=50", mcp_allowed_hosts=[demo_chat.weather.host])
    with served(settings) as slow:
        chat = visitor.chat(slow.url)
        _add(chat, "weather", demo_chat.weather.url)
        chat.ask(line)
        expect(chat.answer).to_contain_text("Word 0")
        chat.page.reload()
        expect(chat.until_done().locator(".rich")).to_have_text(line)
        expect(chat.answers).to_have_count(1)


def _add(chat: ChatPage, name: str, url: str, tools: str = "") -> None:
    chat.settings("settings.tools")
    _fill(chat, name, url, tools)
    chat.button("mcp.add").click()
    chat.close_dialog()


def _fill(chat: ChatPage, name: str, url: str, tools: str = "") -> None:
    _field(chat, "mcp.label").fill(name)
    _field(chat, "mcp.url").fill(url)
    _field(chat, "mcp.tools").fill(tools)


def _field(chat: ChatPage, message: str) -> Locator:
    return chat.dialog.get_by_role("textbox", name=chat.t(message), exact=True)
