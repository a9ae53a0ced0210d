"""/status as its readers use it: answers and their traces, keys, loading and unloading, a server that dies."""

import re
import signal
import threading
from collections.abc import Iterator

import httpx2
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visitor
from tests.browser.looks import ALL_LOOKS, DESKTOP, PHONE, PageLook, in_looks, on_both_screens
from tests.browser.page_watch import require_accessible
from tests.browser.test_status_numbers import IDLE, look_at
from tests.openai_api.test_chat import CHAT, said
from tests.serving import Served, free_port, served, server_process, settings_with, wait_until_live

PACED = "echo?tokens_per_second=20"
KEYS = ("sk-of-ani", "sk-of-budi")
ADMIN_KEY = "sk-of-the-admin"
REFUSED = "Failed to load resource: the server responded with a status of"
NOT_THERE = "Failed to load resource: net::"
LONG_TEXT = "laut " * 32  # a token for each letter: eight seconds


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(settings_with(model_repo_id=PACED)) as server:
        yield server


@pytest.fixture(scope="module")
def guarded() -> Iterator[Served]:
    settings = settings_with(model_repo_id=PACED, models="demo", api_keys=KEYS, admin_key=ADMIN_KEY)
    with served(settings) as server:
        yield server


def ask(url: str, text: str, key: str | None = None) -> threading.Thread:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    body = said(text, model=PACED)
    asking = threading.Thread(target=lambda: httpx2.post(url + CHAT, json=body, headers=headers, timeout=60))
    asking.start()
    return asking


def give_key(page: Page, look: PageLook, name: str, key: str) -> None:
    page.get_by_role("textbox", name=look.t(name), exact=True).fill(key)
    page.get_by_role("button", name=look.t("key.use"), exact=True).click()


@on_both_screens
def test_answers_are_seen_as_they_run_and_each_has_a_trace(visitor: Visitor, server: Served) -> None:
    page, t = visitor.open(f"{server.url}/status"), visitor.t
    page.locator(IDLE).wait_for()
    rows = page.locator("button.request-row")
    num_before = len(httpx2.get(f"{server.url}/v1/requests/recent").json()["data"])
    expect(rows).to_have_count(num_before)
    asking = [ask(server.url, LONG_TEXT), ask(server.url, LONG_TEXT)]
    expect(page.locator("[data-tile=running] .tile-value")).to_have_text("2")
    expect(page.locator("h1:is([data-message=running], [data-message=late])")).to_be_visible()
    speed = page.locator("[data-chart=tokens] [data-value=generated]")
    expect(speed).not_to_have_text("0")
    visitor.picture(page, "status-running")
    for one in asking:
        one.join()
    expect(rows).to_have_count(num_before + 2)
    row = rows.first
    require_accessible(page)
    row.click()
    trace = page.get_by_role("dialog", name="POST /v1/chat/completions")
    phases = trace.locator(".phase-list")
    expect(phases).to_contain_text(t("status.phase.decode"))
    expect(trace.locator("[data-fact='status.completion.tokens'] dd")).to_have_text(str(len(LONG_TEXT)))
    newest = httpx2.get(f"{server.url}/v1/requests/recent").json()["data"][:2]
    assert any(one["id"] in trace.inner_text() for one in newest)
    require_accessible(page)
    visitor.picture(page, "status-trace")
    page.keyboard.press("Escape")
    expect(row).to_be_focused()
    title = t("status.chart.tokens")
    page.get_by_role("button", name=t("status.as.table", title=title), exact=True).click()
    table = page.get_by_role("group", name=title, exact=True).get_by_role("table")
    expect(table.locator("td.number").filter(has_text=re.compile("^[1-9]")).first).to_be_visible()
    require_accessible(page)
    visitor.picture(page, "status-table")
    minutes = page.get_by_role("button", name=t("status.minutes", minutes=2), exact=True)
    minutes.click()
    page.reload()
    expect(minutes).to_have_attribute("aria-pressed", "true")


def test_a_page_that_nobody_sees_asks_nothing(visitor: Visitor, server: Served) -> None:
    page = visitor.open(f"{server.url}/status")
    page.locator(IDLE).wait_for()
    page.evaluate(
        "Object.defineProperty(document, 'hidden', { value: true, configurable: true });"
        "document.dispatchEvent(new Event('visibilitychange'));"
    )
    page.wait_for_timeout(500)  # what was asked before may still be answered
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(3000)
    assert asked == []
    with page.expect_request("**/metrics"):
        page.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'));")


@in_looks(*ALL_LOOKS)
def test_the_page_is_for_everybody(visitor: Visitor, server: Served) -> None:
    ask(server.url, "satu dua tiga").join()
    page = visitor.open(f"{server.url}/status")
    page.locator(IDLE).wait_for()
    page.locator("button.request-row").first.wait_for()
    for name in ("status.models", "status.over.time", "status.requests", "status.streams", "status.machine"):
        expect(page.get_by_role("heading", name=visitor.t(name), exact=True)).to_be_visible()
    require_accessible(page)
    visitor.whole_picture(page, "status")


