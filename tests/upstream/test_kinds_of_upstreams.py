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


def sent(folder: Path, kind: str, *, path: str = CHAT, **body: Any) -> tuple[int, Any, list[dict[str, Any]]]:
    """Status and answer, and what the upstream got."""
    call = chunk({"tool_calls": [CALL]}, finish="tool_calls")
    asked = body if path != CHAT or "messages" in body else said("Halo", **body)
    with (
        scripted(HEAD, call, DONE) as upstream,
        gateway(folder, upstream.url, upstream_kind=kind) as server,
        client_of(server) as client,
    ):
        answer = client.post(path, json=asked)
    return answer.status_code, answer.json(), upstream.bodies


@pytest.mark.parametrize(
    ("kind", "choice", "names"),
    [
        ("openai", TIME, ["weather", "time"]),
        ("vllm", TIME, ["weather", "time"]),
        ("llama.cpp", "required", ["time"]),
        ("sglang", "required", ["time"]),
    ],
)
def test_a_call_to_one_function_is_forced_in_the_words_of_the_engine(
    kind: str, choice: Any, names: list[str], tmp_path: Path
) -> None:
    status, answer, [body] = sent(tmp_path, kind, tools=TOOLS, tool_choice=TIME)
    assert (status, answer["choices"][0]["finish_reason"]) == (200, "tool_calls")
    assert body["tool_choice"] == choice
    assert [one["function"]["name"] for one in body["tools"]] == names


@pytest.mark.parametrize(("kind", "are_strict"), [("vllm", [False, False]), ("sglang", [True, True])])
def test_arguments_of_a_forced_call_follow_their_schema(kind: str, are_strict: list[bool], tmp_path: Path) -> None:
    _, _, [body] = sent(tmp_path, kind, tools=TOOLS, tool_choice="required")
    assert body["tool_choice"] == "required"
    assert [bool(one["function"].get("strict")) for one in body["tools"]] == are_strict
    _, _, [body] = sent(tmp_path, kind, tools=TOOLS)  # a call that is not forced is as the client has it
    assert not any(one["function"].get("strict") for one in body["tools"])


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


FORMS: dict[str, Any] = {"regex": "[ab]{3}", "choice": ["yes", 'a "quote"'], "grammar": 'root ::= "x"'}


def test_grammars_are_sent_in_the_words_of_the_engine(tmp_path: Path) -> None:
    in_sglang = {"regex": ("regex", "[ab]{3}"), "choice": ("ebnf", r'root ::= "yes" | "a \"quote\""')}
    for name, value in FORMS.items():
        [body] = sent(tmp_path, "vllm", structured_outputs={name: value})[2]
        assert body["structured_outputs"] == {name: value}
        [body] = sent(tmp_path, "sglang", structured_outputs={name: value})[2]
        theirs, written = in_sglang.get(name, ("ebnf", value))
        assert body[theirs] == written and "structured_outputs" not in body


def test_an_answer_is_continued_in_the_words_of_the_engine(tmp_path: Path) -> None:
    begun = [*said("Halo")["messages"], {"role": "assistant", "content": "Halo, "}]
    asked: dict[str, Any] = {"messages": begun, "continue_final_message": True, "add_generation_prompt": False}
    for kind, fields in (("vllm", {"add_generation_prompt": False}), ("sglang", {})):
        [body] = sent(tmp_path, kind, **asked)[2]
        assert {name: body.get(name) for name in fields} == fields and body["continue_final_message"]
        assert ("add_generation_prompt" in body) == bool(fields)
    status, answer, bodies = sent(tmp_path, "sglang", add_generation_prompt=False)
    assert (status, answer["error"]["param"], bodies) == (400, "add_generation_prompt", [])


@pytest.mark.parametrize(("kind", "name"), [("sglang", "reasoning_content"), ("ollama", "reasoning")])
def test_reasoning_of_earlier_turns_is_sent_in_the_words_of_the_engine(kind: str, name: str, tmp_path: Path) -> None:
    turns = [
        {"role": "user", "content": "12 + 7?"},
        {"role": "assistant", "content": "19", "reasoning_content": "It is a sum."},
        {"role": "user", "content": "And 1 more?"},
    ]
    [body] = sent(tmp_path, kind, messages=turns)[2]
    assert body["messages"][1] == {"role": "assistant", "content": "19", name: "It is a sum."}


def test_what_completions_lack_is_refused_by_name(tmp_path: Path) -> None:
    for kind, field, value in (("ollama", "logprobs", 2), ("sglang", "add_special_tokens", False)):
        status, answer, bodies = sent(tmp_path, kind, path="/v1/completions", prompt="a", **{field: value})
        assert (status, answer["error"]["param"], bodies) == (400, field, [])


@pytest.mark.parametrize(
    ("kind", "path", "asked", "begun", "why"),
    [
        ("sglang", CHAT, said("Halo"), [{"reasoning_content": "Hm."}, {"content": "Ha"}], "behind reasoning"),
        ("ollama", "/v1/completions", {"prompt": "Halo"}, [{"content": "Ha"}], "into a template"),
    ],
)
def test_what_the_engine_would_not_go_on_with_is_not_continued(
    kind: str, path: str, asked: dict[str, Any], begun: list[dict[str, str]], why: str, tmp_path: Path
) -> None:
    with (
        scripted(HEAD, *map(chunk, begun)) as upstream,
        gateway(tmp_path, upstream.url, upstream_kind=kind) as server,
        client_of(server) as client,
    ):
        answer = client.post(path, json=asked)
    assert answer.status_code == 502 and why in answer.json()["error"]["message"]
    assert len(upstream.bodies) == 1


def test_a_stop_of_sglang_is_named(tmp_path: Path) -> None:
    end = b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "matched_stop": "5"}]}\n\n'
    with (
        scripted(HEAD, chunk({"content": "1, 2"}), end, DONE) as upstream,
        gateway(tmp_path, upstream.url, upstream_kind="sglang") as server,
        client_of(server) as client,
    ):
        asked = {"model": "far", "max_tokens": 9, "stop_sequences": ["5"], **said("Count.")}
        made = client.post("/v1/messages", json=asked).json()
    assert (made["stop_reason"], made["stop_sequence"]) == ("stop_sequence", "5")


def test_scores_are_read_as_sglang_lists_them(tmp_path: Path) -> None:
    scores = json.dumps([{"score": 0.9, "index": 1}, {"score": 0.1, "index": 0}]).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(scores)
    with (
        scripted(head, scores) as upstream,
        gateway(tmp_path, upstream.url, upstream_kind="sglang", task="rerank") as server,
        client_of(server) as client,
    ):
        made = client.post("/v1/rerank", json={"model": "far", "query": "a", "documents": ["b", "c"]}).json()
    assert [(one["index"], one["relevance_score"]) for one in made["results"]] == [(1, 0.9), (0, 0.1)]


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
