"""POST /v1/messages, streamed: the events, and how a client comes back to them."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.anthropic_api.message_requests import (
    MESSAGES,
    WEATHER,
    MessageEvent,
    asked,
    check_order,
    message_of,
    read_events,
    streamed,
)
from tests.openai_api.test_chat import CHAT, said
from tests.serving import served, settings_with
from tis.streaming.retention import SessionLimits

LONG = "It took the ferry a night to cross the sea. "
CALLS = (
    "<think>\nTwo cities.\n</think>\n\nI look.\n"
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Bandung"}}\n</tool_call>\n'
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Banda Neira and all islands around it, near and far"}}'
    "\n</tool_call>"
)


@pytest.fixture
def session_id(request: pytest.FixtureRequest) -> str:
    return f"messages-{request.node.name}".replace("[", "-").replace("]", "")


@pytest.fixture(scope="module")
def agent() -> Iterator[httpx2.Client]:
    settings = settings_with(model_repo_id="echo?thinks=1&tool_format=hermes")
    with served(settings) as running, httpx2.Client(base_url=running.url) as client:
        yield client


def read_some(http: httpx2.Client, body: dict[str, Any], count: int, **headers: str) -> list[MessageEvent]:
    """Leaves in the middle, as a lost connection does."""
    with http.stream("POST", MESSAGES, json={**body, "stream": True}, headers=headers) as answer:
        text = ""
        for piece in answer.iter_text():
            text += piece
            if text.count("\n\n") >= count:
                return read_events(text)
    raise AssertionError("the stream ended early")


def test_the_events_are_those_that_clients_depend_on(http: httpx2.Client) -> None:
    events = streamed(http, message_of("Halo"))
    assert [event.name for event in events] == [
        "message_start", "content_block_start", *["content_block_delta"] * 4, "content_block_stop", "message_delta",
        "message_stop",
    ]  # fmt: skip
    assert [event.index for event in events] == list(range(9))
    assert events[0].data["message"]["usage"]["input_tokens"] == 4
    assert events[1].data == {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    assert events[2].data["delta"] == {"type": "text_delta", "text": "H"}


@pytest.mark.parametrize(
    "more",
    [
        {"tools": [WEATHER]},
        {"tools": [WEATHER], "thinking": {"type": "adaptive", "display": "omitted"}},
        {"tools": [WEATHER], "tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
        {"max_tokens": 60, "tools": [WEATHER]},
        {"stop_sequences": ["Bandung"]},
        {"stop_sequences": ["I look"], "tools": [WEATHER]},
        {},
    ],
    ids=str,
)
def test_a_stream_is_the_whole_answer(agent: httpx2.Client, more: dict[str, Any]) -> None:
    body = message_of(CALLS, **more)
    message, whole = check_order(streamed(agent, body)), asked(agent, body)
    ids = {"id"} if "tools" not in more else {"id", "content"}
    assert {name: message[name] for name in message.keys() - ids} == {name: whole[name] for name in whole.keys() - ids}
    assert without_ids(message["content"]) == without_ids(whole["content"])


def without_ids(content: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """They are made from that of the message."""
    return [{name: value for name, value in block.items() if name != "id"} for block in content]


def test_thinking_text_and_calls_are_blocks_in_this_order(agent: httpx2.Client) -> None:
    content = check_order(streamed(agent, message_of(CALLS, tools=[WEATHER])))["content"]
    assert [block["type"] for block in content] == ["thinking", "text", "tool_use", "tool_use"]
    assert content[0]["signature"].startswith("tis1.") and content[1]["text"] == "I look."
    assert [block["input"]["city"][:12] for block in content[2:]] == ["Bandung", "Banda Neira "]


def test_a_resumed_stream_is_the_uninterrupted_one(slow_http: httpx2.Client, session_id: str) -> None:
    body = message_of(LONG, session_id=session_id)
    first = read_some(slow_http, body, 5)
    second = streamed(slow_http, body, **{"Last-Event-ID": first[-1].id})
    again = streamed(slow_http, body)
    assert [*first, *second] == again
    assert check_order(again)["content"][0]["text"] == LONG


def test_a_header_names_the_session_as_the_field_does(slow_http: httpx2.Client, session_id: str) -> None:
    first = read_some(slow_http, message_of(LONG), 5, **{"X-Session-Id": session_id})
    assert first[0].id == f"{session_id}:0"
    assert streamed(slow_http, message_of(LONG, session_id=session_id))[:5] == first
    rest = streamed(slow_http, {"session_id": session_id}, **{"Last-Event-ID": first[-1].id})
    assert rest[0].index == 5 and rest[-1].name == "message_stop"
    answer = slow_http.post(MESSAGES, json=message_of("x", session_id="other"), headers={"X-Session-Id": session_id})
    assert (answer.status_code, answer.json()["error"]["details"]["error_code"]) == (400, "session_mismatch")
    assert slow_http.post(MESSAGES, json=message_of("x"), headers={"X-Session-Id": "a b"}).status_code == 400


def test_a_get_follows_it_with_named_events(http: httpx2.Client, session_id: str) -> None:
    events = streamed(http, message_of("Halo", session_id=session_id))
    assert read_events(http.get(f"/v1/stream/{session_id}").text) == events
    some = http.get(f"/v1/stream/{session_id}", headers={"Last-Event-ID": "5"})
    assert read_events(some.text) == events[6:]
    assert http.get(f"/v1/stream/{session_id}", headers={"Last-Event-ID": "8"}).status_code == 204


def test_the_whole_message_of_a_session_can_be_asked_for_later(http: httpx2.Client, session_id: str) -> None:
    whole = asked(http, message_of("Halo", session_id=session_id))
    assert asked(http, {"session_id": session_id}) == whole == asked(http, message_of("Halo", session_id=session_id))


def test_another_body_is_the_next_turn(http: httpx2.Client, session_id: str) -> None:
    first = streamed(http, message_of("one", session_id=session_id))
    second = streamed(http, message_of("two", session_id=session_id))
    assert second[0].index == first[-1].index + 1 and check_order(second)["content"][0]["text"] == "two"
    answer = http.post(MESSAGES, json=message_of("one", session_id=session_id), headers={"Last-Event-ID": second[2].id})
    assert (answer.status_code, answer.headers["x-should-retry"]) == (409, "false")


def test_a_chat_does_not_read_a_message_nor_the_other_way_round(http: httpx2.Client, session_id: str) -> None:
    """But both may be turns of one session."""
    events = streamed(http, message_of("one", session_id=session_id))
    for body in ({"session_id": session_id}, {"session_id": session_id, "stream": True}):
        answer = http.post(CHAT, json=body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "session_conflict")
    chat = http.post(CHAT, json=said("two", session_id=session_id, stream=True))
    assert chat.text.startswith(f"id: {session_id}:{events[-1].index + 1}\n") and chat.text.endswith("[DONE]\n\n")
    answer = http.post(MESSAGES, json={"session_id": session_id})
    assert (answer.status_code, answer.json()["error"]["type"]) == (409, "invalid_request_error")
    assert check_order(streamed(http, message_of("one", session_id=session_id)))["content"][0]["text"] == "one"


def test_it_is_cancelled_as_a_chat_is(slow_http: httpx2.Client, session_id: str) -> None:
    read_some(slow_http, message_of(LONG * 9, session_id=session_id), 5)
    assert slow_http.post(f"/v1/cancel/{session_id}").json()["status"] == "cancelled"
    message = check_order(streamed(slow_http, message_of(LONG * 9, session_id=session_id)))
    assert message["cancelled"] is True and message["stop_reason"] == "end_turn"
    assert LONG.startswith(message["content"][0]["text"][: len(LONG)])


def test_a_silent_stream_gets_pings() -> None:
    rules = SessionLimits(heartbeat_seconds=0, sweep_seconds=0.02)
    with (
        served(settings_with(model_repo_id="echo?tokens_per_second=16"), session_limits=rules) as slow,
        httpx2.Client(base_url=slow.url) as http,
    ):
        text = http.post(MESSAGES, json=message_of("Halo", stream=True)).text
    assert 'event: ping\ndata: {"type":"ping"}\n\n' in text
    events = [event for event in read_events(text) if event.name != "ping"]
    assert check_order(events)["content"][0]["text"] == "Halo"


def test_a_failure_is_an_error_event_and_a_status(session_id: str) -> None:
    with (
        served(settings_with(model_repo_id="echo?fail_after=3")) as failing,
        httpx2.Client(base_url=failing.url) as http,
    ):
        body = message_of("Halo", session_id=session_id)
        last = streamed(http, body)[-1]
        whole = http.post(MESSAGES, json={**body, "session_id": f"{session_id}-whole"})
    error = last.data["error"]
    assert (last.name, error["type"], error["details"]["error_code"]) == ("error", "api_error", "generation_failed")
    assert whole.status_code == 500 and whole.json()["error"] == error
    assert whole.json()["request_id"] == whole.headers["request-id"]


def test_the_input_of_a_call_comes_in_pieces(agent: httpx2.Client) -> None:
    long = "a long value that is sent while it grows " * 5
    call = json.dumps({"name": "get_weather", "arguments": {"city": long}})
    events = streamed(agent, message_of(f"<tool_call>\n{call}\n</tool_call>", tools=[WEATHER]))
    pieces = [event.data["delta"]["partial_json"] for event in events if event.name == "content_block_delta"]
    assert len(pieces) > 5 and json.loads("".join(pieces)) == {"city": long}
