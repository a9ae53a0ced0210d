"""`prediction` of chat completions: the answer is the same, and the usage says how much of the prediction came true."""

from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from openai import OpenAI

from tests.openai_api.test_chat import CHAT, said
from tests.openai_api.test_chat_stream import stream
from tests.serving import Served
from tis.chat.prediction_match import PredictionMatch
from tis.openai_api.wire.chat_request import ChatRequest

Connect = Callable[[Served], OpenAI]


def predicting(content: Any) -> dict[str, Any]:
    return {"prediction": {"type": "content", "content": content}}


@pytest.mark.parametrize(
    "content", ["Halo dunia", [{"type": "text", "text": "Halo "}, {"type": "text", "text": "dunia"}]]
)
def test_the_sdk_counts_accepted_and_rejected_tokens(sdk: Connect, echo_server: Served, content: Any) -> None:
    answer = sdk(echo_server).chat.completions.create(
        model="qwen-local",
        messages=[{"role": "user", "content": "Halo bumi"}],
        prediction={"type": "content", "content": content},
    )
    assert answer.choices[0].message.content == "Halo bumi"
    details = answer.usage and answer.usage.completion_tokens_details
    assert details and (details.accepted_prediction_tokens, details.rejected_prediction_tokens) == (5, 5)
    assert answer.usage and answer.usage.completion_tokens == 9


def test_a_stream_has_the_same_usage_for_all_choices_together(http: httpx2.Client) -> None:
    body = said("Halo", n=2, stream_options={"include_usage": True}) | predicting("Halo!")
    usage = next(block.chunk["usage"] for block in reversed(stream(http, body)) if block.data != "[DONE]")
    assert usage["completion_tokens_details"] == {
        "reasoning_tokens": 0,
        "accepted_prediction_tokens": 8,
        "rejected_prediction_tokens": 2,
    }


def test_an_answer_without_prediction_has_no_such_counts(http: httpx2.Client) -> None:
    details = http.post(CHAT, json=said("Halo")).json()["usage"]["completion_tokens_details"]
    assert details == {"reasoning_tokens": 0}


@pytest.mark.parametrize(
    "prediction",
    [
        "Halo",
        {"content": "Halo"},
        {"type": "text", "content": "Halo"},
        {"type": "content"},
        {"type": "content", "content": 3},
        {"type": "content", "content": [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]},
    ],
)
def test_what_is_no_prediction_is_a_400(http: httpx2.Client, prediction: Any) -> None:
    response = http.post(CHAT, json=said("Halo", prediction=prediction))
    assert response.status_code == 400 and response.json()["error"]["param"].startswith("prediction")


def test_a_prediction_longer_than_the_context_is_refused(http: httpx2.Client) -> None:
    response = http.post(CHAT, json=said("Halo") | predicting("x" * 40_000))
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["param"]) == (400, "context_length_exceeded", "prediction")


def test_another_prediction_is_another_request() -> None:
    """A repeated POST with a session_id attaches to the answer that is there."""
    prints = {
        ChatRequest.model_validate(said("Halo") | predicting(content)).fingerprint()
        for content in ("a" * 5000, "b" * 5000, [{"type": "text", "text": "a"}], "")
    }
    assert len(prints | {ChatRequest.model_validate(said("Halo")).fingerprint()}) == 5


@pytest.mark.parametrize(
    ("predicted", "answer", "right"),
    [
        ("", "abc", 0),
        ("abcdef", "abcdef", 6),
        ("abcdef", "abc", 3),
        ("abc", "abcdef", 3),
        ("abcdefgh", "abXdefgh", 7),  # another token
        ("abcdefgh", "abXYcdefgh", 8),  # more tokens
        ("abcdefgh", "abefgh", 6),  # fewer tokens
        ("abcabcabc", "abcX", 3),
        ("abcdef", "uvwxyz", 0),
    ],
)
def test_what_came_true(predicted: str, answer: str, right: int) -> None:
    whole, by_token = (PredictionMatch([ord(one) * 0x101 for one in predicted]) for _ in range(2))
    whole.feed([ord(one) * 0x101 for one in answer])
    for one in answer:
        by_token.feed([ord(one) * 0x101])
    assert whole.num_right == by_token.num_right == right


def num_accepted(server: Served) -> float:
    lines = httpx2.get(f"{server.url}/metrics").text.splitlines()
    name = 'tis_spec_decode_num_accepted_tokens_total{source="prompt_lookup"} '
    [value] = [line.removeprefix(name) for line in lines if line.startswith(name)]
    return float(value)


@pytest.mark.model
def test_the_model_checks_drafts_and_says_the_same(sdk: Connect, demo_server: Served) -> None:
    ask: Any = {"model": "any", "messages": [{"role": "user", "content": "Tell me a short story."}], "temperature": 0}
    create = sdk(demo_server).chat.completions.create
    story = create(**ask).choices[0].message.content
    before = num_accepted(demo_server)
    again = create(**ask, prediction={"type": "content", "content": story.replace("boats", "ships")})
    assert again.choices[0].message.content == story
    assert num_accepted(demo_server) > before + 60
    details = again.usage.completion_tokens_details
    assert details.accepted_prediction_tokens > 100 > details.rejected_prediction_tokens > 0
