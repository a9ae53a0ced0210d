"""Videos in messages, over HTTP: every spelling of a part, beside pictures, refusals."""

import base64
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import httpx2
import numpy as np
import pytest
import torch
import transformers

from tests.engine.vision.cases import prompt
from tests.engine.vision.tiny_models import make_tiny
from tests.openai_api.media_requests import asking, data_uri, image_url, picture_file, video_file
from tests.serving import Served, served, settings_with
from tis.engine.prompt import Video
from tis.engine.text.hf_tokenizer import HfTokenizer
from tis.engine.vision.choose_vision import choose_vision

VIDEO = video_file("red", "blue")
_URI, _BASE64 = data_uri(VIDEO, "video/mp4"), base64.b64encode(VIDEO).decode()
# Two seconds are 4 frames, in 2 patches of time; the budget of the demo model makes at least 4 tokens of all of them.
_SHOWN = {"type": "video_url", "video_url": {"url": _URI}}

pytestmark = pytest.mark.model


@pytest.fixture
def demo(demo_server: Served) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=demo_server.url, timeout=120) as client:
        yield client


def _post(client: httpx2.Client, *parts: dict[str, Any] | str, **more: Any) -> httpx2.Response:
    return client.post("/v1/chat/completions", json=asking(*parts, max_tokens=8, **more))


def _answer(client: httpx2.Client, *parts: dict[str, Any] | str, **more: Any) -> dict[str, Any]:
    reply = _post(client, *parts, **more)
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


@pytest.mark.parametrize(
    "part",
    [
        {"type": "video_url", "video_url": _URI},
        {"type": "input_video", "b64_json": _BASE64},
        {"type": "input_video", "video": _BASE64},
        {"type": "input_video", "data": _BASE64},
        {"type": "video", "video": _URI},
    ],
    ids=lambda part: "-".join(part),
)
def test_every_spelling_of_a_video_is_the_same_video(demo: httpx2.Client, part: dict[str, Any]) -> None:
    expected = _answer(demo, _SHOWN, "Apa ini?")
    answer = _answer(demo, part, "Apa ini?")
    assert (answer["choices"], answer["usage"]["prompt_tokens"]) == (
        expected["choices"],
        expected["usage"]["prompt_tokens"],
    )
    assert expected["usage"]["prompt_tokens"] > _answer(demo, "Apa ini?")["usage"]["prompt_tokens"] + 10


def test_a_video_between_pictures_and_text(demo: httpx2.Client) -> None:
    red, blue = (image_url(picture_file(colour)) for colour in ("red", "blue"))

    def said(*parts: dict[str, Any] | str) -> dict[str, float]:
        logprobs = _answer(demo, *parts, logprobs=True)["choices"][0]["logprobs"]["content"]
        return {f"{at} {one['token']}": one["logprob"] for at, one in enumerate(logprobs)}

    # How many tokens of a prompt a step computes depends on what is cached and on the time that is left: roundings do.
    shown = pytest.approx(said(red, "lalu", _SHOWN, "lalu", blue), abs=1e-3)
    assert said(red, "lalu", _SHOWN, "lalu", blue) == shown
    assert said(blue, "lalu", _SHOWN, "lalu", red) != shown


@pytest.mark.parametrize(
    ("data", "code"),
    [(b"no video", "invalid_video_format"), (VIDEO[: len(VIDEO) // 3], "invalid_video_format")],
    ids=["text", "cut"],
)
def test_what_is_no_video_is_a_400(demo: httpx2.Client, data: bytes, code: str) -> None:
    reply = _post(demo, "Apa ini?", {"type": "video_url", "video_url": {"url": data_uri(data, "video/mp4")}})
    assert reply.status_code == 400
    assert (reply.json()["error"]["code"], reply.json()["error"]["param"]) == (code, "messages.0.content.1")


@pytest.mark.slow
def test_a_family_with_an_official_processor_answers_what_generate_answers(tmp_path: Path) -> None:
    """Decoded by the server, prepared without torchvision, computed in the batch."""
    folder = make_tiny(tmp_path / "model", "llava_onevision")
    clips = [_SHOWN, {"type": "video_url", "video_url": {"url": data_uri(video_file("green", "yellow"), "video/mp4")}}]
    settings = settings_with(model_repo_id=str(folder), torch_dtype="float32", load_wait_seconds=120)
    with served(settings) as server, httpx2.Client(base_url=server.url, timeout=120) as client:
        said = [
            _answer(client, "Lihat ", clip, ignore_eos=True)["choices"][0]["message"]["content"] for clip in clips * 2
        ]
    assert said[0] != said[1] and said[:2] == said[2:]
    assert said[:2] == [_generated(folder, colours) for colours in (("red", "blue"), ("green", "yellow"))]


def _generated(folder: Path, colours: tuple[str, ...]) -> str:
    """From the frames that PyAV decodes: of two seconds the server takes four, spread evenly."""
    with av.open(io.BytesIO(video_file(*colours)), "r") as container:
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    at = [round(number * (len(frames) - 1) / 3) for number in range(4)]
    shown = Video(np.stack([frames[one] for one in at]), tuple(one / 12 for one in at), 12.0, "a clip")
    asked = prompt("Lihat ", shown)
    model = transformers.AutoModelForImageTextToText.from_pretrained(folder).eval().float()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    vision = choose_vision(folder, model.config, HfTokenizer(tokenizer, [], len(tokenizer)))
    assert vision
    ids = vision.encode(asked)
    made = model.generate(
        torch.tensor([ids]),
        attention_mask=torch.ones(1, len(ids), dtype=torch.long),
        generation_config=transformers.GenerationConfig(
            max_new_tokens=8, min_new_tokens=8, do_sample=False, pad_token_id=0
        ),
        **vision.preprocess(ids, [shown]).generate_kwargs(),
    )
    return str(tokenizer.decode(made[0, len(ids) :], skip_special_tokens=True))


@pytest.mark.slow
def test_a_family_without_videos_refuses_them_by_name(tmp_path: Path) -> None:
    settings = settings_with(model_repo_id=str(make_tiny(tmp_path / "model", "gemma3")), load_wait_seconds=120)
    with served(settings) as server, httpx2.Client(base_url=server.url, timeout=120) as client:
        reply = _post(client, "Apa ini?", _SHOWN)
    assert reply.status_code == 400, reply.text
    assert reply.json()["error"]["code"] == "unsupported_content" and "video" in reply.json()["error"]["message"]
