"""`context` of /api/generate: old clients send that of the last answer with the next prompt, and go on with it."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.ollama_api.test_ollama_chat import CHAT, GENERATE, error_of, lines_of, whole
from tests.openai_api.media_requests import picture_file
from tests.serving import Served
from tis.chat.parts import RunUsage, TextDelta
from tis.ollama_api.wire.generate_context import MAX_CONTEXT, context_of, messages_of_context
from tis.ollama_api.wire.ollama_writer import OllamaWriter, ollama_writer_state

GREEDY: dict[str, Any] = {"model": "demo", "options": {"temperature": 0, "num_predict": 24}}


@pytest.fixture
def demo(demo_server: Served) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=demo_server.url, timeout=60) as client:
        yield client


@pytest.mark.model
def test_a_conversation_goes_on_as_a_chat_does(demo: httpx2.Client) -> None:
    first = whole(demo, {**GREEDY, "prompt": "Halo!", "system": "Be brief."}, GENERATE)
    assert all(isinstance(one, int) and 0 <= one < 2**24 for one in first["context"])
    second = whole(demo, {**GREEDY, "prompt": "Bagaimana cuaca?", "context": first["context"]}, GENERATE)
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Halo!"},
        {"role": "assistant", "content": first["response"]},
        {"role": "user", "content": "Bagaimana cuaca?"},
    ]
    chat = whole(demo, {**GREEDY, "messages": messages})
    assert second["response"] == chat["message"]["content"]
    assert second["prompt_eval_count"] == chat["prompt_eval_count"] > first["prompt_eval_count"]
    answer = {"role": "assistant", "content": second["response"]}
    assert messages_of_context(second["context"]) == [*messages, answer]


def test_the_last_line_has_it_and_a_new_system_text_replaces_the_old(http: httpx2.Client) -> None:
    context = context_of([{"role": "system", "content": "Old."}, {"role": "user", "content": "Hai 😀"}])
    body = {"model": "echo", "prompt": "Halo", "system": "New.", "context": context}
    *pieces, last = lines_of(http, body, GENERATE)
    assert all("context" not in line for line in pieces)
    assert [tuple(one.values()) for one in messages_of_context(last["context"])] == [
        ("system", "New."),
        ("user", "Hai 😀"),
        ("user", "Halo"),
        ("assistant", "Halo"),
    ]


@pytest.mark.model
def test_reasoning_and_pictures_are_not_in_it(hermes: httpx2.Client, demo: httpx2.Client) -> None:
    thought = whole(hermes, {"model": "echo", "prompt": "<think>Hm</think>Yes"}, GENERATE)
    assert thought["thinking"] == "Hm"
    assert messages_of_context(thought["context"])[-1] == {"role": "assistant", "content": "Yes"}
    image = base64.b64encode(picture_file()).decode()
    seen = whole(demo, {**GREEDY, "images": [image]}, GENERATE)
    assert messages_of_context(seen["context"])[0] == {"role": "user", "content": "[picture]"}


@pytest.mark.parametrize(
    "body", [{"prompt": "x", "raw": True}, {"prompt": ""}, {"prompt": "long " * 25_000}], ids=["raw", "none", "long"]
)
def test_answers_without_one(http: httpx2.Client, body: dict[str, Any]) -> None:
    body = {"model": "echo", "options": {"num_predict": 4}, **body}
    if len(body["prompt"]) > 100:
        context = context_of([{"role": "user", "content": "x" * (MAX_CONTEXT * 3 - 60)}])
        body |= {"context": context, "prompt": "and more " * 9}
    assert "context" not in whole(http, body, GENERATE)


@pytest.mark.parametrize("share", [0.3, 0.99, 2])
def test_an_answer_is_kept_only_as_long_as_it_may_go_into_a_context(share: float) -> None:
    conversation = [{"role": "user", "content": "x" * 100}]
    times = {"received_at": 0, "loaded_at": 0}
    writer = OllamaWriter(
        ollama_writer_state("generate", "m", hides_thinking=False, conversation=conversation, **times)
    )
    for _ in range(100):
        writer.part(0, TextDelta("y" * int(share * MAX_CONTEXT * 3 / 100)))
    assert sum(map(len, writer._answer)) <= MAX_CONTEXT * 3 + 2000
    [last] = map(json.loads, writer.ended("stop", RunUsage()))
    assert ("context" in last) is (share < 1)


@pytest.mark.parametrize(
    "context",
    [
        [1],
        [-1],
        [2**24],
        [7_629_171],
        [7_629_171, 8_224_125],
        context_of([{"role": "tool", "content": "x"}]),
        [*(context_of([{"role": "user", "content": "x"}]) or ()), 5],
    ],
    ids=str,
)
def test_what_the_server_did_not_make_is_refused(http: httpx2.Client, context: list[int]) -> None:
    error = error_of(http.post(GENERATE, json={"model": "echo", "prompt": "x", "context": context}))
    assert error.startswith("context: this server did not make it.")


def test_with_raw_or_a_chat_there_is_no_context(http: httpx2.Client) -> None:
    context = context_of([{"role": "user", "content": "x"}])
    raw = {"model": "echo", "prompt": "x", "raw": True, "context": context}
    assert "context is not supported with raw" in error_of(http.post(GENERATE, json=raw))
    messages = [{"role": "user", "content": "x"}]
    assert "context" not in whole(http, {"model": "echo", "messages": messages}, CHAT)
    assert whole(http, {"model": "echo", "prompt": "x", "context": []}, GENERATE)["response"] == "x"
