"""Responses, messages, completions and Ollama's API through an upstream: each in its own form, recorded alike."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.serving import Served, served, settings_with
from tests.upstream.gateway import DONE, HEAD, Send, client_of, event, gateway, scripted
from tests.upstream.test_gateway_chats import WEATHER

CALL = '<tool_call>{"name": "weather", "arguments": {"city": "Bandung"}}</tool_call>'
THOUGHT = f"<think>\nHm.\n</think>\n\nSo. {CALL}"


@pytest.fixture(scope="module")
def thinker() -> Iterator[Served]:
    with served(settings_with(model_repo_id="echo?thinks=1&tool_format=hermes")) as server:
        yield server


@pytest.fixture(scope="module")
def front(thinker: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    folder = tmp_path_factory.mktemp("dialects")
    with gateway(folder, f"{thinker.url}/v1", upstream_model="echo") as server, client_of(server) as client:
        yield client


@pytest.fixture
def direct(thinker: Served) -> Iterator[httpx2.Client]:
    with client_of(thinker) as client:
        yield client


def without_ids(value: Any) -> Any:
    """Ids, times and the name of the model differ between two servers."""
    differ = ("id", "item_id", "call_id", "created_at", "completed_at", "model", "session_id", "system_fingerprint")
    if isinstance(value, dict):
        return {name: without_ids(one) for name, one in value.items() if name not in (*differ, "created")}
    return [without_ids(one) for one in value] if isinstance(value, list) else value


def events_of(text: str) -> list[Any]:
    datas = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
    return [data if data == "[DONE]" else without_ids(json.loads(data)) for data in datas]


def joined(events: list[Any]) -> list[Any]:
    """Deltas of one kind in a row as one: an upstream may send several tokens in a chunk."""
    made: list[Any] = []
    for one in events:
        one = (
            {name: value for name, value in one.items() if name != "sequence_number"} if isinstance(one, dict) else one
        )
        last = made[-1] if made else None
        if isinstance(one, dict) and isinstance(last, dict) and str(one.get("type")).endswith(".delta"):
            if last.get("type") == one["type"]:
                last["delta"] += one["delta"]
                continue
        made.append(one)
    return made


def test_responses_have_the_same_items_and_events(front: httpx2.Client, direct: httpx2.Client) -> None:
    tool = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
    body = {"input": THOUGHT, "tools": [tool]}
    here, there = (without_ids(one.post("/v1/responses", json=body).json()) for one in (front, direct))
    assert [item["type"] for item in here["output"]] == ["reasoning", "message", "function_call"]
    here["usage"].pop("output_tokens_details"), there["usage"].pop("output_tokens_details")
    assert here == there
    streams = [events_of(one.post("/v1/responses", json={**body, "stream": True}).text) for one in (front, direct)]
    here_, there_ = map(joined, streams)
    assert [one["type"] for one in here_] == [one["type"] for one in there_]
    deltas = [[one["delta"] for one in some if "delta" in one] for some in (here_, there_)]
    assert deltas[0] == deltas[1]


def test_a_stored_response_goes_on_in_the_next_one(front: httpx2.Client) -> None:
    first = front.post("/v1/responses", json={"input": "one"}).json()
    second = front.post("/v1/responses", json={"input": "two", "previous_response_id": first["id"]}).json()
    assert second["output"][-1]["content"][0]["text"] == "two"
    assert front.get(f"/v1/responses/{first['id']}").json()["output"] == first["output"]


def test_messages_have_the_same_blocks(front: httpx2.Client, direct: httpx2.Client) -> None:
    tool = {"name": "weather", "input_schema": {"type": "object"}}
    body = {"max_tokens": 200, "messages": [{"role": "user", "content": THOUGHT}], "tools": [tool]}
    body["thinking"] = {"type": "enabled", "budget_tokens": 1024}
    body["max_tokens"] = 2048
    here, there = (without_ids(one.post("/v1/messages", json=body).json()) for one in (front, direct))
    assert [block["type"] for block in here["content"]] == ["thinking", "text", "tool_use"]
    assert here["stop_reason"] == "tool_use"
    for one in (here, there):
        for block in one["content"]:
            block.pop("signature", None)
        one["usage"].pop("output_tokens_details", None)
    assert here == there


def test_tokens_of_messages_are_counted_by_the_upstream(front: httpx2.Client) -> None:
    body = {"messages": [{"role": "user", "content": "Halo"}]}
    assert front.post("/v1/messages/count_tokens", json=body).json()["input_tokens"] == 4
    assert front.post("/v1/chat/completions/input_tokens", json=body).json()["input_tokens"] == 4
    assert front.post("/v1/responses/input_tokens", json={"input": "Halo"}).json()["input_tokens"] == 4


def test_ollama_clients_are_answered(front: httpx2.Client, direct: httpx2.Client) -> None:
    body = {"model": "far", "messages": [{"role": "user", "content": THOUGHT}], "tools": [WEATHER], "stream": False}
    answer = front.post("/ollama/api/chat", json=body).json()
    message = answer["message"]
    assert (message["thinking"], message["content"]) == ("Hm.", "So.")
    called = message["tool_calls"][0]["function"]
    assert (called["name"], called["arguments"]) == ("weather", {"city": "Bandung"})
    raw = front.post("/ollama/api/generate", json={"model": "far", "prompt": "Halo", "raw": True, "stream": False})
    assert raw.json()["response"] == "Halo"
    assert [one["name"] for one in front.get("/ollama/api/tags").json()["models"]] == ["far:latest"]


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"prompt": ["one", "two"], "n": 2},
        {"prompt": [72, 97, 108, 111]},
        {"echo": True},
        {"logprobs": 1},
        {"stop": "l"},
        {"max_tokens": 2},
    ],
    ids=str,
)
def test_completions_are_those_of_the_upstream(
    more: dict[str, Any], front: httpx2.Client, direct: httpx2.Client
) -> None:
    body = {"prompt": "Halo", **more}
    here, there = (without_ids(one.post("/v1/completions", json=body).json()) for one in (front, direct))
    assert here == there
    texts = [events_of(one.post("/v1/completions", json={**body, "stream": True}).text) for one in (front, direct)]
    here_, there_ = ({choice: text_at(some, choice) for choice in range(4)} for some in texts)
    assert here_ == there_


def text_at(events: list[Any], choice: int) -> str:
    choices = [one for some in events if some != "[DONE]" for one in some["choices"] if one["index"] == choice]
    return "".join(one["text"] for one in choices)


def test_what_needs_the_tokens_of_the_prompt_is_refused(front: httpx2.Client) -> None:
    for path, body, param in (
        ("/v1/completions", {"prompt": "Halo", "echo": True, "logprobs": 1}, "echo"),
        ("/tokenize", {"prompt": "Halo"}, "model"),
        ("/detokenize", {"tokens": [72]}, "model"),
        ("/v1/responses/compact", {"input": "Halo"}, "model"),
        ("/v1/models/far/unload", {}, "model"),
    ):
        answer = front.post(path, json=body)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, param), answer.text


def test_a_completion_goes_on_behind_its_text(tmp_path: Path) -> None:
    first = [HEAD, event({"choices": [{"index": 0, "text": "It took "}]})]
    second = [HEAD, event({"choices": [{"index": 0, "text": "a night.", "finish_reason": "stop"}]}), DONE]
    turns = iter([first, second])

    def script(send: Send) -> None:
        for one in next(turns):
            send(one)

    with (
        scripted(script) as upstream,
        gateway(tmp_path, upstream.url, upstream_kind="openai") as server,
        client_of(server) as client,
    ):
        answer = client.post("/v1/completions", json={"prompt": "The ferry. "}).json()
    assert answer["choices"][0]["text"] == "It took a night."
    assert [body["prompt"] for body in upstream.bodies] == ["The ferry. ", "The ferry. It took "]
