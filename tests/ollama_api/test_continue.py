"""What the editor extension Continue sends to Ollama: what a model is, chats, completions in the middle, vectors."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from scripts.demo_model.checks import GET_WEATHER
from tests.openai_api.test_tools import CALL
from tests.serving import served, settings_with

# With fields that JSON leaves out where the extension has no value, and those that it always sends.
OPTIONS: dict[str, Any] = {
    "temperature": 0.01,
    "num_predict": 256,
    "stop": ["<|im_end|>", "\n\n\n"],
    "num_ctx": 8192,
    "num_thread": 4,
    "use_mmap": True,
}
PROMPT = "<|fim_prefix|>def total(prices):\n    return <|fim_suffix|>\n\nprint(total([1]))<|fim_middle|>"


@pytest.fixture(scope="module")
def http() -> Iterator[httpx2.Client]:
    settings = settings_with(model_repo_id="echo?tool_format=hermes", api_keys=["sk-continue-1234567"])
    key = {"Authorization": "Bearer sk-continue-1234567", "Content-Type": "application/json"}
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=30, headers=key) as client:
        yield client


def text_of(answer: httpx2.Response, name: str) -> str:
    """As it reads a stream: each line is JSON, an error ends it, and every line has the field."""
    assert answer.status_code == 200, answer.text
    lines = [json.loads(line) for line in answer.text.split("\n") if line.strip()]
    assert not any("error" in line for line in lines) and lines[-1]["done"]
    return "".join(line["response"] if name == "response" else line["message"]["content"] for line in lines)


def test_it_learns_what_the_model_is(http: httpx2.Client) -> None:
    """It looks for .Suffix in the template: without, it writes the markers of the middle itself, into a raw prompt."""
    [name] = [model["name"] for model in http.get("/api/tags").raise_for_status().json()["models"]]
    shown = http.post("/api/show", json={"name": name}).raise_for_status().json()
    assert ".Suffix" not in shown.get("template", "")
    for line in filter(None, shown.get("parameters", "").split("\n")):
        assert len(line.split(None, 1)) == 2, line
    assert "tools" in shown["capabilities"]


def test_it_completes_in_the_middle_of_a_file(http: httpx2.Client) -> None:
    body = {"model": "echo", "prompt": PROMPT, "raw": True, "options": OPTIONS, "keep_alive": 1800, "stream": True}
    answer = http.post("/api/generate", json=body)
    assert text_of(answer, "response") == PROMPT
    ignored = answer.headers["x-ignored-parameters"].split(", ")
    assert set(ignored) == {"options.num_thread", "options.use_mmap", "keep_alive"}


def test_it_chats_and_calls_tools(http: httpx2.Client) -> None:
    body = {"model": "echo", "options": OPTIONS, "keep_alive": 1800, "stream": True}
    history: list[dict[str, Any]] = [
        {"role": "system", "content": "You are a coding assistant."},
        {"role": "user", "content": "Halo", "images": None},
    ]
    assert text_of(http.post("/api/chat", json={**body, "messages": history}), "content") == "Halo"
    asked: dict[str, Any] = {
        **body,
        "messages": [*history, {"role": "user", "content": CALL}],
        "tools": [GET_WEATHER],
        "stream": False,
    }
    message = http.post("/api/chat", json=asked).raise_for_status().json()["message"]
    [call] = message["tool_calls"]
    assert message["role"] == "assistant" and call["function"]["name"] == "get_weather"
    assert isinstance(call["function"]["arguments"], dict)
    told = [*asked["messages"], message, {"role": "tool", "content": "24 degrees"}]
    assert text_of(http.post("/api/chat", json={**body, "messages": told}), "content") == "24 degrees"


def test_a_model_that_makes_no_vectors_is_refused_in_the_shape_of_ollama(http: httpx2.Client) -> None:
    refused = http.post("/api/embed", json={"model": "echo", "input": ["a", "b"]})
    assert refused.status_code in (400, 404) and list(refused.json()) == ["error"]
