"""Audio in messages, over HTTP, with a tiny model that hears: what `generate()` says, every spelling, refusals."""

import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest
import transformers
from openai import OpenAI

from tests.engine.hearing.tiny_hearing import generated, heard, likeliest_logprob, make_hearing
from tests.media.sounds import sound_file, spoken
from tests.openai_api.media_requests import asking, data_uri
from tests.serving import Served, served, settings_with
from tis.engine.prompt import ChatPrompt, Sound

pytestmark = pytest.mark.model

ONE, OTHER = (sound_file(spoken(text)) for text in ("satu dua tiga", "enam lima empat"))
_BASE64 = base64.b64encode(ONE).decode()


def input_audio(data: bytes, form: str = "wav") -> dict[str, Any]:
    return {"type": "input_audio", "input_audio": {"data": base64.b64encode(data).decode(), "format": form}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_hearing(tmp_path_factory.mktemp("heard") / "qwen2_audio", "qwen2_audio")


@pytest.fixture(scope="module")
def hearing(folder: Path) -> Iterator[Served]:
    settings = settings_with(
        model_repo_id=str(folder), torch_dtype="float32", load_wait_seconds=120, max_chat_audio_seconds=5
    )
    with served(settings) as running:
        yield running


@pytest.fixture
def client(hearing: Served) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=hearing.url, timeout=120) as client:
        yield client


def _answer(client: httpx2.Client, *parts: dict[str, Any] | str, **more: Any) -> dict[str, Any]:
    reply = client.post("/v1/chat/completions", json=asking(*parts, **{"max_tokens": 8, "ignore_eos": True} | more))
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


def _text(answer: dict[str, Any]) -> str:
    return str(answer["choices"][0]["message"]["content"])


def _error(client: httpx2.Client, *parts: dict[str, Any] | str, **more: Any) -> dict[str, Any]:
    reply = client.post("/v1/chat/completions", json=asking(*parts, **more))
    assert reply.status_code == 400, reply.text
    return dict(reply.json()["error"])


@pytest.fixture(scope="module")
def about_one(hearing: Served) -> dict[str, Any]:
    with httpx2.Client(base_url=hearing.url, timeout=120) as client:
        return _answer(client, input_audio(ONE), "Apa ini?")


def test_the_openai_client_sends_audio(
    sdk: Callable[[Served], OpenAI], hearing: Served, client: httpx2.Client, folder: Path
) -> None:
    """A file goes through the decoder, the official processor and the batch, and the answer is that of generate()."""
    answer = sdk(hearing).chat.completions.create(
        model="demo",
        messages=[
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Apa ini? "},
                    {"type": "input_audio", "input_audio": {"data": _BASE64, "format": "wav"}},
                ],
            }
        ],
        max_tokens=8,
        temperature=0,
        extra_body={"ignore_eos": True},
    )
    assert answer.choices[0].message.content == _expected(folder, ONE)
    assert _text(_answer(client, "Apa ini? ", input_audio(OTHER))) == _expected(folder, OTHER)
    usage = answer.usage
    assert usage and usage.prompt_tokens_details
    # 1.2 seconds are 120 columns of a spectrogram, and a token is 4 of them.
    assert usage.prompt_tokens_details.audio_tokens == 30
    without = _answer(client, "Apa ini? ")["usage"]
    assert usage.prompt_tokens == without["prompt_tokens"] + 30 + 2
    assert "audio_tokens" not in without["prompt_tokens_details"]


def _expected(folder: Path, file: bytes) -> str:
    [tokens] = generated(folder, [heard("Apa ini? ", _known(file))], 8)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return str(tokenizer.decode(tokens, skip_special_tokens=True))


def _known(file: bytes) -> Sound:
    """The samples of a WAV of 16 bits are known without a decoder."""
    return Sound(np.frombuffer(file[file.index(b"data") + 8 :], np.int16).astype(np.float32) / 32768, "known")