@on_both_screens
def test_keys_are_asked_for_and_models_loaded_with_that_of_the_admin(visitor: Visitor, guarded: Served) -> None:
    visitor.expected = (REFUSED,)
    look, t = visitor.look, visitor.t
    ask(guarded.url, "satu dua", KEYS[1]).join()
    page = visitor.open(f"{guarded.url}/status")
    page.get_by_role("dialog", name=t("key.api")).wait_for()
    visitor.picture(page, "status-key")
    page.keyboard.press("Escape")
    expect(page.get_by_text(t("status.unseen.metrics"))).to_be_visible()
    require_accessible(page)
    visitor.picture(page, "status-locked")
    page.get_by_role("button", name=t("status.give.key")).click()
    give_key(page, look, "key.api", KEYS[0])
    calls = httpx2.get(f"{guarded.url}/metrics", headers={"Authorization": f"Bearer {KEYS[0]}"}).text
    found = look_at(calls, 0).value("tis_key_requests_total", key="env-2")
    expect(page.locator("[data-key=env-2] [data-metric=requests]")).to_have_text(f"{found:.0f}")
    expect(page.get_by_text(t("status.requests.own"))).to_be_visible()
    asked = page.locator("button.request-row", has_text="chat/completions")
    assert asked.count() == 0, "the requests of another key are seen"

    model = page.locator("[data-model=demo]")
    state = model.locator("header .badge")
    expect(state).to_have_text(t("status.state.unloaded"))
    model.get_by_role("button", name=t("status.load"), exact=True).click()
    give_key(page, look, "key.admin", "sk-of-nobody")
    expect(page.get_by_text(t("key.wrong"))).to_be_visible()
    give_key(page, look, "key.admin", ADMIN_KEY)
    expect(state).to_have_text(t("status.state.ready"), timeout=150_000)
    expect(page.locator("button.request-row", has_text="env-2").first).to_be_visible()

    asking = ask(guarded.url, LONG_TEXT, KEYS[1])
    paced = page.locator(f"[data-model='{PACED}']")
    expect(paced.locator("[data-fact='status.running'] dd")).to_have_text("1")
    paced.get_by_role("button", name=t("status.unload"), exact=True).click()
    confirm = page.get_by_role("dialog").get_by_role("button", name=t("status.unload"), exact=True)
    confirm.click()
    expect(paced.get_by_role("alert")).to_contain_text(look.pattern("status.in.use"))
    require_accessible(page)
    paced.scroll_into_view_if_needed()
    visitor.picture(page, "status-in-use")
    asking.join()

    model.get_by_role("button", name=t("status.unload"), exact=True).click()
    page.get_by_role("dialog").get_by_text(look.pattern("status.unload.about")).wait_for()
    visitor.picture(page, "status-unload")
    confirm.click()
    expect(state).to_have_text(t("status.state.unloaded"))
    states = {one["id"]: one["state"] for one in health_of(guarded)["models"]}
    assert states["demo"] == "unloaded"


def health_of(server: Served) -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = httpx2.get(
        f"{server.url}/health", headers={"Authorization": f"Bearer {KEYS[0]}"}
    ).json()
    return found


def test_the_page_outlives_the_server_and_goes_on_with_the_next(visitor: Visitor) -> None:
    """On a desktop and on a phone, of one server that is killed."""
    visitor.expected = (NOT_THERE, REFUSED)
    port = str(free_port())
    with server_process(PORT=port, MODEL_REPO_ID=PACED) as process:
        wait_until_live(process.url, 60)
        ask(process.url, "satu dua tiga").join()
        pages = {look: visitor.open(f"{process.url}/status", look) for look in (DESKTOP, PHONE)}
        for page in pages.values():
            page.locator(IDLE).wait_for()
            page.locator("button.request-row").first.wait_for()
        process.popen.send_signal(signal.SIGKILL)
        for look, page in pages.items():
            page.get_by_role("heading", name=look.t("status.is.lost")).wait_for()
            expect(page.locator(".picture")).to_have_class("picture stale")
            expect(page.locator("[data-key=anonymous] [data-metric=requests]")).to_have_text("1")
            require_accessible(page)
            visitor.picture(page, "status-lost")
    with server_process(PORT=port, MODEL_REPO_ID=PACED) as process:
        wait_until_live(process.url, 60)
        for page in pages.values():
            page.locator(IDLE).wait_for()
            expect(page.locator("[data-key=anonymous] [data-metric=requests]")).to_have_text("0")
            expect(page.locator(".picture")).to_have_class("picture")
