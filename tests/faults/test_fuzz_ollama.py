"""Random requests to Ollama's API: never a 5xx, and every error in its shape."""

import json
from random import Random
from typing import Any

import httpx2
import pytest

from tests.faults.forms import short_or_long
from tests.serving import Served
from tis.ollama_api.wire.generate_context import context_of

pytestmark = pytest.mark.slow

NUM_REQUESTS = short_or_long(60, 1000)
MODELS = ["echo", "echo:latest", "llama3.2", "", None, 7]
VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 3, 2**63, -(2**70), 0.5, 1e308, float("nan"), float("inf"), "", "x", "json", "5m",
    "low",
    "\ud800", "\x00", "é" * 400, "x" * 5000, [], {}, [[]], [None], ["a", ""], {"a": [1]}, [{"role": "user"}], "Halo",
    {"type": "object", "properties": {"a": {"type": "integer"}}}, {"type": "nonsense"}, {"$ref": "#/nowhere"},
]  # fmt: skip
OPTIONS = (
    "num_predict temperature top_k top_p min_p seed stop repeat_penalty presence_penalty frequency_penalty num_ctx "
    "mirostat num_gpu"
).split()
FIELDS = {
    "chat": "messages tools stream format options think keep_alive logprobs top_logprobs truncate shift".split(),
    "generate": (
        "prompt system images suffix template context raw stream format options think keep_alive logprobs top_logprobs"
    ).split(),
    "show": ["name", "verbose"],
    "embed": ["input", "truncate", "dimensions", "options", "keep_alive"],
    "embeddings": ["prompt", "options", "keep_alive"],
    "pull": ["name", "stream", "insecure"],
    "create": ["from", "files"],
}
GOOD: dict[str, Any] = {
    "stream": False, "format": "json", "options": {"num_predict": 3}, "think": False, "keep_alive": "5m",
    "logprobs": True, "raw": True, "context": context_of([{"role": "user", "content": "Hai"}]),
    "top_logprobs": 2, "system": "Be brief.", "tools": [], "truncate": True, "name": "echo", "verbose": True,
    "input": ["a", "b"], "num_predict": 3, "temperature": 0.5, "top_k": 40, "top_p": 0.9, "min_p": 0.1, "seed": 1,
    "stop": ["zz"], "repeat_penalty": 1.1, "presence_penalty": 0.1, "frequency_penalty": 0.1, "num_ctx": 512,
}  # fmt: skip
FUNCTION = {"name": "f", "arguments": {}}


def random_value(chance: Random, name: str, wrong: float) -> Any:
    return GOOD[name] if name in GOOD and chance.random() > wrong else chance.choice(VALUES)


def random_message(chance: Random) -> Any:
    if chance.random() < 0.1:
        return chance.choice(VALUES)
    message: dict[str, Any] = {"role": chance.choice(["system", "user", "assistant", "tool", "user", "robot"])}
    for name in chance.sample(["content", "thinking", "images", "tool_calls", "tool_name", "tool_call_id"], 2):
        message[name] = chance.choice(VALUES)
    if chance.random() < 0.3:
        message["tool_calls"] = [
            {"function": {**FUNCTION, chance.choice(["name", "index", "x"]): chance.choice(VALUES)}}
        ]
    return {"content": "Halo", **message}


def random_body(chance: Random, path: str) -> Any:
    if chance.random() < 0.05:
        return chance.choice(VALUES)
    body: dict[str, Any] = {"model": chance.choice(MODELS) if chance.random() < 0.2 else "echo"}
    good = {"messages": [{"role": "user", "content": "Halo"}], "prompt": "Halo", "input": "Halo"}
    body |= {name: good[name] for name in FIELDS[path] if name in good}
    for name in chance.sample(FIELDS[path], min(len(FIELDS[path]), chance.randrange(4))):
        body[name] = random_value(chance, name, 0.3)
    if chance.random() < 0.5 and "options" in FIELDS[path]:
        body["options"] = {name: random_value(chance, name, 0.2) for name in chance.sample(OPTIONS, 3)}
    if chance.random() < 0.3 and path == "chat":
        body["messages"] = [random_message(chance) for _ in range(chance.randrange(1, 4))]
    if chance.random() < 0.2 and path == "chat":
        function = {"name": "f", "parameters": {"type": "object"}}
        function[chance.choice(["name", "parameters", "x"])] = chance.choice(VALUES)
        body["tools"] = [{"type": "function", "function": function}]
    return body


def test_random_requests_get_an_answer_or_an_error_of_ollama(echo_server: Served) -> None:
    chance = Random(20261126)
    statuses: dict[int, int] = {}
    with httpx2.Client(base_url=echo_server.url, timeout=60) as http:
        for number in range(NUM_REQUESTS):
            path = chance.choice([*FIELDS, "chat", "generate", "chat"])
            data = json.dumps(random_body(chance, path)).encode()
            if chance.random() < 0.05:
                data = data[: chance.randrange(len(data))]
            answer = http.post(f"/api/{path}", content=data)
            what = f"{number}: {path} {data[:400]!r} -> {answer.status_code} {answer.text[:400]}"
            assert answer.status_code < 500, what
            statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
            if answer.status_code >= 400:
                error = answer.json()
                assert list(error) == ["error"] and isinstance(error["error"], str) and len(answer.content) < 10_000, (
                    what
                )
            else:
                for line in answer.text.splitlines():
                    assert "error" not in json.loads(line), what
    assert statuses[200] > NUM_REQUESTS // 10 and statuses[400] > NUM_REQUESTS // 10, statuses