@pytest.mark.parametrize(
    "part",
    [
        {"type": "input_audio", "input_audio": {"data": _BASE64}},
        {"type": "input_audio", "input_audio": {"data": data_uri(ONE, "audio/wav"), "format": "mp3"}},
        {"type": "input_audio", "data": _BASE64},
        {"type": "audio_url", "audio_url": {"url": data_uri(ONE, "audio/wav")}},
        {"type": "audio", "audio": data_uri(ONE, "audio/wav")},
    ],
    ids=lambda part: "-".join([part["type"], *list(part)[1:]]),
)
def test_every_spelling_of_audio_is_the_same_sound(
    client: httpx2.Client, part: dict[str, Any], about_one: dict[str, Any]
) -> None:
    answer = _answer(client, part, "Apa ini?")
    assert answer["choices"] == about_one["choices"]
    assert answer["usage"]["prompt_tokens"] == about_one["usage"]["prompt_tokens"]


@pytest.mark.parametrize(("form", "codec"), [("mp3", "libmp3lame"), ("ogg", "libopus")])
def test_files_of_other_formats_and_rates_are_heard_whole(client: httpx2.Client, form: str, codec: str) -> None:
    """Silence is heard, too: nothing is left out."""
    file = sound_file(spoken("1 satu 1", 48_000), form, codec, rate=48_000)
    tokens = _answer(client, input_audio(file, form))["usage"]["prompt_tokens_details"]["audio_tokens"]
    assert tokens == pytest.approx(2.4 * 25, abs=2)


def test_a_recording_larger_than_any_text_is_heard(client: httpx2.Client) -> None:
    file = sound_file(spoken("satu dua tiga 2.5", 96_000), rate=96_000, layout="5.1")
    assert len(input_audio(file)["input_audio"]["data"]) > 4 * 2**20  # MAX_TEXT_MB
    usage = _answer(client, input_audio(file))["usage"]
    assert usage["prompt_tokens_details"]["audio_tokens"] == pytest.approx(3.7 * 25, abs=2)


def test_several_sounds_of_a_conversation_keep_their_order(client: httpx2.Client, folder: Path) -> None:
    def turns(first: Any, second: Any) -> list[dict[str, Any]]:
        return [
            {"role": "user", "content": [first, {"type": "text", "text": "Ini satu."}]},
            {"role": "assistant", "content": "Baik."},
            {"role": "user", "content": [{"type": "text", "text": "Ini dua."}, second]},
        ]

    def answered(first: bytes, second: bytes) -> float:
        body = {"messages": turns(input_audio(first), input_audio(second)), "temperature": 0, "max_tokens": 1}
        reply = client.post("/v1/chat/completions", json={**body, "ignore_eos": True, "logprobs": True})
        assert reply.status_code == 200, reply.text
        return float(reply.json()["choices"][0]["logprobs"]["content"][0]["logprob"])

    def official(first: bytes, second: bytes) -> float:
        sounds = ({"type": "audio", "audio": _known(one)} for one in (first, second))
        return likeliest_logprob(folder, ChatPrompt(turns(*sounds)))

    assert answered(ONE, OTHER) == pytest.approx(official(ONE, OTHER), abs=1e-5)
    assert answered(OTHER, ONE) == pytest.approx(official(OTHER, ONE), abs=1e-5)
    assert official(ONE, OTHER) != pytest.approx(official(OTHER, ONE), abs=1e-4)


def test_a_streamed_answer_about_audio_is_repeated_from_its_recording(client: httpx2.Client) -> None:
    body = asking(input_audio(ONE), "Apa ini?", stream=True, session_id="heard-1", max_tokens=8, ignore_eos=True)
    body["stream_options"] = {"include_usage": True}
    first = client.post("/v1/chat/completions", json=body)
    assert first.status_code == 200 and first.text.endswith("data: [DONE]\n\n") and '"audio_tokens":30' in first.text
    assert client.post("/v1/chat/completions", json=body).text == first.text


