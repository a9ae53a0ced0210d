"""Sends requests to /v1/responses, and parses their streams into events."""

import json
from collections.abc import Sequence
from typing import Any

import httpx2

from tests.openai_api.responses.event_order import Event

RESPONSES = "/v1/responses"
CONVERSATIONS = "/v1/conversations"
LONG = "It took the ferry a night to cross the sea. "


def create(http: httpx2.Client, given: Any, **more: Any) -> Event:
    answer = http.post(RESPONSES, json={"model": "m", "input": given, **more})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def refused(http: httpx2.Client, body: dict[str, Any], status: int = 400, url: str = RESPONSES) -> dict[str, Any]:
    answer = http.post(url, json=body)
    assert answer.status_code == status, answer.text
    error = dict(answer.json()["error"])
    assert set(error) == {"message", "type", "param", "code"}
    return error


def events_in(text: str) -> Sequence[Event]:
    """The events of a stream. Checks that `event:` and `id:` agree with the data."""
    events = []
    for block in text.split("\n\n")[:-1]:
        lines = dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith(":"))
        event = json.loads(lines["data"])
        assert lines["event"] == event["type"]
        assert lines["id"].rpartition(":")[2] == str(event["sequence_number"])
        events.append(event)
    return events


def stream(http: httpx2.Client, given: Any, **more: Any) -> Sequence[Event]:
    answer = http.post(RESPONSES, json={"model": "m", "input": given, "stream": True, **more})
    assert answer.status_code == 200, answer.text
    return events_in(answer.text)


def replay(
    http: httpx2.Client, response_id: str, after: int | None = None, headers: dict[str, str] | None = None
) -> Sequence[Event]:
    query = {"stream": "true"} | ({} if after is None else {"starting_after": str(after)})
    answer = http.get(f"{RESPONSES}/{response_id}", params=query, headers=headers)
    assert answer.status_code == 200, answer.text
    return events_in(answer.text)


def begun(http: httpx2.Client, given: Any, num_events: int = 6, **more: Any) -> Sequence[Event]:
    """The first events of a response that continues after this reader disconnects."""
    with http.stream("POST", RESPONSES, json={"model": "m", "input": given, "stream": True, **more}) as answer:
        text = ""
        for piece in answer.iter_text():
            text += piece
            if text.count("\n\n") >= num_events:
                return events_in(text[: text.rindex("\n\n") + 2])
    raise AssertionError(f"the stream ended early: {text}")


def text_of(response: Event) -> str:
    return "".join(part["text"] for item in response["output"] if item["type"] == "message" for part in item["content"])
