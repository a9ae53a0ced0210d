"""Every streamed event is one that the newest `openai` package knows, field by field."""

import typing
from collections.abc import Iterator, Sequence
from typing import Any

import httpx2
import pytest
from openai import BaseModel
from openai.types.responses import ResponseStreamEvent

from tests.mcp_client.weather_process import McpProcess
from tests.openai_api.responses.event_order import Event
from tests.openai_api.responses.mcp.mcp_requests import a_call, an_array_of, items_of, server_tool
from tests.openai_api.responses.response_requests import LONG, RESPONSES, begun, replay, stream
from tests.serving import Served, served, settings_with

_MODELS: dict[str, type[BaseModel]] = {
    typing.get_args(model.model_fields["type"].annotation)[0]: model
    for model in typing.get_args(typing.get_args(ResponseStreamEvent)[0])
}
FUNCTION = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
FORM = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
# Not in the types, and why they are there.
EXTRA = {
    # The OpenResponses specification requires these in every response object.
    "response.presence_penalty",
    "response.frequency_penalty",
    "response.store",
    # openai-node requires it in `response.function_call_arguments.done`.
    "name",
    # OpenAI sends it with the call of a custom tool, too.
    "item.status",
    "response.output[].status",
    # The item that ends the stream must have them, and clients put it together from these.
    "logprobs[].bytes",
    "logprobs[].top_logprobs[].bytes",
}


def unknown_fields(model: Any, path: str = "") -> Iterator[str]:
    if isinstance(model, BaseModel):
        yield from (f"{path}.{name}" for name in model.model_extra or {})
        for name, value in model.__dict__.items():
            yield from unknown_fields(value, f"{path}.{name}")
    elif isinstance(model, list):
        for one in model:
            yield from unknown_fields(one, f"{path}[]")


def check_strictly(events: Sequence[Event]) -> None:
    unknown: set[str] = set()
    for event in events:
        model = _MODELS[event["type"]].model_validate(event, strict=True)
        unknown |= {path.removeprefix(".") for path in unknown_fields(model)}
    assert unknown <= EXTRA, unknown - EXTRA


def answered(request: Event, approve: bool) -> list[dict[str, Any]]:
    return [{"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": approve}]


def test_text(http: httpx2.Client) -> None:
    check_strictly(stream(http, "Halo", instructions="Be kind.", metadata={"a": "b"}, user="x", max_tool_calls=3))
    check_strictly(stream(http, "Halo", background=True, truncation="auto", temperature=1, service_tier="flex"))
    logprobs = {"include": ["message.output_text.logprobs"], "top_logprobs": 2}
    check_strictly(stream(http, "Halo", **logprobs))
    conversation = http.post("/v1/conversations", json={}).json()["id"]
    check_strictly(stream(http, "Halo", conversation=conversation))


@pytest.mark.parametrize("summary", [{}, {"summary": "auto"}, {"effort": "low"}])
def test_reasoning(hermes: httpx2.Client, summary: dict[str, str]) -> None:
    events = stream(hermes, "<think>Hm.</think>Yes.", reasoning=summary)
    assert [item["type"] for item in events[-1]["response"]["output"]] == ["reasoning", "message"]
    check_strictly(events)


@pytest.mark.parametrize("choice", ["auto", {"type": "allowed_tools", "mode": "auto", "tools": [FUNCTION]}])
def test_a_tool_call(hermes: httpx2.Client, choice: object) -> None:
    call = '<tool_call>{"name": "get_weather", "arguments": {"city": "Solo"}}</tool_call>'
    events = stream(hermes, call, tools=[FUNCTION, {"type": "function", "name": "pay"}], tool_choice=choice)
    assert items_of(events[-1]["response"], "function_call")
    check_strictly(events)


def test_an_mcp_call_with_approval(visiting_server: Served, weather: McpProcess) -> None:
    rule = {"always": {"tool_names": ["order"]}, "never": {"read_only": True}}
    tools = [
        server_tool(weather, require_approval=rule, server_description="Weather.", allowed_tools=["order", "refuse"])
    ]
    with httpx2.Client(base_url=visiting_server.url, timeout=30) as http:
        first = stream(http, a_call("order", item="ink"), tools=tools)
        [request] = items_of(first[-1]["response"], "mcp_approval_request")
        more = {"tools": tools, "previous_response_id": first[-1]["response"]["id"]}
        second = stream(http, answered(request, True), **more)
        assert items_of(second[-1]["response"], "mcp_call")[0]["status"] == "completed"
        failing = stream(http, a_call("refuse", why="x"), tools=[server_tool(weather)])
        assert items_of(failing[-1]["response"], "mcp_call")[0]["status"] == "failed"
        twice = an_array_of(a_call("order", item="ink"), a_call("order", item="ink"))
        limited = stream(http, twice, tools=[server_tool(weather)], max_tool_calls=1)
        assert items_of(limited[-1]["response"], "mcp_call")[1]["status"] == "failed"
        cut = stream(
            http,
            a_call("order", item="cut"),
            tools=[server_tool(weather)],
            max_output_tokens=len(a_call("order", item="cut")) - 4,
        )
        assert cut[-1]["type"] == "response.incomplete"
        for events in (first, second, failing, limited, cut):
            check_strictly(events)


@pytest.mark.model
def test_a_structured_answer(demo_server: Served) -> None:
    form = {"type": "json_schema", "name": "city", "schema": FORM, "strict": True, "description": "A city."}
    with httpx2.Client(base_url=demo_server.url, timeout=120) as http:
        for shape in (form, {"type": "json_object"}, {"type": "json_schema", "name": "city", "schema": FORM}):
            check_strictly(stream(http, "Where do you live?", text={"format": shape}, max_output_tokens=100))


def test_an_incomplete_or_failed_answer(http: httpx2.Client) -> None:
    incomplete = stream(http, "Halo", max_output_tokens=2)
    assert incomplete[-1]["type"] == "response.incomplete"
    check_strictly(incomplete)
    settings = settings_with(model_repo_id="echo?fail_after=3", mcp_allowed_hosts="127.0.0.1:1")
    gone = {"type": "mcp", "server_label": "gone", "server_url": "http://127.0.0.1:1/mcp"}
    with served(settings) as failing, httpx2.Client(base_url=failing.url, timeout=30) as client:
        for more in ({}, {"tools": [gone]}):
            failed = stream(client, "Halo", **more)
            assert failed[-1]["type"] == "response.failed"
            check_strictly(failed)


def test_a_cancelled_answer(slow_http: httpx2.Client) -> None:
    """Its last event is the one that OpenAI's streams do not have. It is as `response.incomplete` otherwise."""
    [first, *_] = begun(slow_http, LONG)
    slow_http.post(f"{RESPONSES}/{first['response']['id']}/cancel")
    *events, last = replay(slow_http, first["response"]["id"])
    assert (last["type"], last["response"]["status"]) == ("response.cancelled", "cancelled")
    check_strictly([*events, {**last, "type": "response.incomplete"}])
