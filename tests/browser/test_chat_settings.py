"""Settings of a conversation: sampling and presets, prompts to keep, JSON of a schema, probabilities, models."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.asking import answer_of, ask, request_of
from tests.browser.conftest import DemoChat, Visitor
from tests.browser.page_watch import require_accessible
from tests.serving import Served, served, settings_with


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(settings_with()) as server:
        yield server


def test_sampling_presets_and_prompts_are_sent_and_kept(visitor: Visitor, server: Served) -> None:
    page = visitor.open(server.url)
    drawer = _open_settings(page)
    drawer.get_by_role("button", name="Creative").click()
    expect(drawer.get_by_role("button", name="Creative")).to_have_attribute("aria-pressed", "true")
    limit = drawer.get_by_label("Longest answer")
    limit.fill("many")
    expect(drawer.get_by_text("A whole number, please.")).to_be_visible()
    limit.fill("50")
    require_accessible(page)
    visitor.picture(page, "chat-settings")
    drawer.get_by_role("button", name="Save as a preset").click()
    drawer.get_by_label("Name of the preset").fill("Stories")
    drawer.get_by_role("button", name="Save", exact=True).click()
    expect(drawer.get_by_role("button", name="Stories", exact=True)).to_have_attribute("aria-pressed", "true")
    drawer.get_by_role("tab", name="System prompt").click()
    drawer.get_by_role("textbox").fill("You answer briefly.")
    drawer.get_by_role("button", name="Keep in the library").click()
    drawer.get_by_label("Name of the prompt").fill("Brief")
    drawer.get_by_role("button", name="Save", exact=True).click()
    require_accessible(page)
    page.keyboard.press("Escape")
    body = ask(page, "Hello")
    assert body["messages"] == [
        {"role": "system", "content": "You answer briefly."},
        {"role": "user", "content": "Hello"},
    ]
    assert {name: body.get(name) for name in ("temperature", "top_p", "min_p", "max_tokens", "top_k")} == {
        "temperature": 1.1, "top_p": 0.95, "min_p": 0.05, "max_tokens": 50, "top_k": None,
    }  # fmt: skip
    answer_of(page)
    # Another conversation in another page of this browser: presets and prompts are there, the prompt is not set.
    page.goto("about:blank")
    page.goto(server.url)
    drawer = _open_settings(page)
    drawer.get_by_role("button", name="Precise").click()
    drawer.get_by_role("tab", name="System prompt").click()
    expect(drawer.get_by_role("textbox")).to_have_value("")
    drawer.get_by_role("button", name="Brief You answer briefly.").click()
    page.keyboard.press("Escape")
    body = ask(page, "Hello")
    assert body["temperature"] == 0 and "top_p" not in body
    assert body["messages"][0]["content"] == "You answer briefly."


def test_an_answer_in_json_is_checked_and_shown_as_a_form(visitor: Visitor, demo_chat: DemoChat) -> None:
    page = visitor.open(demo_chat.url, "phone", "dark", "id-ID")
    example = page.get_by_role("button", name="Jawab dalam JSON: nama dan kota dari Budi di Medan.")
    body = request_of(page, example.click)
    assert body["response_format"]["json_schema"]["schema"]["required"] == ["name", "city"]
    answer = answer_of(page)
    expect(answer.get_by_text("sesuai skema", exact=True)).to_be_visible()
    assert answer.locator("dt").all_inner_texts() == ["name", "city"]
    assert answer.locator("dd").all_inner_texts() == ["Budi", "Medan"]
    require_accessible(page)
    visitor.picture(page, "chat-json-phone-dark-id")
    # The example's schema is for its question alone, which keeps it when it is asked again.
    body = request_of(page, answer.get_by_role("button", name="Jawab ulang").click)
    assert body["response_format"]["json_schema"]["schema"]["required"] == ["name", "city"]
    answer_of(page)
    assert "response_format" not in ask_by_button(page, "Halo")
    answer_of(page)
    drawer = _open_settings(page, "Pengaturan")
    drawer.get_by_role("tab", name="JSON").click()
    drawer.get_by_role("switch").click()
    drawer.get_by_role("button", name="Tambah isian").click()
    expect(drawer.get_by_text("Nama belum diisi.")).to_be_visible()
    drawer.get_by_label("Nama", exact=True).last.fill("umur")
    drawer.get_by_label("Jenis").last.select_option("whole")
    require_accessible(page)
    visitor.picture(page, "chat-schema-phone-dark-id")
    drawer.get_by_role("tab", name="JSON Schema").click()
    raw = drawer.get_by_role("textbox", name="JSON Schema")
    assert '"umur": {\n      "type": "integer"' in raw.input_value()
    raw.fill('{"type": "objek"}')
    expect(drawer.get_by_text("Tidak ada jenis seperti itu di /type.")).to_be_visible()
    raw.fill('{"enum": ["ya", "tidak"]}')
    expect(drawer.get_by_text("Ini sebuah skema.")).to_be_visible()
    page.keyboard.press("Escape")
    body = ask_by_button(page, "Halo")
    assert body["response_format"]["json_schema"]["schema"] == {"enum": ["ya", "tidak"]}
    expect(answer_of(page).get_by_text("sesuai skema", exact=True)).to_be_visible()


_PERSON: dict[str, Any] = {"properties": {"a": {"type": "integer"}}, "additionalProperties": False}
_NESTED: dict[str, Any] = {
    "$defs": {"p": {"properties": {"n": {"type": "number"}}}},
    "properties": {"p": {"$ref": "#/$defs/p"}},
}


@pytest.mark.parametrize(
    ("value", "schema", "faults"),
    [
        ({"a": 1}, _PERSON, []),
        ({"a": 1.5, "b": 2}, _PERSON, ["/a type", "/ extra"]),
        ({}, {"type": "object", "required": ["a"]}, ["/ missing"]),
        ([1, 1], {"items": {"minimum": 2}, "uniqueItems": True}, ["/ unique", "/0 min", "/1 min"]),
        ([1, 1], {"maxItems": 1}, ["/ long"]),
        ("Solo", {"enum": ["Medan"], "pattern": "^M"}, ["/ enum", "/ pattern"]),
        ({"p": {"n": "x"}}, _NESTED, ["/p/n type"]),
        (None, {"anyOf": [{"type": "string"}, {"type": "null"}]}, []),
        (5, {"oneOf": [{"type": "string"}, {"type": "null"}]}, ["/ any"]),
    ],
)
def test_values_are_checked_against_schemas(validator: Page, value: Any, schema: Any, faults: list[str]) -> None:
    found = validator.evaluate("([value, schema]) => window.faultsOf(value, schema)", [value, schema])
    assert sorted(f"{one['place']} {one['fault']}" for one in found) == sorted(faults)


@pytest.fixture(scope="module")
def validator(browser: Any, server: Served) -> Iterator[Page]:
    page = browser.new_page()
    page.goto(server.url)
    page.evaluate(
        """async () => {
          const { src } = document.querySelector("script[src*='/chat/main.js']");
          Object.assign(window, await import(src.replace("main.js", "settings/validate.js")));
        }"""
    )
    yield page
    page.close()


def test_probabilities_are_shown_on_demand(visitor: Visitor, demo_chat: DemoChat) -> None:
    page = visitor.open(demo_chat.url, theme="dark")
    drawer = _open_settings(page)
    drawer.get_by_role("switch", name="Record how sure the model is").click()
    drawer.get_by_label("Effort of thinking").select_option("low")
    page.keyboard.press("Escape")
    body = ask(page, "What is 12 + 7?")
    assert body["logprobs"] is True and body["top_logprobs"] == 5 and body["reasoning_effort"] == "low"
    answer = answer_of(page)
    answer.get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="Show how likely the tokens were").click()
    tokens = answer.locator(".logprob-text .token")
    assert "".join(tokens.all_inner_texts()).strip() == "12 + 7 = 19."
    answer.locator(".logprob-text").focus()
    page.keyboard.press("ArrowRight")
    expect(answer.locator(".logprob-details")).to_contain_text("other choices:")
    require_accessible(page)
    visitor.picture(page, "chat-logprobs-dark")


def test_a_model_is_unloaded_and_loaded_again(visitor: Visitor, server: Served) -> None:
    page = visitor.open(server.url)
    answers = page.get_by_role("button", name="Model: echo")
    answers.click()
    dialog = page.get_by_role("dialog")
    if dialog.get_by_role("button", name="Load", exact=True).is_visible():
        dialog.get_by_role("button", name="Load", exact=True).click()
    dialog.get_by_role("button", name="Unload").click()
    expect(dialog.get_by_text("not loaded")).to_be_visible()
    require_accessible(page)
    dialog.get_by_role("button", name="Load", exact=True).click()
    expect(dialog.get_by_text("ready", exact=True)).to_be_visible()
    expect(dialog.locator("[aria-live]")).to_have_text("echo is ready")
    visitor.picture(page, "chat-models")


def ask_by_button(page: Page, text: str) -> Any:
    page.locator(".composer-field").fill(text)
    return request_of(page, page.get_by_role("button", name="Kirim").click)


def _open_settings(page: Page, name: str = "Settings") -> Locator:
    page.get_by_role("banner").get_by_role("button", name=name).click()
    return page.get_by_role("dialog")
