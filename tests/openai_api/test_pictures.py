"""Pictures in messages, over HTTP: every spelling of a part, order, refusals."""

import base64
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
from openai import OpenAI

from tests.openai_api.media_requests import asking, data_uri, image_url, picture_file
from tests.serving import Served

RED, BLUE = picture_file("red"), picture_file("blue")
_BASE64 = base64.b64encode(RED).decode()

pytestmark = pytest.mark.model


@pytest.fixture
def demo(demo_server: Served) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=demo_server.url, timeout=120) as client:
        yield client


def _answer(client: httpx2.Client, *parts: dict[str, Any] | str, **more: Any) -> dict[str, Any]:
    reply = client.post("/v1/chat/completions", json=asking(*parts, max_tokens=8, **more))
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


def _error(client: httpx2.Client, *parts: dict[str, Any] | str, **more: Any) -> dict[str, Any]:
    reply = client.post("/v1/chat/completions", json=asking(*parts, **more))
    assert reply.status_code == 400, reply.text
    return dict(reply.json()["error"])


def test_the_openai_client_sends_a_picture(sdk: Callable[[Served], OpenAI], demo_server: Served) -> None:
    answer = sdk(demo_server).chat.completions.create(
        model="demo",
        messages=[
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image_url", "image_url": {"url": data_uri(RED), "detail": "low"}},
                ],
            }
        ],
        max_tokens=8,
    )
    without = sdk(demo_server).chat.completions.create(
        model="demo", messages=[{"role": "user", "content": "What is this?"}], max_tokens=8
    )
    assert answer.usage and without.usage
    # 128 x 128 pixels are 4 x 4 tokens of 32 x 32, with a token before and one behind them.
    assert answer.usage.prompt_tokens == without.usage.prompt_tokens + 18


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": data_uri(RED)},
        {"type": "image_url", "image_url": {"url": data_uri(RED)}},
        {"type": "image_url", "image_url": {"url": _BASE64}},
        {"type": "input_image", "image_url": data_uri(RED)},
        {"type": "input_image", "b64_json": _BASE64},
        {"type": "input_image", "image": _BASE64},
        {"type": "input_image", "data": _BASE64},
        {"type": "input_image", "image": {"b64_json": _BASE64}},
        {"type": "image", "image": data_uri(RED)},
        {"type": "image", "url": data_uri(RED)},
    ],
    ids=lambda part: "-".join([part["type"], *list(part)[1:]]),
)
def test_every_spelling_of_a_picture_is_the_same_picture(demo: httpx2.Client, part: dict[str, Any]) -> None:
    expected = _answer(demo, image_url(RED), "Apa ini?")
    answer = _answer(demo, part, "Apa ini?")
    assert answer["choices"] == expected["choices"]
    assert answer["usage"]["prompt_tokens"] == expected["usage"]["prompt_tokens"]


def test_the_same_picture_shares_its_prefix_and_another_does_not(demo: httpx2.Client) -> None:
    def cached(data: bytes, question: str) -> int:
        return int(
            _answer(demo, "Perhatikan ini baik-baik:", image_url(data), question)["usage"]["prompt_tokens_details"][
                "cached_tokens"
            ]
        )

    first, second = picture_file("red", (224, 224)), picture_file("green", (224, 224))
    before = cached(first, "Apa ini?")
    again = cached(first, "Apa warnanya?")
    other = cached(second, "Apa ini?")
    assert again >= before + 49 - 16 and other < again - 30


def test_pictures_keep_their_order_over_turns(demo: httpx2.Client) -> None:
    def conversation(first: bytes, second: bytes) -> dict[str, float]:
        turns = [
            {"role": "user", "content": [image_url(first), {"type": "text", "text": "Ini satu."}]},
            {"role": "assistant", "content": "Baik."},
            {"role": "user", "content": [{"type": "text", "text": "Ini dua."}, image_url(second)]},
        ]
        body = {"messages": turns, "temperature": 0, "max_tokens": 8, "logprobs": True}
        reply = demo.post("/v1/chat/completions", json=body)
        assert reply.status_code == 200
        logprobs = reply.json()["choices"][0]["logprobs"]["content"]
        return {f"{at} {one['token']}": one["logprob"] for at, one in enumerate(logprobs)}

    # How many tokens of a prompt a step computes depends on what is cached and on the time that is left: roundings do.
    shown = pytest.approx(conversation(RED, BLUE), abs=1e-3)
    assert conversation(RED, BLUE) == shown
    assert conversation(BLUE, RED) != shown


def test_a_streamed_answer_about_a_picture_is_repeated_from_its_recording(demo: httpx2.Client) -> None:
    body = asking(image_url(RED), "Apa ini?", stream=True, session_id="picture-1", max_tokens=8)
    first = demo.post("/v1/chat/completions", json=body)
    assert first.status_code == 200 and first.text.endswith("data: [DONE]\n\n")
    assert demo.post("/v1/chat/completions", json=body).text == first.text
    assert demo.get("/v1/stream/picture-1").text == first.text


@pytest.mark.parametrize(
    ("part", "code"),
    [
        (image_url(b"no picture"), "invalid_image_format"),
        (image_url(RED[: len(RED) // 2]), "invalid_image"),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,%%%"}}, "invalid_base64_image"),
        ({"type": "input_image", "b64_json": "http://127.0.0.1/x.png"}, "invalid_base64_image"),
        ({"type": "image_url", "image_url": {"url": ""}}, "invalid_value"),
        ({"type": "image_url"}, "invalid_value"),
        (image_url(RED, detail="enormous"), "invalid_value"),
    ],
)
def test_an_invalid_picture_is_a_400_that_names_the_part(demo: httpx2.Client, part: dict[str, Any], code: str) -> None:
    error = _error(demo, "Apa ini?", part, stream=True)
    assert error["code"] == code and error["param"].startswith("messages.0.content.1")


def test_a_text_model_rejects_pictures(http: httpx2.Client) -> None:
    error = _error(http, "Apa ini?", image_url(RED))
    assert error["message"] == "messages.0.content.1: model does not accept images."
    error = _error(http, {"type": "video_url", "video_url": {"url": data_uri(RED)}})
    assert error["message"] == "messages.0.content.0: model does not accept videos."


def test_a_picture_that_fills_the_context_is_a_400(demo_server: Served) -> None:
    from tests.serving import served, settings_with

    settings = settings_with(model_repo_id="models/demo", load_wait_seconds=120, max_context_tokens=64)
    with served(settings) as small, httpx2.Client(base_url=small.url, timeout=120) as client:
        error = _error(client, image_url(picture_file("red", (512, 512))), "Apa ini?")
    assert error["code"] == "context_length_exceeded"


def test_more_parts_than_any_model_has_room_for_are_refused_at_once(http: httpx2.Client) -> None:
    body = asking(*["a"] * 10_000)
    reply = http.post("/v1/chat/completions", json=body)
    assert reply.status_code == 400 and "4096" in reply.json()["error"]["message"]


def test_a_part_of_the_wrong_type_is_named(http: httpx2.Client) -> None:
    error = _error(http, "Apa ini?", {"type": "image_url", "image_url": 7})
    assert error["param"] == "messages.0.content.1.image_url"
