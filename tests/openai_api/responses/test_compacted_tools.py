"""What a compaction keeps of tools: those that the client has found, and the calls that are still open."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.openai_api.responses.event_order import Event
from tests.openai_api.responses.response_requests import CONVERSATIONS, LONG, RESPONSES, create, refused
from tests.openai_api.test_custom_tools import call
from tests.serving import served, settings_with
from tis.openai_api.store.items import to_client_items
from tis.openai_api.wire.as_chat import messages_of
from tis.openai_api.wire.chat_prompt import medium_placeholder
from tis.openai_api.wire.chat_request import ContentPart
from tis.openai_api.wire.client_items import as_function_items, checked_client_item
from tis.openai_api.wire.compacted_context import (
    ToolContext,
    context_to_seal,
    messages_in,
    sealed_context,
    tools_in,
    without_media,
)

COMPACT = f"{RESPONSES}/compact"
TRIGGER = {"type": "compaction_trigger"}
SEARCH: dict[str, Any] = {"type": "tool_search", "execution": "client"}
WEATHER = {"type": "function", "name": "get_weather", "parameters": {"type": "object"}}
CRM = {"type": "namespace", "name": "crm", "tools": [{"type": "function", "name": "find"}]}


@pytest.fixture(scope="module")
def hermes() -> Iterator[httpx2.Client]:
    """Says what it is told, and is taken for a model that writes calls as Hermes does."""
    with served(settings_with(model_repo_id="echo?tool_format=hermes")) as running:
        with httpx2.Client(base_url=running.url, timeout=30) as client:
            yield client


def said(role: str, text: str) -> Event:
    return {"role": role, "content": text}


def searched(*tools: Event, call_id: str = "c1") -> list[Event]:
    return [
        {"type": "tool_search_call", "call_id": call_id, "arguments": {"query": "x"}, "execution": "client"},
        {"type": "tool_search_output", "call_id": call_id, "execution": "client", "tools": list(tools)},
    ]


def named(response: Event) -> list[tuple[str, Any, Any]]:
    return [(item["type"], item.get("namespace"), item.get("name")) for item in response["output"]]


def test_tools_that_were_found_are_offered_behind_a_compaction(hermes: httpx2.Client) -> None:
    """From the item alone, of each way to get one."""
    history = [said("user", "Hi."), *searched(WEATHER, CRM), said("assistant", LONG * 4)]
    [triggered] = create(hermes, [*history, TRIGGER], tools=[SEARCH])["output"]
    threshold = {"context_management": [{"type": "compaction", "compact_threshold": 256}]}
    [before_answer, _] = create(hermes, [*history, said("user", "goats " * 50)], tools=[SEARCH], **threshold)["output"]
    window = hermes.post(COMPACT, json={"input": history}).json()["output"]
    [again] = create(hermes, [triggered, said("user", LONG), TRIGGER], tools=[SEARCH])["output"]
    for items in ([triggered], [before_answer], window, [again]):
        ask = [*items, said("user", call("get_weather", "{}"))]
        assert named(create(hermes, ask, tools=[SEARCH])) == [("function_call", None, "get_weather")]
        ask[-1] = said("user", call("crm__find", "{}"))
        assert named(create(hermes, ask, tools=[SEARCH])) == [("function_call", "crm", "find")]


def test_they_are_offered_in_a_chain_and_in_a_conversation(hermes: httpx2.Client) -> None:
    history = [said("user", "Hi."), *searched(WEATHER), said("assistant", LONG * 4)]
    identity = hermes.post(CONVERSATIONS, json={}).json()["id"]
    create(hermes, [*history, TRIGGER], tools=[SEARCH], conversation=identity)
    first = create(hermes, [*history, TRIGGER], tools=[SEARCH])["id"]
    weather = call("get_weather", "{}")
    for before in ({"conversation": identity}, {"previous_response_id": first}):
        assert named(create(hermes, weather, tools=[SEARCH], **before)) == [("function_call", None, "get_weather")]
    assert named(create(hermes, weather, tools=[SEARCH])) == [("message", None, None)]


def test_the_newest_of_a_name_counts_and_as_many_as_there_is_room_for() -> None:
    context = context_to_seal([said("user", "x"), said("assistant", "")], 1, ToolContext(), replaces=True)
    item = {"type": "compaction", "encrypted_content": sealed_context(context, "y")}
    assert tools_in(item) == ToolContext() and "beside" not in json.dumps(messages_in(item))
    large = [{**WEATHER, "name": f"tool_{number}", "description": "x" * 2000} for number in range(200)]
    context = context_to_seal([said("user", "x"), said("assistant", "")], 1, ToolContext(large), replaces=True)
    kept = [tool["name"] for tool in context["beside"]["tools"]]
    assert 100 < len(kept) < 128 and kept == [tool["name"] for tool in large[-len(kept) :]]


def test_the_output_of_a_local_shell_finds_its_call_behind_a_compaction(hermes: httpx2.Client) -> None:
    """Old clients name the id of the item, not the `call_id`."""
    shell = {"type": "local_shell_call", "id": "lsh_7", "call_id": "c7", "action": {"command": ["ls"]}}
    history = [said("user", "List them."), said("assistant", LONG * 4), said("user", "Go on."), shell]
    [item] = create(hermes, [*history, TRIGGER], tools=[{"type": "local_shell"}])["output"]
    window = hermes.post(COMPACT, json={"input": history}).json()["output"]
    output = {"type": "local_shell_call_output", "id": "lsh_7", "output": "a.txt"}
    for items in ([item], window):
        [again] = create(hermes, [*items, TRIGGER], tools=[{"type": "local_shell"}])["output"]
        for sealed in (items[-1], again):
            [answer] = create(hermes, [sealed, output], tools=[{"type": "local_shell"}])["output"]
            assert answer["content"][0]["text"] == "a.txt"
            both = [("input.0", sealed), ("input.1", checked_client_item(output, "input.1"))]
            messages, _ = messages_of(as_function_items(both), {})
            assert messages[-2]["tool_calls"][0]["id"] == messages[-1]["tool_call_id"] == "c7"


def test_an_output_belongs_to_the_call_before_it_if_ids_repeat() -> None:
    shells: list[Event] = [
        {"type": "local_shell_call", "id": "lsh_7", "call_id": at, "action": {"command": ["ls"]}} for at in "ab"
    ]
    output = checked_client_item({"type": "local_shell_call_output", "id": "lsh_7", "output": "x"}, "input.1")
    items = [(f"input.{at}", one) for at, one in enumerate([shells[0], output, shells[1], output])]
    assert [item["call_id"] for _, item in as_function_items(items)] == ["a", "a", "b", "b"]


@pytest.mark.parametrize(
    ("more", "source"),
    [
        ({"type": "audio_url", "audio_url": "data:audio/wav;base64,AAAA"}, ("AAAA", "base64")),
        ({"type": "audio", "audio": {"url": "/media/a.wav"}}, ("/media/a.wav", "url")),
        ({"type": "audio", "url": "http://example.com/a.wav"}, ("http://example.com/a.wav", "url")),
        ({"type": "input_audio", "data": "AAAA"}, ("AAAA", "base64")),
        ({"type": "audio", "b64_json": "AAAA"}, ("AAAA", "base64")),
        ({"type": "audio", "audio": {"b64_json": "AAAA"}}, ("AAAA", "base64")),
        ({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}}, ("AAAA", "base64")),
        ({"type": "image", "data": "AAAA"}, ("data:application/octet-stream;base64,AAAA", "url")),
        ({"type": "image", "image": {"data": "AAAA"}}, ("data:application/octet-stream;base64,AAAA", "url")),
        ({"type": "input_video", "video_url": {"url": "/media/a.mp4"}}, ("/media/a.mp4", "url")),
    ],
    ids=str,
)
def test_what_a_window_shows_of_media_can_be_sent_again(more: Event, source: tuple[str, str]) -> None:
    item: Event = {"type": "message", "role": "user", "content": [more]}
    for _ in range(2):
        [item] = to_client_items([item])
        found = medium_placeholder(ContentPart.model_validate(item["content"][0]), "x").source
        assert (found.value, found.encoding) == source


def test_a_summary_knows_what_a_medium_was() -> None:
    media = [{"type": kind, kind: "x"} for kind in ("image", "video", "audio")]
    told = without_media({"role": "user", "content": [{"type": "text", "text": "See "}, *media]})
    assert told["content"] == "See [picture][video][sound]"


def _of_calls(calls: Any) -> Event:
    return {"messages": [said("user", "x"), {"role": "assistant", "tool_calls": calls}]}


@pytest.mark.parametrize(
    "beside",
    [
        {"tools": 5},
        {"tools": ["x"]},
        {"call_ids": []},
        {"call_ids": {"a": 5}},
        _of_calls([{"type": "function", "function": {"name": "f", "arguments": "{}"}}]),
        _of_calls([{"id": ["c"], "type": "function", "function": {"name": "f", "arguments": "{}"}}]),
        _of_calls(["x"]),
    ],
)
def test_a_forged_item_is_refused(hermes: httpx2.Client, beside: Event) -> None:
    context = {"messages": [said("assistant", "")], "summary_at": 0, "replaces": True, "beside": beside}
    item = {"type": "compaction", "encrypted_content": sealed_context(context, "y")}
    for last in said("user", "x"), TRIGGER:
        assert refused(hermes, {"input": [item, last]})["code"] == "invalid_encrypted_content"


def test_a_forged_tool_is_named(hermes: httpx2.Client) -> None:
    context = {
        "messages": [said("assistant", "")],
        "summary_at": 0,
        "replaces": True,
        "beside": {"tools": [{"type": "function"}]},
    }
    item = {"type": "compaction", "encrypted_content": sealed_context(context, "y")}
    assert refused(hermes, {"input": [item, said("user", "x")]})["param"] == "input.0.tools.0.name"
