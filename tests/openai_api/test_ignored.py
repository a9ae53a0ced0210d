"""Hints and unknown fields never fail: what was ignored is named in a header, and nothing else changes."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from openai import OpenAI

from tests.openai_api.test_chat import CHAT, said
from tests.serving import Served, served, settings_with

HEADER = "x-ignored-parameters"
# As Cursor sends them to an endpoint of OpenAI, and Codex to `/v1/responses`.
CURSOR = {
    "model": "gpt-5", "stream": True, "user": "f3b1", "reasoning_effort": "medium", "verbosity": "low",
    "stream_options": {"include_usage": True, "include_obfuscation": False}, "service_tier": "auto",
    "prompt_cache_key": "tab-1", "store": False, "parallel_tool_calls": True,
}  # fmt: skip
CODEX = {
    "model": "gpt-5-codex", "instructions": "You are Codex.", "stream": True, "store": False,
    "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Halo"}]}],
    "tools": [], "tool_choice": "auto", "parallel_tool_calls": False, "include": ["reasoning.encrypted_content"],
    "reasoning": {"effort": "high", "summary": "auto"}, "text": {"verbosity": "medium"},
    "prompt_cache_key": "0199-aa", "prompt_cache_retention": "24h", "client_metadata": {"x": "y"},
}  # fmt: skip


def ignored(answer: httpx2.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    named = answer.headers.get(HEADER)
    return named.split(", ") if named else []


def test_the_body_of_cursor_is_answered(http: httpx2.Client) -> None:
    answer = http.post(CHAT, json=said("Halo", **CURSOR))
    assert answer.text.endswith("data: [DONE]\n\n")
    assert ignored(answer) == [
        "user", "stream_options.include_obfuscation", "prompt_cache_key", "store", "reasoning_effort", "verbosity",
    ]  # fmt: skip


def test_the_body_of_codex_is_answered(http: httpx2.Client) -> None:
    answer = http.post("/v1/responses", json=CODEX)
    assert "response.completed" in answer.text
    assert ignored(answer) == [
        "prompt_cache_retention", "client_metadata", "prompt_cache_key", "reasoning.effort", "text.verbosity",
    ]  # fmt: skip


def test_nothing_is_named_where_all_is_followed(http: httpx2.Client) -> None:
    bodies: list[dict[str, Any]] = [{}, {"temperature": 0, "seed": 1, "user": None}, {"service_tier": "default"}]
    for body in bodies:
        assert ignored(http.post(CHAT, json=said("Halo", **body))) == [], body
    assert ignored(http.post("/v1/responses", json={"input": "Halo", "service_tier": "auto"})) == []


@pytest.mark.parametrize(
    "hint", [{"reasoning_effort": "ultra"}, {"reasoning_effort": 3}, {"verbosity": ["low"]}, {"verbosity": "silent"}]
)
def test_a_hint_of_no_known_value_is_ignored_too(http: httpx2.Client, hint: dict[str, Any]) -> None:
    assert ignored(http.post(CHAT, json=said("Halo", **hint))) == list(hint)
    text = {"text": hint} if "verbosity" in hint else {"reasoning": {"effort": hint["reasoning_effort"]}}
    [named] = ignored(http.post("/v1/responses", json={"input": "Halo", **text}))
    assert named in ("text.verbosity", "reasoning.effort")


def test_the_answer_is_the_one_without_the_ignored_fields(http: httpx2.Client) -> None:
    plain = http.post(CHAT, json=said("Halo")).json()["choices"]
    messages = [{"role": "user", "content": [{"type": "text", "text": "Halo", "cache_control": {"type": "ephemeral"}}]}]
    answer = http.post(CHAT, json={"messages": messages, "best_of": 2, "naïve, x": 1, "metadata": {"a": "b"}})
    assert answer.json()["choices"] == plain
    assert ignored(answer) == ["messages.content.cache_control", "best_of", "na%C3%AFve%2C%20x", "metadata"]


def test_the_header_is_bounded(http: httpx2.Client) -> None:
    body = said("Halo", **{f"{number}{'é' * 300}": number for number in range(200)})
    named = ignored(http.post(CHAT, json=body))
    assert len(named) == 32 and max(map(len, named)) == 64


def test_half_a_surrogate_is_a_name_too(http: httpx2.Client) -> None:
    body = b'{"messages": [{"role": "user", "content": "Halo"}], "\\ud800": 1}'
    assert ignored(http.post(CHAT, content=body, headers={"Content-Type": "application/json"})) == ["%3F"]


def test_a_browser_may_read_it(http: httpx2.Client) -> None:
    answer = http.post(CHAT, json=said("Halo", user="a"), headers={"Origin": "http://localhost:5173"})
    assert "X-Ignored-Parameters" in answer.headers["access-control-expose-headers"]


def test_the_client_of_openai_reads_it(echo_server: Served) -> None:
    client = OpenAI(base_url=f"{echo_server.url}/v1", api_key="none", max_retries=0)
    raw = client.chat.completions.with_raw_response.create(
        model="echo", messages=[{"role": "user", "content": "Halo"}], verbosity="low", user="u-1"
    )
    assert raw.headers[HEADER] == "user, verbosity"
    assert raw.parse().choices[0].message.content == "Halo"


@pytest.fixture(scope="module")
def thinking() -> Iterator[httpx2.Client]:
    with served(settings_with(model_repo_id="echo?thinks=1")) as running, httpx2.Client(base_url=running.url) as client:
        yield client


def test_an_effort_is_followed_by_a_model_that_reasons(thinking: httpx2.Client) -> None:
    assert ignored(thinking.post(CHAT, json=said("Halo", reasoning_effort="low", verbosity="low"))) == ["verbosity"]


@pytest.mark.parametrize("message", [{"role": "user"}, {"role": "user", "content": None}])
def test_a_message_of_the_user_needs_content(http: httpx2.Client, message: dict[str, Any]) -> None:
    answer = http.post(CHAT, json={"messages": [{"role": "system", "content": "x"}, message]})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "messages.1.content"
    answer = http.post("/v1/responses", json={"input": [message]})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "input.0.content")


def test_an_assistant_that_only_called_needs_none(http: httpx2.Client) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    asked = {"role": "user", "content": "Halo"}
    messages = [asked, {"role": "assistant", "content": None, "tool_calls": [call]}, asked]
    assert http.post(CHAT, json={"messages": messages}).status_code == 200
