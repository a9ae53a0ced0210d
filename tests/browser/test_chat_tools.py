"""MCP servers in the chat: a call is approved, another is refused, and what was done stands in steps."""

from playwright.sync_api import Locator, Page, expect

from tests.browser.asking import answer_of, ask, request_of
from tests.browser.conftest import DemoChat, Visitor
from tests.browser.page_watch import require_accessible
from tests.serving import served, settings_with


def test_a_call_is_approved_and_another_refused(visitor: Visitor, demo_chat: DemoChat) -> None:
    calls = len(demo_chat.weather.calls)
    page = visitor.open(demo_chat.url)
    dialog = _tools(page, "Settings", "Tools")
    dialog.get_by_role("button", name="Add this server").click()
    expect(dialog.get_by_text("Letters, digits, _ and - only.")).to_be_visible()
    require_accessible(page)
    dialog.get_by_label("Name", exact=True).fill("weather")
    dialog.get_by_label("Address").fill(demo_chat.weather.url)
    dialog.get_by_role("textbox", name="Tools").fill("get_weather")
    dialog.get_by_role("button", name="Add this server").click()
    expect(dialog.get_by_text("only get_weather")).to_be_visible()
    require_accessible(page)
    visitor.picture(page, "chat-tools")
    page.keyboard.press("Escape")
    body = ask(page, "What is the weather in Jakarta?")
    [tool] = body["tools"]
    assert tool["server_label"] == "weather" and tool["require_approval"] == "always"
    answer = answer_of(page)
    approve = answer.get_by_role("button", name="Approve")
    expect(approve).to_be_visible()
    require_accessible(page)
    visitor.picture(page, "chat-approval")
    assert len(demo_chat.weather.calls) == calls
    # The question waits for as long as it takes, also in a page that is opened again.
    page.reload()
    body = request_of(page, approve.click)
    assert [item["approve"] for item in body["input"] if item.get("type") == "mcp_approval_response"] == [True]
    expect(answer_of(page)).to_contain_text("29")
    assert demo_chat.weather.calls[calls:] == ["get_weather Jakarta"]
    _open_folds(answer)
    expect(answer.get_by_label("Arguments")).to_contain_text('"city": "Jakarta"')
    expect(answer.get_by_label("Result")).to_contain_text('"temperature": 29')
    require_accessible(page)
    visitor.picture(page, "chat-steps")
    ask(page, "What is the weather in Bandung?")
    refuse = answer_of(page).get_by_role("button", name="Refuse")
    body = request_of(page, refuse.click)
    assert [item["approve"] for item in body["input"] if item.get("type") == "mcp_approval_response"] == [True, False]
    expect(answer_of(page).get_by_text("refused")).to_be_visible()
    assert demo_chat.weather.calls[calls:] == ["get_weather Jakarta"]


def test_a_call_that_two_tabs_approve_is_made_once(visitor: Visitor, demo_chat: DemoChat) -> None:
    calls = len(demo_chat.weather.calls)
    page = visitor.open(demo_chat.url)
    dialog = _tools(page, "Settings", "Tools")
    dialog.get_by_label("Name", exact=True).fill("weather")
    dialog.get_by_label("Address").fill(demo_chat.weather.url)
    dialog.get_by_role("textbox", name="Tools").fill("get_weather")
    dialog.get_by_role("button", name="Add this server").click()
    page.keyboard.press("Escape")
    ask(page, "What is the weather in Jakarta?")
    answer_of(page).get_by_role("button", name="Approve").wait_for()
    other = page.context.new_page()
    other.goto(page.url)
    answer_of(other).get_by_role("button", name="Approve").wait_for()
    for one in (page, other):
        one.evaluate("setTimeout(() => document.querySelector('.step button.primary').click(), 200)")
    for one in (page, other):
        expect(answer_of(one)).to_contain_text("29")
        expect(one.get_by_role("button", name="Approve")).to_have_count(0)
    ask(page, "What is the weather in Bandung?")
    answer_of(other).get_by_role("button", name="Refuse").click()
    for one in (page, other):
        expect(answer_of(one).get_by_text("refused")).to_be_visible()
    assert demo_chat.weather.calls[calls:] == ["get_weather Jakarta"]


def test_calls_without_approval_on_a_phone(visitor: Visitor, demo_chat: DemoChat) -> None:
    page = visitor.open(demo_chat.url, "phone", "dark", "id-ID")
    dialog = _tools(page, "Pengaturan", "Alat")
    dialog.get_by_label("Nama", exact=True).fill("cuaca")
    dialog.get_by_label("Alamat").fill(demo_chat.weather.url)
    dialog.get_by_role("textbox", name="Alat").fill("get_weather")
    dialog.get_by_label("Persetujuan").select_option("never")
    require_accessible(page)
    visitor.picture(page, "chat-tools-phone-dark-id")
    dialog.get_by_role("button", name="Tambahkan server ini").click()
    page.keyboard.press("Escape")
    page.locator(".composer-field").fill("Bagaimana cuaca di Bandung?")
    body = request_of(page, page.get_by_role("button", name="Kirim").click)
    assert body["tools"][0]["require_approval"] == "never"
    expect(answer_of(page)).to_contain_text("Cuaca di Bandung: cerah, 29 derajat.")
    require_accessible(page)
    visitor.picture(page, "chat-steps-phone-dark-id")


def test_a_host_that_the_server_may_not_call_is_explained(visitor: Visitor, demo_chat: DemoChat) -> None:
    visitor.expected = ("400",)
    page = visitor.open(demo_chat.url)
    dialog = _tools(page, "Settings", "Tools")
    dialog.get_by_label("Name", exact=True).fill("other")
    dialog.get_by_label("Address").fill("https://tools.example.com/mcp")
    dialog.get_by_role("button", name="Add this server").click()
    page.keyboard.press("Escape")
    ask(page, "Hello")
    expect(answer_of(page)).to_contain_text("MCP_ALLOWED_HOSTS")


def test_an_answer_with_tools_goes_on_after_a_reload(visitor: Visitor, demo_chat: DemoChat) -> None:
    line = "".join(f"Word {number} of a long line that the model repeats. " for number in range(5)).strip()
    settings = settings_with(model_repo_id="echo?tokens_per_second=30", mcp_allowed_hosts=[demo_chat.weather.host])
    with served(settings) as slow:
        page = visitor.open(slow.url)
        dialog = _tools(page, "Settings", "Tools")
        dialog.get_by_label("Name", exact=True).fill("weather")
        dialog.get_by_label("Address").fill(demo_chat.weather.url)
        dialog.get_by_role("button", name="Add this server").click()
        page.keyboard.press("Escape")
        ask(page, line)
        expect(page.locator(".message.assistant")).to_contain_text("Word 0")
        page.reload()
        expect(answer_of(page).locator(".rich")).to_have_text(line)
        assert page.locator(".message.assistant").count() == 1


def _tools(page: Page, settings: str, tools: str) -> Locator:
    page.get_by_role("banner").get_by_role("button", name=settings).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("tab", name=tools).click()
    return dialog


def _open_folds(answer: Locator) -> None:
    for fold in answer.locator("summary").all():
        fold.click()
