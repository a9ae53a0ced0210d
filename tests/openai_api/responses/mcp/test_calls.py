"""Tools of MCP servers are listed, called, and told of as OpenAI's clients know it."""

import httpx2
import pytest

from tests.mcp_client.weather_process import McpProcess
from tests.openai_api.responses.mcp.mcp_requests import a_call, an_array_of, items_of, kinds_of, server_tool
from tests.openai_api.responses.response_requests import create, replay, stream, text_of


def test_a_tool_is_called_and_the_model_sees_its_result(http: httpx2.Client, weather: McpProcess) -> None:
    events = stream(http, a_call("get_weather", city="Solo"), tools=[server_tool(weather)])
    assert kinds_of(events) == [
        "created",
        "in_progress",
        "output_item.added",
        "mcp_list_tools.in_progress",
        "mcp_list_tools.completed",
        "output_item.done",
        "output_item.added",
        "mcp_call.in_progress",
        "mcp_call_arguments.done",
        "mcp_call.completed",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    response = events[-1]["response"]
    listed, call, message = response["output"]
    assert (listed["type"], listed["server_label"], listed["error"]) == ("mcp_list_tools", "weather", None)
    [tool] = [tool for tool in listed["tools"] if tool["name"] == "get_weather"]
    assert tool["input_schema"]["required"] == ["city"] and tool["annotations"] == {"readOnlyHint": True}
    all_kinds = [event["type"].removeprefix("response.") for event in events]
    assert all_kinds[all_kinds.index("mcp_call.in_progress") + 1] == "mcp_call_arguments.delta"
    deltas = [event for event in events if event["type"] == "response.mcp_call_arguments.delta"]
    assert "".join(event["delta"] for event in deltas) == call["arguments"] == '{"city": "Solo"}'
    assert {(event["item_id"], event["output_index"]) for event in deltas} == {(call["id"], 1)}
    said = '{"city": "Solo", "temperature": 29, "condition": "cerah"}'
    assert call == {
        "id": call["id"],
        "type": "mcp_call",
        "status": "completed",
        "approval_request_id": None,
        "server_label": "weather",
        "name": "get_weather",
        "arguments": '{"city": "Solo"}',
        "output": said,
        "error": None,
    }
    assert text_of(response) == said
    asked = a_call("get_weather", city="Solo")
    assert response["usage"]["input_tokens"] == response["usage"]["output_tokens"] == len(asked) + len(said)
    assert replay(http, response["id"]) == events


def test_the_unstreamed_answer_is_the_same(http: httpx2.Client, weather: McpProcess) -> None:
    whole = create(http, a_call("get_weather", city="Solo"), tools=[server_tool(weather)])
    streamed = stream(http, a_call("get_weather", city="Solo"), tools=[server_tool(weather)])[-1]["response"]
    assert [item["type"] for item in whole["output"]] == [item["type"] for item in streamed["output"]]
    assert text_of(whole) == text_of(streamed)


def test_a_result_may_lead_to_the_next_call(http: httpx2.Client, weather: McpProcess) -> None:
    nested = a_call("say", text=a_call("get_weather", city="Solo"))
    response = create(http, nested, tools=[server_tool(weather)])
    assert [call["name"] for call in items_of(response, "mcp_call")] == ["say", "get_weather"]
    assert "cerah" in text_of(response)


def test_parallel_calls_are_made_one_after_the_other(http: httpx2.Client, weather: McpProcess) -> None:
    both = an_array_of(a_call("order", item="tea"), a_call("order", item="rice"))
    response = create(http, both, tools=[server_tool(weather)])
    calls = items_of(response, "mcp_call")
    assert [call["output"] for call in calls] == ["ordered tea", "ordered rice"]
    assert weather.calls[-2:] == ["order tea", "order rice"]
    assert text_of(response) == "ordered rice"


def test_the_last_round_offers_no_tools(http: httpx2.Client, weather: McpProcess) -> None:
    response = create(http, a_call("again"), tools=[server_tool(weather)])
    assert len(items_of(response, "mcp_call")) == 3 and response["status"] == "completed"
    assert text_of(response) == a_call("again")


def test_max_tool_calls_limits_the_calls(http: httpx2.Client, weather: McpProcess) -> None:
    both = an_array_of(a_call("order", item="one"), a_call("order", item="two"))
    response = create(http, both, tools=[server_tool(weather)], max_tool_calls=1)
    first, second = items_of(response, "mcp_call")
    assert (first["status"], second["status"]) == ("completed", "failed")
    assert "limit of calls" in second["error"]["message"]
    assert "order two" not in weather.calls


def test_the_client_and_the_model_see_the_error_of_a_tool(http: httpx2.Client, weather: McpProcess) -> None:
    events = stream(http, a_call("refuse", why="no"), tools=[server_tool(weather)])
    assert "mcp_call.failed" in kinds_of(events)
    [call] = items_of(events[-1]["response"], "mcp_call")
    assert (call["status"], call["output"]) == ("failed", None)
    assert call["error"] == {
        "type": "mcp_tool_execution_error",
        "content": [{"type": "text", "text": "Error executing tool refuse"}],
    }
    assert text_of(events[-1]["response"]) == "Error: Error executing tool refuse"


def test_a_result_that_is_too_large_is_an_error(http: httpx2.Client, weather: McpProcess) -> None:
    for kib in (65, 4096):
        response = create(http, a_call("say_much", kib=kib), tools=[server_tool(weather)])
        [call] = items_of(response, "mcp_call")
        assert call["status"] == "failed" and call["error"]["type"] == "mcp_protocol_error"


@pytest.mark.parametrize(
    "allowed", [["order"], {"tool_names": ["order"]}, {"read_only": False, "tool_names": ["order"]}]
)
def test_only_allowed_tools_are_offered(http: httpx2.Client, weather: McpProcess, allowed: object) -> None:
    response = create(http, a_call("get_weather", city="Solo"), tools=[server_tool(weather, allowed_tools=allowed)])
    [listed] = items_of(response, "mcp_list_tools")
    assert [tool["name"] for tool in listed["tools"]] == ["order"]
    assert not items_of(response, "mcp_call") and text_of(response) == a_call("get_weather", city="Solo")


def test_tools_listed_in_the_conversation_are_not_listed_again(http: httpx2.Client, weather: McpProcess) -> None:
    first = create(http, "Halo", tools=[server_tool(weather)])
    more = {"tools": [server_tool(weather)], "previous_response_id": first["id"]}
    second = create(http, a_call("say", text="hi"), **more)
    assert not items_of(second, "mcp_list_tools") and text_of(second) == "hi"
    by_hand = [*first["output"], {"role": "user", "content": a_call("say", text="ho")}]
    assert text_of(create(http, by_hand, tools=[server_tool(weather)])) == "ho"


def test_a_list_of_tools_belongs_to_its_url_not_to_its_label(http: httpx2.Client, weather: McpProcess) -> None:
    first = create(http, "Halo", tools=[server_tool(weather)])
    elsewhere = [server_tool(weather, server_url=f"{weather.url}?tenant=2")]
    by_hand = [*first["output"], {"role": "user", "content": "Halo"}]
    foreign = [{**item, "id": f"mcpl_{number}"} for number, item in enumerate(first["output"][:1])]
    for given, more in (
        ("Halo", {"tools": elsewhere, "previous_response_id": first["id"]}),
        (by_hand, {"tools": elsewhere}),
        ([*foreign, by_hand[-1]], {"tools": [server_tool(weather)]}),
    ):
        response = create(http, given, **more)
        assert len(items_of(response, "mcp_list_tools")) == 1
    both = {"tools": [server_tool(weather)], "previous_response_id": response["id"]}
    assert not items_of(create(http, "Halo", **both), "mcp_list_tools")


def test_a_different_choice_of_tools_is_listed_again(http: httpx2.Client, weather: McpProcess) -> None:
    first = create(http, "Halo", tools=[server_tool(weather, allowed_tools=["order"])])
    other = [server_tool(weather, allowed_tools=["say"])]
    second = create(http, a_call("say", text="hi"), tools=other, previous_response_id=first["id"])
    assert items_of(second, "mcp_list_tools") and text_of(second) == "hi"


def test_earlier_calls_may_be_sent_back(http: httpx2.Client, weather: McpProcess) -> None:
    first = create(http, a_call("get_weather", city="Solo"), tools=[server_tool(weather)])
    history = [{"role": "user", "content": "x"}, *first["output"], {"role": "user", "content": "thanks"}]
    assert text_of(create(http, history)) == "thanks"
    assert text_of(create(http, "thanks", previous_response_id=first["id"])) == "thanks"
    kept = http.get(f"/v1/responses/{first['id']}").json()
    assert kept == first


def test_the_calls_of_an_unstored_response_join_its_conversation(http: httpx2.Client, weather: McpProcess) -> None:
    conversation = http.post("/v1/conversations", json={}).json()["id"]
    more = {"tools": [server_tool(weather)], "conversation": conversation, "store": False}
    response = create(http, a_call("say", text="hi"), **more)
    listed = http.get(f"/v1/conversations/{conversation}/items?order=asc").json()["data"]
    assert listed[1:] == response["output"]
    again = create(http, "Halo", **more)
    assert not items_of(again, "mcp_list_tools") and text_of(again) == "Halo"


def test_functions_and_mcp_tools_can_be_combined(http: httpx2.Client, weather: McpProcess) -> None:
    function = {"type": "function", "name": "pay", "parameters": {"type": "object", "properties": {}}}
    both = an_array_of(a_call("order", item="soap"), a_call("pay"))
    response = create(http, both, tools=[function, server_tool(weather)])
    assert [item["type"] for item in response["output"]] == ["mcp_list_tools", "mcp_call", "function_call"]
    assert response["output"][1]["output"] == "ordered soap"
    assert [tool["type"] for tool in response["tools"]] == ["function", "mcp"]


def test_no_server_takes_the_name_of_another_tool(http: httpx2.Client, weather: McpProcess) -> None:
    function = {"type": "function", "name": "order", "parameters": {"type": "object", "properties": {}}}
    tools = [function, server_tool(weather), server_tool(weather, server_label="other")]
    by_function = create(http, a_call("order", item="x"), tools=tools)
    assert [item["type"] for item in by_function["output"]][-1] == "function_call"
    by_server = create(http, a_call("other__order", item="y"), tools=tools)
    [call] = items_of(by_server, "mcp_call")
    assert (call["server_label"], call["name"], call["output"]) == ("other", "order", "ordered y")


def test_tool_choice_none_connects_to_no_server(http: httpx2.Client, weather: McpProcess) -> None:
    response = create(http, a_call("order", item="x"), tools=[server_tool(weather)], tool_choice="none")
    assert [item["type"] for item in response["output"]] == ["message"]


def test_a_background_response_calls_tools_without_a_client(http: httpx2.Client, weather: McpProcess) -> None:
    begun = create(http, a_call("say", text="hi"), tools=[server_tool(weather)], background=True)
    assert begun["status"] == "queued"
    events = replay(http, begun["id"])
    assert kinds_of(events)[:3] == ["created", "queued", "in_progress"]
    assert text_of(events[-1]["response"]) == "hi"


def test_an_answer_that_reaches_max_tokens_makes_no_calls(http: httpx2.Client, weather: McpProcess) -> None:
    call = a_call("order", item="cut")
    response = create(http, call, tools=[server_tool(weather)], max_output_tokens=len(call) - 4)
    assert response["status"] == "incomplete" and "order cut" not in weather.calls
    assert all(item["status"] == "incomplete" for item in items_of(response, "mcp_call"))
    whole = create(http, call, tools=[server_tool(weather)], max_output_tokens=len(call) + 3)
    assert (whole["status"], text_of(whole)) == ("incomplete", "ord")
    assert [item["status"] for item in items_of(whole, "message")] == ["incomplete"]


def test_cancel_does_not_wait_for_a_call(http: httpx2.Client, weather: McpProcess) -> None:
    events: list[str] = []
    num_thoughts = weather.calls.count("thought")  # of other tests
    body = {"input": a_call("think_long", seconds=8), "tools": [server_tool(weather)], "stream": True}
    with http.stream("POST", "/v1/responses", json=body) as answer:
        response_id = answer.headers["x-session-id"]
        for line in answer.iter_lines():
            events.append(line)
            if line == "event: response.mcp_call_arguments.done":
                http.post(f"/v1/responses/{response_id}/cancel")
    assert weather.calls.count("thought") == num_thoughts
    response = http.get(f"/v1/responses/{response_id}").json()
    [call] = items_of(response, "mcp_call")
    assert response["status"] == "cancelled" and call["status"] == "failed"
    assert "event: response.cancelled" in events
