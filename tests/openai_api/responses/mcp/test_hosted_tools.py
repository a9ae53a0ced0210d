"""HOSTED_TOOLS: a tool that OpenAI runs itself is the tools of an MCP server; and custom tools beside MCP servers."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.mcp_client.weather_process import McpProcess
from tests.openai_api.responses.event_order import Event
from tests.openai_api.responses.mcp.mcp_requests import a_call, an_array_of, items_of, server_tool
from tests.openai_api.responses.response_requests import create, refused, stream
from tests.openai_api.responses.test_event_types import check_strictly
from tests.openai_api.test_chat import CHAT, said
from tests.serving import Served, served, settings_with
from tis.openai_api.settings import hosted_servers
from tis.setting_types import SettingsError
from tis.settings import Settings

COUNT = "/v1/chat/completions/input_tokens"
RUN = {"type": "custom", "name": "run"}


@pytest.fixture(scope="module")
def searching(weather: McpProcess) -> Iterator[httpx2.Client]:
    settings = settings_with(
        mcp_allowed_hosts=weather.host,
        mcp_max_rounds=3,
        hosted_tools=f"web_search={weather.url},computer={weather.url}",
    )
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=30) as client:
        yield client


@pytest.mark.parametrize("kind", ["web_search", "web_search_preview", "computer_use_preview"])
def test_a_hosted_tool_is_the_tools_of_its_server(searching: httpx2.Client, kind: str) -> None:
    tool: Event = {"type": kind}
    events = stream(searching, a_call("get_weather", city="Solo"), tools=[tool])
    response = events[-1]["response"]
    assert response["tools"] == [tool]
    [listed] = items_of(response, "mcp_list_tools")
    [call] = items_of(response, "mcp_call")
    label = "computer" if kind.startswith("computer") else "web_search"
    assert (listed["server_label"], call["server_label"], call["status"]) == (label, label, "completed")
    assert "Solo" in call["output"]


def test_web_search_options_of_a_chat_are_its_tools(searching: httpx2.Client) -> None:
    options = {"search_context_size": "low", "user_location": {"type": "approximate"}}
    own = {"type": "custom", "custom": {"name": "run"}}
    body = said(a_call("get_weather", city="Solo"), web_search_options=options, tools=[own], user="u")
    answer = searching.post(CHAT, json=body)
    assert answer.status_code == 200, answer.text
    [call] = answer.json()["choices"][0]["message"]["mcp_calls"]
    assert (call["server_label"], call["status"]) == ("web_search", "completed") and "Solo" in call["output"]
    named = answer.headers["x-ignored-parameters"].split(", ")
    assert {"web_search_options.search_context_size", "web_search_options.user_location"} <= set(named)
    plain = searching.post(COUNT, json=said("Halo")).json()["input_tokens"]
    assert searching.post(COUNT, json=said("Halo", web_search_options={})).json()["input_tokens"] >= plain


@pytest.mark.parametrize("given", ["x", 5, [1], True])
def test_web_search_options_are_an_object(searching: httpx2.Client, given: Any) -> None:
    error = refused(searching, said("Halo", web_search_options=given), url=CHAT)
    assert error["param"] == "web_search_options"


def test_others_are_refused_by_name(searching: httpx2.Client) -> None:
    error = refused(searching, {"input": "Halo", "tools": [RUN, {"type": "file_search", "vector_store_ids": ["vs"]}]})
    assert (error["param"], error["code"]) == ("tools.1.type", "unsupported_value")
    assert "file_search" in error["message"] and "HOSTED_TOOLS" in error["message"]


def test_a_custom_tool_stands_beside_servers(visiting_server: Served, weather: McpProcess) -> None:
    text = an_array_of(a_call("get_weather", city="Solo"), a_call("run", input="a\n"))
    with httpx2.Client(base_url=visiting_server.url, timeout=30) as http:
        events = stream(http, text, tools=[RUN, server_tool(weather)])
        check_strictly(events)
        kinds = [item["type"] for item in events[-1]["response"]["output"]]
        assert kinds == ["mcp_list_tools", "mcp_call", "custom_tool_call"]
        assert items_of(events[-1]["response"], "custom_tool_call")[0]["input"] == "a\n"
        body = said(text, tools=[{"type": "custom", "custom": {"name": "run"}}, server_tool(weather)])
        [choice] = http.post(CHAT, json=body).json()["choices"]
        assert [call["custom"]["input"] for call in choice["message"]["tool_calls"]] == ["a\n"]
        assert len(choice["message"]["mcp_calls"]) == 1


@pytest.mark.model
def test_a_grammar_holds_in_the_rounds_of_servers(visiting_demo: Served, weather: McpProcess) -> None:
    """Each round makes its grammar anew, of all tools together."""
    form = {"type": "grammar", "syntax": "regex", "definition": r"[A-Z]{3}\n"}
    tools: list[Any] = [{"type": "custom", "name": "find_weather", "format": form}, server_tool(weather)]
    with httpx2.Client(base_url=visiting_demo.url, timeout=120) as http:
        more = {"tools": tools, "tool_choice": {"type": "custom", "name": "find_weather"}}
        response = create(http, "Halo", **more, temperature=1, seed=2, max_output_tokens=200)
        [call] = items_of(response, "custom_tool_call")
        assert call["input"][:3].isupper() and call["input"][3:] == "\n"


@pytest.mark.parametrize("given", ["web_search", "web_search=ftp://x", "shell=https://x.example", "=https://x"])
def test_a_setting_that_is_none_is_named(given: str) -> None:
    with pytest.raises(SettingsError, match="HOSTED_TOOLS"):
        Settings.from_env({"HOSTED_TOOLS": given}, env_file=None)


def test_the_setting_names_servers() -> None:
    given = Settings.from_env(
        {"HOSTED_TOOLS": "web_search=https://a.example/mcp?k=1, computer=http://127.0.0.1:9/x"}, env_file=None
    )
    assert hosted_servers(given.hosted_tools) == {
        "web_search": "https://a.example/mcp?k=1",
        "computer": "http://127.0.0.1:9/x",
    }
