"""Tools of MCP servers are listed, called, and told of as OpenAI's clients know it."""

import httpx2

from tests.mcp.running import McpProcess
from tests.openai_api.responses.asking import create, stream, text_of
from tests.openai_api.responses.mcp.calling import a_call, items_of, kinds_of, server_tool


def test_a_tool_is_called_and_the_model_goes_on_with_what_it_said(http: httpx2.Client, weather: McpProcess) -> None:
    events = stream(http, a_call("get_weather", city="Solo"), tools=[server_tool(weather)])
    assert kinds_of(events) == [
        "created",
        "in_progress",
        "output_item.added",
        "mcp_list_tools.in_progress",
        "mcp_list_tools.completed",
        "output_item.done",
        "output_item.added",
        "mcp_call_arguments.done",
        "mcp_call.in_progress",
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
    print(events)
    response = events[-1]["response"]
    listed, call, message = response["output"]
    assert (listed["type"], listed["server_label"]) == ("mcp_list_tools", "weather")
    assert {"get_weather", "order"} <= {tool["name"] for tool in listed["tools"]}
