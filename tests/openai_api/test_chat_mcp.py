"""Tools of MCP servers in a chat: this server calls them, and one answer tells of it all."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import httpx2
import pytest
from openai import OpenAI

from tests.mcp_client.weather_process import McpProcess
from tests.openai_api.responses.mcp.mcp_requests import a_call, an_array_of, server_tool
from tests.openai_api.test_chat import CHAT, said
from tests.openai_api.test_chat_stream import SseBlock, stream
from tests.serving import Served, free_port, served, settings_with
from tis.openai_api.wire.chat_prompt import chat_prompt
from tis.openai_api.wire.chat_request import ChatRequest
from tis.openai_api.wire.chat_writer import GrowingMessage

PAY = {"type": "function", "function": {"name": "pay", "parameters": {"type": "object", "properties": {}}}}
CERAH = '{"city": "Solo", "temperature": 29, "condition": "cerah"}'


@pytest.fixture
def http(visiting_server: Served) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=visiting_server.url, timeout=30) as client:
        yield client


@pytest.fixture(scope="module")
def thinking_server(weather: McpProcess) -> Iterator[Served]:
    with served(settings_with(model_repo_id="echo?thinks=1&tool_format=hermes", mcp_allowed_hosts=weather.host)) as one:
        yield one


@pytest.fixture
def hermes(thinking_server: Served) -> Iterator[httpx2.Client]:
    """Taken for a model that thinks, and writes calls as Hermes does."""
    with httpx2.Client(base_url=thinking_server.url, timeout=30) as client:
        yield client


def marked(call: str) -> str:
    return f"<tool_call>\n{call}\n</tool_call>"


def asking(weather: McpProcess, text: str, **more: Any) -> dict[str, Any]:
    return said(text, **{"tools": [server_tool(weather)], **more})


def whole(http: httpx2.Client, body: dict[str, Any]) -> dict[str, Any]:
    answer = http.post(CHAT, json=body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def message_of(http: httpx2.Client, body: dict[str, Any]) -> dict[str, Any]:
    [choice] = whole(http, body)["choices"]
    return {"finish_reason": choice["finish_reason"], **choice["message"]}


def refused(http: httpx2.Client, body: dict[str, Any], status: int = 400) -> dict[str, Any]:
    answer = http.post(CHAT, json=body)
    assert answer.status_code == status, answer.text
    return dict(answer.json()["error"])


def deltas_of(blocks: Sequence[SseBlock]) -> list[dict[str, Any]]:
    return [choice["delta"] for block in blocks[:-1] for choice in block.chunk["choices"]]


def told_calls(blocks: Sequence[SseBlock]) -> list[dict[str, Any]]:
    return [call for delta in deltas_of(blocks) for call in delta.get("mcp_calls", ())]


def test_a_call_is_told_of_when_it_begins_and_when_it_ends(http: httpx2.Client, weather: McpProcess) -> None:
    asked = a_call("get_weather", city="Solo")
    blocks = stream(http, asking(weather, asked, stream_options={"include_usage": True}))
    deltas = deltas_of(blocks)
    assert deltas[0] == {"role": "assistant", "content": None}
    [begun, ended] = told_calls(blocks)
    arguments = '{"city": "Solo"}'
    assert begun == {
        "index": 0, "id": begun["id"], "server_label": "weather", "name": "get_weather", "arguments": arguments
    }  # fmt: skip
    assert ended == {"index": 0, "status": "completed", "output": CERAH}
    assert deltas[1:3] == [{"mcp_calls": [begun]}, {"mcp_calls": [ended]}] and deltas[-1] == {}
    assert "".join(delta["content"] for delta in deltas[3:-1]) == CERAH
    assert all("tool_calls" not in delta for delta in deltas)
    usage = blocks[-2].chunk["usage"]
    assert usage["prompt_tokens"] == usage["completion_tokens"] == len(asked) + len(CERAH)
    assert blocks[-3].chunk["choices"][0]["finish_reason"] == "stop" and blocks[-1].data == "[DONE]"
    assert [block.index for block in blocks] == list(range(len(blocks)))


@pytest.mark.parametrize("hides", [False, True])
def test_logprobs_are_those_of_what_is_shown(http: httpx2.Client, weather: McpProcess, hides: bool) -> None:
    body = asking(weather, a_call("get_weather", city="Solo"), logprobs=True, include_reasoning=not hides)
    [choice] = whole(http, body)["choices"]
    assert "".join(one["token"] for one in choice["logprobs"]["content"]) == choice["message"]["content"] == CERAH
    blocks = stream(http, body)
    assert not any(delta.get("content") == "" for delta in deltas_of(blocks))


def test_logprobs_of_calls_are_hidden_with_them(hermes: httpx2.Client, weather: McpProcess) -> None:
    text = f"before {marked(a_call('get_weather', city='Solo'))}\n"
    [choice] = whole(hermes, asking(weather, text, logprobs=True))["choices"]
    tokens = "".join(one["token"] for one in choice["logprobs"]["content"])
    assert tokens == f"before{CERAH}"


def test_whole_it_is_what_the_stream_adds_up_to(http: httpx2.Client, weather: McpProcess) -> None:
    nested = a_call("say", text=an_array_of(a_call("order", item="ink"), a_call("refuse", why="no")))
    answer, message = whole(http, asking(weather, nested)), GrowingMessage()
    blocks = stream(http, asking(weather, nested, stream_options={"include_usage": True}))
    for delta in deltas_of(blocks):
        message.add(delta)
    streamed, folded = message.whole(), answer["choices"][0]["message"]
    for call in (*streamed["mcp_calls"], *folded["mcp_calls"]):
        assert call.pop("id").startswith("call_")
    assert streamed == folded and "tool_calls" not in folded
    assert answer["usage"] == blocks[-2].chunk["usage"]
    assert [(call["name"], call["status"], call.get("output")) for call in folded["mcp_calls"]] == [
        ("say", "completed", an_array_of(a_call("order", item="ink"), a_call("refuse", why="no"))),
        ("order", "completed", "ordered ink"),
        ("refuse", "failed", None),
    ]
    assert folded["mcp_calls"][2]["error"]["type"] == "mcp_tool_execution_error"
    assert folded["content"] == "Error: Error executing tool refuse"


def test_the_official_client_is_content_with_it(
    sdk: Callable[[Served], OpenAI], visiting_server: Served, weather: McpProcess
) -> None:
    client, tool = sdk(visiting_server), server_tool(weather)
    messages: Any = [{"role": "user", "content": a_call("get_weather", city="Solo")}]
    tools: Any = [tool]
    message = client.chat.completions.create(model="m", messages=messages, tools=tools).choices[0].message
    assert message.content == CERAH and message.tool_calls is None
    assert message.model_extra and message.model_extra["mcp_calls"][0]["output"] == CERAH
    # Its helper takes functions alone, and adds up whatever has an index.
    with client.chat.completions.stream(model="m", messages=messages, extra_body={"tools": tools}) as events:
        added_up = events.get_final_completion().choices[0].message
    assert added_up.content == CERAH and added_up.model_extra
    [call] = added_up.model_extra["mcp_calls"]
    assert (call["name"], call["status"], len(call["id"])) == ("get_weather", "completed", 29)
    history: Any = [*messages, message.model_dump(), {"role": "user", "content": "thanks"}]
    assert client.chat.completions.create(model="m", messages=history, tools=tools).choices[0].message.content


def test_functions_of_the_client_are_handed_to_it(http: httpx2.Client, weather: McpProcess) -> None:
    both = an_array_of(a_call("order", item="glue"), a_call("pay"))
    message = message_of(http, asking(weather, both, tools=[PAY, server_tool(weather)]))
    assert message["finish_reason"] == "tool_calls" and message["content"] is None
    assert [call["output"] for call in message["mcp_calls"]] == ["ordered glue"]
    assert [call["function"]["name"] for call in message["tool_calls"]] == ["pay"]
    blocks = stream(http, asking(weather, both, tools=[PAY, server_tool(weather)]))
    assert {call["index"] for delta in deltas_of(blocks) for call in delta.get("tool_calls", ())} == {0}


def test_the_last_round_offers_no_tools(http: httpx2.Client, weather: McpProcess) -> None:
    message = message_of(http, asking(weather, a_call("again")))
    assert len(message["mcp_calls"]) == 3 and message["finish_reason"] == "stop"
    assert message["content"] == a_call("again")


def test_an_answer_that_reaches_max_tokens_makes_no_calls(hermes: httpx2.Client, weather: McpProcess) -> None:
    call, long = marked(a_call("order", item="clay" * 150)), "clay" * 149
    message = message_of(hermes, asking(weather, call, max_tokens=call.index("clay") + len(long)))
    assert message["finish_reason"] == "length" and not any("clay" in line for line in weather.calls)
    [incomplete] = message["mcp_calls"]
    assert (incomplete["status"], incomplete["arguments"]) == ("incomplete", f'{{"item": "{long}')


def test_no_call_is_made_twice_for_who_asks_twice(http: httpx2.Client, weather: McpProcess) -> None:
    body = asking(weather, a_call("order", item="rope"), session_id="rope")
    blocks = stream(http, body)
    assert stream(http, body) == blocks and weather.calls.count("order rope") == 1
    assert message_of(http, body)["content"] == "ordered rope"
    at = next(number for number, delta in enumerate(deltas_of(blocks)) if "mcp_calls" in delta)
    rest = http.get("/v1/stream/rope", headers={"Last-Event-ID": f"rope:{at}"}).text
    assert rest.count("\n\n") == len(blocks) - at - 1 and weather.calls.count("order rope") == 1


def test_cancel_does_not_wait_for_a_call(http: httpx2.Client, weather: McpProcess) -> None:
    body = asking(weather, a_call("think_long", seconds=8), stream=True, session_id="long")
    with http.stream("POST", CHAT, json=body) as answer:
        for line in answer.iter_lines():
            if "mcp_calls" in line and "status" not in line:
                http.post("/v1/cancel/long")
    [choice] = whole(http, body | {"stream": False})["choices"]
    [call] = choice["message"]["mcp_calls"]
    assert choice["cancelled"] and "cancelled during this call" in call["error"]["message"]


def test_what_was_called_before_is_history(http: httpx2.Client, weather: McpProcess) -> None:
    answered = message_of(http, asking(weather, a_call("get_weather", city="Solo")))
    del answered["finish_reason"]
    messages = [{"role": "user", "content": "x"}, answered, {"role": "user", "content": "thanks"}]
    for more in ({}, {"tools": [server_tool(weather)]}):
        assert message_of(http, {"messages": messages, **more})["content"] == "thanks"
    # Without words of its own, the model sees what the server said last.
    only_calls = {**answered, "content": None}
    assert message_of(http, {"messages": [messages[0], only_calls]})["content"] == CERAH


def test_the_model_sees_calls_before_what_was_said_of_them() -> None:
    made = {"id": "call_1", "server_label": "s", "name": "order", "arguments": '{"item": "x"}', "status": "failed"}
    answered = {"role": "assistant", "content": "No.", "reasoning": "Hm.", "mcp_calls": [{**made, "error": "gone"}]}
    body = ChatRequest.model_validate({"messages": [{"role": "user", "content": "x"}, answered]})
    assert chat_prompt(body).messages[1:] == [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "order", "arguments": {"item": "x"}}}
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "Error: gone"},
        {"role": "assistant", "content": "No.", "reasoning_content": "Hm."},
    ]


def test_tool_choice_none_connects_to_no_server(http: httpx2.Client, weather: McpProcess) -> None:
    message = message_of(http, asking(weather, a_call("order", item="x"), tool_choice="none"))
    assert message["content"] == a_call("order", item="x") and "mcp_calls" not in message


@pytest.mark.parametrize("shows", [True, False])
def test_thoughts_of_all_rounds_are_told_and_counted(hermes: httpx2.Client, weather: McpProcess, shows: bool) -> None:
    call = marked(a_call("say", text="<think>Two.</think>b"))
    asked = asking(weather, f"<think>One.</think>a\n{call}", include_reasoning=shows, logprobs=True)
    answer = whole(hermes, asked)
    [choice] = answer["choices"]
    message = choice["message"]
    assert message["content"] == "a\n\nb" and len(message["mcp_calls"]) == 1
    assert message.get("reasoning_content") == ("One.\n\nTwo." if shows else None)
    made, thought = answer["usage"]["completion_tokens"], len("<think>One.</think><think>Two.</think>")
    assert answer["usage"]["completion_tokens_details"]["reasoning_tokens"] == thought
    shown = made - len(f"\n{call}")
    assert len(choice["logprobs"]["content"]) == (shown if shows else shown - thought)


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"n": 2}, "n"),
        ({"tools": [{"require_approval": "always"}]}, "tools.0.require_approval"),
        ({"tools": [{"require_approval": None}]}, "tools.0.require_approval"),
        ({"tools": [{"require_approval": {"never": {"tool_names": ["say"]}}}]}, "tools.0.require_approval"),
        ({"tools": [{"server_url": "http://169.254.169.254/mcp"}]}, "tools.0.server_url"),
        ({"tools": [{"server_url": None}]}, "tools.0.server_url"),
        ({"tools": [{"headers": {"Host": "x"}}]}, "tools.0.headers"),
        ({"tools": [{}, {}]}, "tools.1.server_label"),
        ({"tool_choice": {"type": "mcp", "server_label": "other"}}, "tool_choice"),
        ({"tool_choice": {"type": "function", "function": {"name": "say"}}}, "tool_choice"),
        ({"continue_final_message": True}, "continue_final_message"),
        ({"prediction": {"type": "content", "content": "x"}}, "prediction"),
        ({"add_generation_prompt": False}, "add_generation_prompt"),
        ({"temperature": 9}, "temperature"),
    ],
)
def test_what_cannot_be_had_is_a_400(
    http: httpx2.Client, weather: McpProcess, change: dict[str, Any], param: str
) -> None:
    if "tools" in change:
        change = {"tools": [server_tool(weather, **more) for more in change["tools"]]}
    assert refused(http, asking(weather, "x", **change))["param"] == param


def test_a_function_is_checked_where_it_stands(http: httpx2.Client, weather: McpProcess) -> None:
    tools = [server_tool(weather), {"type": "function", "function": {"name": "a b"}}]
    assert refused(http, asking(weather, "x", tools=tools))["param"] == "tools.1.function.name"
    assert refused(http, asking(weather, "x", tools=[{"type": "search"}]))["param"] == "tools.0.type"


def test_a_server_that_is_not_there_fails_the_answer() -> None:
    port = free_port()
    tool = {"server_label": "gone", "server_url": f"http://127.0.0.1:{port}/mcp", "require_approval": "never"}
    body = said("x", tools=[{"type": "mcp", **tool}])
    with served(settings_with(mcp_allowed_hosts=f"127.0.0.1:{port}")) as running:
        with httpx2.Client(base_url=running.url, timeout=30) as http:
            error = refused(http, body, 424)
            assert error["code"] == "mcp_failed" and "'gone'" in error["message"]
            role, last = stream(http, body)
    assert "role" in role.chunk["choices"][0]["delta"] and last.chunk["error"] == error


def test_without_allowed_hosts_no_server_is_contacted(echo_server: Served, weather: McpProcess) -> None:
    with httpx2.Client(base_url=echo_server.url) as http:
        error = refused(http, asking(weather, "x"))
    assert error["code"] == "mcp_server_not_allowed" and "MCP_ALLOWED_HOSTS" in error["message"]


def test_a_result_that_is_too_long_for_the_model_fails_the_answer(http: httpx2.Client, weather: McpProcess) -> None:
    error = refused(http, asking(weather, a_call("say_much", kib=60)), 424)
    assert "maximum context length is 32768" in error["message"]


FORM = {
    "type": "object",
    "properties": {"city": {"enum": ["Jakarta"]}},
    "required": ["city"],
    "additionalProperties": False,
}


def about_jakarta(weather: McpProcess, *functions: Any, **more: Any) -> dict[str, Any]:
    return said(
        "What is the weather in Jakarta?",
        tools=[server_tool(weather, allowed_tools=["get_weather"]), *functions],
        response_format={"type": "json_schema", "json_schema": {"name": "city", "schema": FORM}},
        **{"temperature": 0, "max_tokens": 300, **more},
    )


@pytest.mark.model
@pytest.mark.parametrize("choice", ["auto", "required", {"type": "mcp", "server_label": "weather"}], ids=str)
def test_the_demo_model_calls_and_then_keeps_to_the_form(
    visiting_demo: Served, weather: McpProcess, choice: object
) -> None:
    with httpx2.Client(base_url=visiting_demo.url, timeout=120) as http:
        message = message_of(http, about_jakarta(weather, tool_choice=choice))
    assert message["mcp_calls"][0]["status"] == "completed" and message["finish_reason"] == "stop"
    assert json.loads(message["content"]) == {"city": "Jakarta"}


@pytest.mark.model
def test_beside_functions_and_a_form_servers_can_still_be_called(visiting_demo: Served, weather: McpProcess) -> None:
    with httpx2.Client(base_url=visiting_demo.url, timeout=120) as http:
        message = message_of(http, about_jakarta(weather, PAY))
        forced = {"type": "function", "function": {"name": "pay"}}
        paid = message_of(http, about_jakarta(weather, PAY, tool_choice=forced))
    assert message["mcp_calls"][0]["status"] == "completed"
    assert message["content"] is None or json.loads(message["content"]) == {"city": "Jakarta"}
    assert [call["function"]["name"] for call in paid["tool_calls"]] == ["pay"] and "mcp_calls" not in paid
