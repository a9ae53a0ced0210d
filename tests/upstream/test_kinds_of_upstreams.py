"""What one kind of engine is sent where another gets something else."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.openai_api.test_chat import CHAT, said
from tests.serving import served, settings_with
from tests.upstream.gateway import DONE, HEAD, chunk, client_of, gateway, scripted

TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in ("weather", "time")
]
TIME = {"type": "function", "function": {"name": "time"}}
CALL = {"index": 0, "id": "c", "function": {"name": "time", "arguments": "{}"}}


def sent(folder: Path, kind: str, **body: Any) -> tuple[int, Any, list[dict[str, Any]]]:
    """Status and answer, and what the upstream got."""
    call = chunk({"tool_calls": [CALL]}, finish="tool_calls")
    with (
        scripted(HEAD, call, DONE) as upstream,
        gateway(folder, upstream.url, upstream_kind=kind) as server,
        client_of(server) as client,
    ):
        answer = client.post(CHAT, json=said("Halo", **body))
    return answer.status_code, answer.json(), upstream.bodies


@pytest.mark.parametrize(
    ("kind", "choice", "names"),
    [("openai", TIME, ["weather", "time"]), ("vllm", TIME, ["weather", "time"]), ("llama.cpp", "required", ["time"])],
)
def test_a_call_to_one_function_is_forced_in_the_words_of_the_engine(
    kind: str, choice: Any, names: list[str], tmp_path: Path
) -> None:
    status, answer, [body] = sent(tmp_path, kind, tools=TOOLS, tool_choice=TIME)
    assert (status, answer["choices"][0]["finish_reason"]) == (200, "tool_calls")
    assert body["tool_choice"] == choice
    assert [one["function"]["name"] for one in body["tools"]] == names


@pytest.mark.parametrize("choice", ["required", TIME])
def test_an_engine_that_cannot_be_forced_is_not_asked(choice: Any, tmp_path: Path) -> None:
    status, answer, bodies = sent(tmp_path, "ollama", tools=TOOLS, tool_choice=choice)
    assert (status, answer["error"]["param"], bodies) == (400, "tool_choice", [])
    assert sent(tmp_path, "ollama", tools=TOOLS, tool_choice="auto")[0] == 200


def test_an_engine_that_has_no_formats_is_not_asked_for_one(tmp_path: Path) -> None:
    schema = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}
    for form in ({"type": "json_object"}, schema):
        status, answer, bodies = sent(tmp_path, "transformers", response_format=form)
        assert (status, bodies) == (400, []) and answer["error"]["param"].startswith("response_format")


@pytest.mark.parametrize("kind", ["openai", "vllm", "sglang", "llama.cpp", "tis"])
def test_texts_that_are_too_long_are_cut_where_the_engine_can(kind: str, tmp_path: Path) -> None:
    vectors = json.dumps({"data": [{"embedding": [1.0]}]}).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(vectors)
    path = tmp_path / "models.yaml"
    with scripted(head, vectors) as upstream:
        entry = {"upstream": upstream.url, "upstream_kind": kind, "task": "embedding"}
        path.write_text(json.dumps({"models": {"far": entry}}))
        with (
            served(settings_with(model_config_path=str(path), model_repo_id="far")) as server,
            client_of(server) as client,
        ):
            for truncate in (True, False):
                assert client.post("/v1/embeddings", json={"input": "a", "truncate": truncate}).status_code == 200
            assert client.post("/ollama/api/embed", json={"model": "far", "input": "a"}).status_code == 200
    by_kind: dict[str, dict[str, Any]] = {"tis": {"truncate": True}, "vllm": {"truncate_prompt_tokens": -1}}
    cut = by_kind.get(kind, {})
    known: dict[str, Any] = {"model": "far", "input": ["a"], "encoding_format": "base64"}
    assert upstream.bodies == [{**known, **cut}, known, {**known, **cut}]
