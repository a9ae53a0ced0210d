"""`mcp_servers` of the Messages API: this server calls the tools, and shows calls and results as blocks."""

from typing import Any

import httpx2
import pytest

from tests.anthropic_api.message_requests import (
    COUNT,
    MESSAGES,
    WEATHER,
    asked,
    check_order,
    message_of,
    refusal,
    streamed,
)
from tests.mcp_client.weather_process import McpProcess
from tests.openai_api.responses.mcp.mcp_requests import a_call, an_array_of

CERAH = '{"city": "Solo", "temperature": 29, "condition": "cerah"}'


def asking(weather: McpProcess, text: str, *, server: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    one = {"type": "url", "name": "weather", "url": weather.url, **(server or {})}
    return message_of(text, mcp_servers=[one], **more)


def toolset(**fields: Any) -> dict[str, Any]:
    return {"type": "mcp_toolset", "mcp_server_name": "weather", **fields}


def test_a_call_and_its_result_are_blocks(calling: httpx2.Client, weather: McpProcess) -> None:
    body = asking(weather, a_call("get_weather", city="Solo"))
    message = asked(calling, body, **{"anthropic-beta": "mcp-client-2025-11-20"})
    call, result, text = message["content"]
    assert call == {
        "type": "mcp_tool_use",
        "id": call["id"],
        "name": "get_weather",
        "server_name": "weather",
        "input": {"city": "Solo"},
    }
    assert result == {
        "type": "mcp_tool_result",
        "tool_use_id": call["id"],
        "is_error": False,
        "content": [{"type": "text", "text": CERAH}],
    }
    assert (text["text"], message["stop_reason"]) == (CERAH, "end_turn")
    events = check_order(streamed(calling, body))
    assert [block["type"] for block in events["content"]] == [block["type"] for block in message["content"]]
    assert events["usage"]["input_tokens"] == message["usage"]["input_tokens"] > len(body["messages"][0]["content"])


@pytest.mark.parametrize(
    ("written", "sent"), [(r'{"city": "a\ud83d"}', {"city": "a\ud83d"}), ('{"city": 1e999}', {"city": "1e999"})]
)
def test_arguments_that_not_every_encoding_has_are_shown(
    calling: httpx2.Client, weather: McpProcess, written: str, sent: dict[str, Any]
) -> None:
    text = a_call("get_weather").replace("{}", written)
    call, *_ = asked(calling, asking(weather, text))["content"]
    assert (call["type"], call["input"]) == ("mcp_tool_use", sent)


def test_several_calls_stand_each_before_its_result(calling: httpx2.Client, weather: McpProcess) -> None:
    text = an_array_of(a_call("order", item="tea"), a_call("refuse", why="no"), a_call("get_weather", city="Solo"))
    content = check_order(streamed(calling, asking(weather, text)))["content"]
    assert [block["type"] for block in content[:6]] == ["mcp_tool_use", "mcp_tool_result"] * 3
    assert [block["is_error"] for block in content[1:6:2]] == [False, True, False]
    assert "refuse" in content[3]["content"][0]["text"]


def test_the_blocks_of_an_answer_come_back_in_the_history(calling: httpx2.Client, weather: McpProcess) -> None:
    body = asking(weather, a_call("get_weather", city="Solo"))
    content = asked(calling, body)["content"]
    body["messages"] += [{"role": "assistant", "content": content}, {"role": "user", "content": "Thanks"}]
    assert asked(calling, body)["content"] == [{"type": "text", "text": "Thanks"}]


def test_a_tool_of_the_client_is_left_to_it(calling: httpx2.Client, weather: McpProcess) -> None:
    pay = {"name": "pay", "input_schema": {"type": "object", "properties": {}}}
    message = asked(calling, asking(weather, a_call("pay"), tools=[pay, toolset()]))
    assert ([block["type"] for block in message["content"]], message["stop_reason"]) == (["tool_use"], "tool_use")


@pytest.mark.parametrize(
    "change",
    [
        {"server": {"tool_configuration": {"enabled": False}}},
        {"server": {"tool_configuration": {"allowed_tools": ["order"]}}},
        {"tools": [toolset(default_config={"enabled": False})]},
        {"tools": [toolset(default_config={"enabled": False}, configs={"order": {"enabled": True}})]},
        {"tool_choice": {"type": "none"}},
    ],
    ids=str,
)
def test_a_tool_that_is_not_enabled_is_not_called(
    calling: httpx2.Client, weather: McpProcess, change: dict[str, Any]
) -> None:
    text = a_call("get_weather", city="Solo")
    assert asked(calling, asking(weather, text, **change))["content"] == [{"type": "text", "text": text}]


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"server": {"url": "https://localhost:1/"}}, "mcp_servers.0.url"),
        ({"server": {"name": "a b"}}, "mcp_servers.0.name"),
        ({"server": {"type": "stdio"}}, "mcp_servers.0.type"),
        ({"tools": [toolset(configs={"order": {"enabled": False}})]}, "tools.0.configs"),
        ({"tools": [WEATHER, toolset(mcp_server_name="x")]}, "tools.1.mcp_server_name"),
    ],
    ids=str,
)
def test_a_wrong_server_is_named(
    calling: httpx2.Client, weather: McpProcess, change: dict[str, Any], param: str
) -> None:
    assert refusal(calling, asking(weather, "Halo", **change))["details"]["param"] == param


def test_the_beginning_of_an_answer_has_no_place_beside_them(calling: httpx2.Client, weather: McpProcess) -> None:
    body = asking(weather, "Halo")
    body["messages"].append({"role": "assistant", "content": "I"})
    assert refusal(calling, body)["details"]["param"] == "messages"


def test_their_tools_are_counted(calling: httpx2.Client, weather: McpProcess) -> None:
    assert calling.post(COUNT, json=asking(weather, "Halo")).json() == {"input_tokens": 4}  # the echo shows no tools


def test_a_server_that_does_not_answer_fails_the_message(calling: httpx2.Client, weather: McpProcess) -> None:
    body = asking(weather, "Halo", server={"url": f"{weather.url}/nowhere"})
    answer = calling.post(MESSAGES, json=body)
    assert (answer.status_code, answer.json()["error"]["type"]) == (424, "api_error")
