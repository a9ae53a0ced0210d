"""Requests of the Messages API, and its events as clients read them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx2

MESSAGES = "/v1/messages"
COUNT = f"{MESSAGES}/count_tokens"
WEATHER: dict[str, Any] = {
    "name": "get_weather",
    "description": "Get the weather in a city",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


@dataclass(frozen=True)
class MessageEvent:
    id: str
    name: str
    data: dict[str, Any]

    @property
    def index(self) -> int:
        return int(self.id.rpartition(":")[2])


def message_of(text: Any, **more: Any) -> dict[str, Any]:
    return {"model": "echo", "max_tokens": 1000, "messages": [{"role": "user", "content": text}], **more}


def asked(http: httpx2.Client, body: dict[str, Any], **headers: str) -> dict[str, Any]:
    answer = http.post(MESSAGES, json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def refusal(http: httpx2.Client, body: dict[str, Any], path: str = MESSAGES) -> dict[str, Any]:
    answer = http.post(path, json=body)
    assert answer.status_code == 400, answer.text
    return dict(answer.json()["error"])


def read_events(text: str) -> list[MessageEvent]:
    events = []
    for block in text.split("\n\n")[:-1]:
        lines = dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith(":"))
        events.append(MessageEvent(lines.get("id", ""), lines["event"], json.loads(lines["data"])))
    return events


def streamed(http: httpx2.Client, body: dict[str, Any], **headers: str) -> list[MessageEvent]:
    answer = http.post(MESSAGES, json={**body, "stream": True}, headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    return read_events(answer.text)


def check_order(events: Sequence[MessageEvent]) -> dict[str, Any]:
    """The message, put together as Anthropic's clients do it. Fails where they would."""
    assert [event.name for event in events] == [event.data["type"] for event in events]
    first, *middle, delta, last = events
    assert (first.name, delta.name, last.name) == ("message_start", "message_delta", "message_stop")
    message: dict[str, Any] = first.data["message"]
    assert message["content"] == [] and message["stop_reason"] is None
    inputs: dict[int, str] = {}
    is_open = False
    for event in middle:
        at, content = event.data["index"], message["content"]
        if event.name == "content_block_start":
            assert not is_open and at == len(content)
            is_open = True
            content.append(dict(event.data["content_block"]))
        elif event.name == "content_block_stop":
            assert is_open and at == len(content) - 1
            is_open = False
        else:
            assert event.name == "content_block_delta" and is_open and at == len(content) - 1
            _add(content[at], event.data["delta"], inputs, at)
    assert not is_open
    for at, text in inputs.items():
        message["content"][at]["input"] = json.loads(text)
    return {**message, **delta.data["delta"], "usage": delta.data["usage"]}


def _add(block: dict[str, Any], delta: dict[str, Any], inputs: dict[int, str], at: int) -> None:
    kind = delta["type"]
    wanted = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "thinking"}
    assert block["type"] == wanted.get(kind, "tool_use")
    if kind == "input_json_delta":
        inputs[at] = inputs.get(at, "") + delta["partial_json"]
    elif kind == "signature_delta":
        block["signature"] = delta["signature"]
    else:
        block[block["type"]] += delta[block["type"]]
