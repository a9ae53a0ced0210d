"""Settings of a conversation: sampling and presets, prompts to keep, JSON of a schema, probabilities, models."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import DemoChat, Visitor
from tests.browser.looks import on_both_screens, on_both_screens_too
from tests.browser.page_watch import require_accessible
from tests.serving import Served, served, settings_with


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(settings_with()) as server:
        yield server


@on_both_screens
def test_sampling_presets_and_prompts_are_sent_and_kept(visitor: Visitor, server: Served) -> None:
    chat = visitor.chat(server.url)
    page, t = chat.page, chat.t
    drawer = chat.settings()
    creative = chat.button("preset.creative")
    creative.click()
    expect(creative).to_have_attribute("aria-pressed", "true")
    limit = drawer.get_by_label(t("settings.max_tokens"), exact=True)
    limit.fill("many")
    expect(drawer.get_by_text(t("settings.fault.whole"))).to_be_visible()
    limit.fill("50")
    require_accessible(page)
    visitor.picture(page, "chat-settings")
    chat.button("settings.preset.save").click()
    drawer.get_by_label(t("settings.preset.name")).fill("Stories")
    chat.button("save").click()
    expect(drawer.get_by_role("button", name="Stories", exact=True)).to_have_attribute("aria-pressed", "true")
    drawer.get_by_role("tab", name=t("settings.system")).click()
    drawer.get_by_role("textbox").fill("You answer briefly.")
    chat.button("system.keep").click()
    drawer.get_by_label(t("system.name")).fill("Brief")
    chat.button("save").click()
    require_accessible(page)
    visitor.picture(page, "chat-prompts")
    chat.button("close").click()
    body = chat.ask("Hello")
    assert body["messages"] == [
        {"role": "system", "content": "You answer briefly."},
        {"role": "user", "content": "Hello"},
    ]
    assert {name: body.get(name) for name in ("temperature", "top_p", "min_p", "max_tokens", "top_k")} == {
        "temperature": 1.1, "top_p": 0.95, "min_p": 0.05, "max_tokens": 50, "top_k": None,
    }  # fmt: skip
    chat.until_done()
    # Another conversation in another page of this browser: presets and prompts are there, the prompt is not set.
    page.goto("about:blank")
    page.goto(server.url)
    drawer = chat.settings()
    chat.button("preset.precise").click()
    drawer.get_by_role("tab", name=t("settings.system")).click()
    expect(drawer.get_by_role("textbox")).to_have_value("")
    drawer.get_by_role("button", name="Brief You answer briefly.").click()
    chat.close_dialog()
    body = chat.ask("Hello")
    assert body["temperature"] == 0 and "top_p" not in body
    assert body["messages"][0]["content"] == "You answer briefly."


@on_both_screens
def test_an_answer_in_json_is_checked_and_shown_as_a_form(visitor: Visitor, demo_chat: DemoChat) -> None:
    chat = visitor.chat(demo_chat.url)
    page, t = chat.page, chat.t
    example = page.get_by_role("button", name=t("example.json"))
    body = chat.request_of(example.click)
    assert body["response_format"]["json_schema"]["schema"]["required"] == ["name", "city"]
    answer = chat.until_done()
    expect(answer.get_by_text(t("schema.answer.good"), exact=True)).to_be_visible()
    assert answer.get_by_role("term").all_inner_texts() == ["name", "city"]
    found = answer.get_by_role("definition").all_inner_texts()
    assert all(found) and all(one in t("example.json") for one in found), found
    require_accessible(page)
    visitor.picture(page, "chat-json")
    # The example's schema is for its question alone, which keeps it when it is asked again.
    body = chat.request_of(chat.button("chat.regenerate").click)
    assert body["response_format"]["json_schema"]["schema"]["required"] == ["name", "city"]
    chat.until_done()
    assert "response_format" not in chat.ask("Halo")
    chat.until_done()
    drawer = chat.settings("settings.schema")
    drawer.get_by_role("switch", name=t("schema.on")).click()
    chat.button("schema.add").click()
    expect(drawer.get_by_text(t("schema.fault.empty"))).to_be_visible()
    drawer.get_by_label(t("schema.name"), exact=True).last.fill("umur")
    drawer.get_by_label(t("schema.type"), exact=True).last.select_option("whole")
    require_accessible(page)
    visitor.picture(page, "chat-schema")
    drawer.get_by_role("tab", name="JSON Schema").click()
    raw = drawer.get_by_role("textbox", name="JSON Schema")
    assert '"umur": {\n      "type": "integer"' in raw.input_value()
    raw.fill('{"type": "objek"}')
    expect(drawer.get_by_text(t("schema.raw.type", detail="/type"))).to_be_visible()
    raw.fill('{"enum": ["ya", "tidak"]}')
    expect(drawer.get_by_text(t("schema.raw.good"))).to_be_visible()
    chat.close_dialog()
    body = chat.ask("Halo")
    assert body["response_format"]["json_schema"]["schema"] == {"enum": ["ya", "tidak"]}
    expect(chat.until_done().get_by_text(t("schema.answer.good"), exact=True)).to_be_visible()


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


@on_both_screens_too
def test_probabilities_are_shown_on_demand(visitor: Visitor, demo_chat: DemoChat) -> None:
    chat = visitor.chat(demo_chat.url)
    page, t = chat.page, chat.t
    drawer = chat.settings()
    drawer.get_by_role("switch", name=t("settings.logprobs")).click()
    drawer.get_by_label(t("settings.effort"), exact=True).select_option("low")
    chat.close_dialog()
    body = chat.ask("What is 12 + 7?")
    assert body["logprobs"] is True and body["top_logprobs"] == 5 and body["reasoning_effort"] == "low"
    answer = chat.until_done()
    answer.get_by_role("button", name=t("chat.more"), exact=True).click()
    chat.choose("chat.logprobs.show")
    tokens = answer.get_by_role("group", name=t("logprobs.name"))
    expect(tokens.locator(".token").first).to_be_visible()
    assert "".join(tokens.locator(".token").all_inner_texts()).strip() == "12 + 7 = 19."
    if chat.look.is_phone:
        tokens.locator(".token").first.tap()
    else:
        tokens.focus()
        page.keyboard.press("ArrowRight")
    expect(answer).to_contain_text(t("logprobs.instead"))
    require_accessible(page)
    visitor.picture(page, "chat-logprobs")


@on_both_screens_too
def test_a_model_is_unloaded_and_loaded_again(visitor: Visitor, server: Served) -> None:
    chat = visitor.chat(server.url)
    page, t, dialog = chat.page, chat.t, chat.dialog
    page.get_by_role("button", name=t("models.choose", name="echo")).click()
    dialog.get_by_text("echo", exact=True).first.wait_for()
    expect(chat.button("models.load").or_(chat.button("models.unload"))).to_be_visible()
    if chat.button("models.load").is_visible():
        chat.button("models.load").click()
    chat.button("models.unload").click()
    expect(dialog.get_by_text(t("models.state.unloaded"), exact=True)).to_be_visible()
    require_accessible(page)
    chat.button("models.load").click()
    expect(dialog.get_by_text(t("models.state.loaded"), exact=True)).to_be_visible()
    expect(dialog.get_by_text(t("models.is.loaded", name="echo"), exact=True)).to_be_attached()
    visitor.picture(page, "chat-models")