def test_a_response_hears_and_its_chain_still_does(client: httpx2.Client) -> None:
    def respond(file: bytes, **more: Any) -> dict[str, Any]:
        content = [{"type": "input_text", "text": "Apa ini? "}, input_audio(file)]
        body = {"input": [{"role": "user", "content": content}], "max_output_tokens": 8, "temperature": 0} | more
        reply = client.post("/v1/responses", json=body)
        assert reply.status_code == 200, reply.text
        return dict(reply.json())

    first, other = respond(ONE), respond(OTHER)
    assert first["usage"]["input_tokens"] == _answer(client, "Apa ini? ", input_audio(ONE))["usage"]["prompt_tokens"]
    asked = {"input": "Dan?", "max_output_tokens": 8, "temperature": 0}
    again, of_other = (
        client.post("/v1/responses", json=asked | {"previous_response_id": one["id"]}) for one in (first, other)
    )
    assert again.status_code == of_other.status_code == 200, again.text
    assert again.json()["usage"]["input_tokens"] > first["usage"]["input_tokens"]
    assert again.json()["output"][-1]["content"] != of_other.json()["output"][-1]["content"]
    url = f"/v1/responses/{first['id']}/input_items"
    for include, data in ({}, ""), ({"include": "message.input_image.image_url"}, _BASE64):
        [item] = client.get(url, params=include).json()["data"]
        assert item["content"][1] == {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}


@pytest.mark.parametrize(
    ("part", "code"),
    [
        (input_audio(b"no sound at all, but text"), "invalid_audio_format"),
        (input_audio(ONE[:30]), "invalid_audio_format"),
        (input_audio(sound_file(spoken("0.02"))), "audio_too_short"),
        (input_audio(sound_file(spoken("4.5"))), "audio_too_long"),  # for this model, which hears 4 seconds
        (input_audio(sound_file(spoken("7"))), "audio_too_long"),  # for this server, which takes 5
        ({"type": "input_audio", "input_audio": {"data": "%%%", "format": "wav"}}, "invalid_base64_audio"),
        ({"type": "input_audio", "input_audio": {"data": "http://127.0.0.1/x.wav"}}, "invalid_base64_audio"),
        ({"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}, "invalid_value"),
        ({"type": "input_audio", "input_audio": "satu"}, "invalid_type"),
        ({"type": "input_audio"}, "invalid_value"),
        ({"type": "audio_url", "audio_url": {"url": "http://127.0.0.1/x.wav"}}, "media_fetch_failed"),
        ({"type": "audio_url", "audio_url": {"url": "file:///etc/hostname"}}, "invalid_audio_url"),
    ],
)
def test_invalid_audio_is_a_400_that_names_it(client: httpx2.Client, part: dict[str, Any], code: str) -> None:
    error = _error(client, "Apa ini?", part, stream=True)
    assert error["code"] == code and error["param"].startswith("messages")


def test_all_audio_of_a_request_counts_together(client: httpx2.Client) -> None:
    three = [input_audio(sound_file(spoken(f"{text} 1.5"))) for text in ("satu", "dua", "tiga")]
    error = _error(client, *three)
    assert error["code"] == "audio_too_long" and "all audio" in error["message"]
    assert error["param"] == "messages.0.content.2"


def test_the_server_says_that_the_model_hears(client: httpx2.Client) -> None:
    _answer(client, "Halo")
    assert client.get("/props").json()["modalities"] == {"vision": False, "video": False, "audio": True}
    [model] = client.get("/v1/models").json()["data"]
    assert model["modalities"]["input"] == ["text", "audio"] and "audio" in model["capabilities"]
    assert "vision" not in model["capabilities"]


def test_a_model_that_does_not_hear_refuses_audio_by_name(http: httpx2.Client, client: httpx2.Client) -> None:
    for part in (input_audio(ONE), {"type": "audio_url", "audio_url": {"url": data_uri(ONE, "audio/wav")}}):
        error = _error(http, "Apa ini?", part)
        assert error["message"] == "messages.0.content.1: model does not accept audio."
        assert (error["code"], error["param"]) == ("unsupported_content", "messages.0.content.1")
    pixel = {"type": "image_url", "image_url": {"url": data_uri(b"x")}}
    assert "does not accept images" in _error(client, pixel)["message"]
