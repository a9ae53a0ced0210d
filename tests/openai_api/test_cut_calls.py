"""A forced call that max_tokens or a stop string cuts is half a call for clients, and never text."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.mcp_client.weather_process import McpProcess
from tests.openai_api.responses.event_order import check_events
from tests.openai_api.responses.mcp.mcp_requests import server_tool
from tests.openai_api.responses.response_requests import stream as stream_response
from tests.openai_api.test_chat import CHAT, said
from tests.openai_api.test_chat_stream import stream
from tests.openai_api.test_structured import NOTE, WEATHER
from tests.openai_api.test_tools import folded, without_ids
from tests.serving import Served, served, settings_with

pytestmark = pytest.mark.model

# The demo model spells the markers of DeepSeek and gpt-oss, and a cut can split one of their characters.
FORMATS = ("hermes", "llama", "mistral", "json", "glm")

NAMED = {"tools": [WEATHER, NOTE], "tool_choice": {"type": "function", "function": {"name": "get_weather"}}}


@pytest.fixture(scope="module")
def formats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The demo model once for each format of tool calls."""
    path: Path = tmp_path_factory.mktemp("formats") / "models.yaml"
    models = {name: {"repo": "models/demo", "tool_format": name} for name in FORMATS}
    path.write_text(json.dumps({"models": models}))
    with served(settings_with(model_config_path=str(path), models=",".join(FORMATS), load_wait_seconds=120)) as running:
        yield running


@pytest.fixture
def http(formats: Served) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=formats.url, timeout=60) as client:
        yield client


def asking(model: str, **more: Any) -> dict[str, Any]:
    fixed = {"model": model, "temperature": 0, "reasoning_effort": "none"}
    return said("What is the weather in Bandung?", **{**fixed, **NAMED, **more})


def answer_of(http: httpx2.Client, body: dict[str, Any]) -> dict[str, Any]:
    answer = http.post(CHAT, json=body)
    assert answer.status_code == 200, answer.text
    [choice] = answer.json()["choices"]
    assert isinstance(choice, dict)
    return choice


@pytest.mark.parametrize("model", FORMATS)
def test_a_cut_call_is_the_beginning_of_the_whole_call(http: httpx2.Client, model: str) -> None:
    whole = http.post(CHAT, json=asking(model, max_tokens=200)).json()
    [expected] = whole["choices"][0]["message"]["tool_calls"]
    assert whole["choices"][0]["finish_reason"] == "tool_calls"
    bodies = [asking(model, max_tokens=length) for length in range(1, whole["usage"]["completion_tokens"])]
    with ThreadPoolExecutor(8) as threads:  # at once, so that the server computes them in batches
        choices = threads.map(lambda body: answer_of(http, body), bodies)
        streams = threads.map(lambda body: folded(stream(http, body)), bodies)
    num_cut = 0
    for choice, streamed in zip(choices, streams, strict=True):
        message = choice["message"]
        [call] = message["tool_calls"]
        assert (choice["finish_reason"], message["content"]) == ("length", None)
        assert call["function"]["name"] == "get_weather"
        assert expected["function"]["arguments"].startswith(call["function"]["arguments"])
        assert streamed == [without_ids(message)]
        num_cut += 0 < len(call["function"]["arguments"]) < len(expected["function"]["arguments"])
    assert num_cut >= 3


@pytest.mark.parametrize("model", FORMATS)
def test_a_stop_string_in_a_call_ends_it_with_stop(http: httpx2.Client, model: str) -> None:
    choice = answer_of(http, asking(model, stop="dung", max_tokens=200))
    [call] = choice["message"]["tool_calls"]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("stop", None)
    assert call["function"] == {"name": "get_weather", "arguments": '{"city": "Ban'}
    assert folded(stream(http, asking(model, stop="dung", max_tokens=200))) == [without_ids(choice["message"])]


@pytest.mark.parametrize("model", FORMATS)
def test_a_call_cut_before_its_name_is_named_only_if_the_name_is_certain(http: httpx2.Client, model: str) -> None:
    [named] = answer_of(http, asking(model, max_tokens=1))["message"]["tool_calls"]
    assert named["function"]["name"] == "get_weather"
    choice = answer_of(http, asking(model, max_tokens=1, tool_choice="required"))
    assert choice["finish_reason"] == "length" and not choice["message"]["content"]
    assert "tool_calls" not in choice["message"]


@pytest.mark.parametrize("model", FORMATS)
def test_a_cut_call_of_a_response_is_an_incomplete_item(http: httpx2.Client, model: str) -> None:
    body = {
        "tools": [{"type": "function", **tool["function"]} for tool in (WEATHER, NOTE)],  # type: ignore[dict-item]
        "tool_choice": {"type": "function", "name": "get_weather"},
        "reasoning": {"effort": "none"},
        "temperature": 0,
    }
    given = "What is the weather in Bandung?"
    written: list[str] = []
    for max_tokens in range(1, 60, 3):
        more = {**body, "model": model, "max_output_tokens": max_tokens}
        response = check_events(stream_response(http, given, **more))
        whole = http.post("/v1/responses", json={"input": given, **more}).json()
        [item] = response["output"]
        assert {**whole["output"][0], "id": "", "call_id": ""} == {**item, "id": "", "call_id": ""}
        assert (item["type"], item["name"]) == ("function_call", "get_weather")
        assert item["status"] == ("completed" if item["arguments"].endswith("}") else "incomplete")
        written.append(item["arguments"])
        if response["status"] == "completed":
            break
        assert response["incomplete_details"] == {"reason": "max_output_tokens"}
    assert json.loads(written[-1])
    assert len(set(written)) >= 3 and all(written[-1].startswith(cut) for cut in written)


@pytest.mark.parametrize("cut", [{"max_tokens": 1}, {"max_tokens": 4}, {"stop": "city"}, {"stop": "dung"}], ids=str)
def test_a_cut_call_of_an_mcp_tool_is_not_made(visiting_demo: Served, weather: McpProcess, cut: dict[str, Any]) -> None:
    num_made = len(weather.calls)
    forced: dict[str, Any] = {
        "tools": [server_tool(weather, allowed_tools=["get_weather"])],
        "tool_choice": {"type": "mcp", "server_label": "weather", "name": "get_weather"},
        "temperature": 0,
        "reasoning_effort": "none",
    }
    question = "What is the weather in Bandung?"
    reason, status = ("stop", "completed") if "stop" in cut else ("length", "incomplete")
    with httpx2.Client(base_url=visiting_demo.url, timeout=60) as http:
        choice = answer_of(http, said(question, **forced, **cut))
        message = choice["message"]
        assert choice["finish_reason"] == reason and not message["content"]
        assert [call["status"] for call in message["mcp_calls"]] == ["incomplete"] and "tool_calls" not in message
        del forced["reasoning_effort"]
        length = {"max_output_tokens": cut["max_tokens"]} if "max_tokens" in cut else cut
        events = stream_response(http, question, **forced, **length, reasoning={"effort": "none"})
        _, call = events[-1]["response"]["output"]
    assert (call["type"], call["status"], events[-1]["response"]["status"]) == ("mcp_call", "incomplete", status)
    assert [event["item"] for event in events if event["type"] == "response.output_item.done"][-1] == call
    assert len(weather.calls) == num_made
