"""Models of several families, from a folder to an answer about a picture over HTTP: what generate() says."""

import io
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
import torch
import transformers
from PIL import Image

from tests.engine.batching.tiny_vision import new_vision_model
from tests.engine.vision.cases import FAMILIES, make_folder, picture, prompt
from tests.engine.vision.tiny_models import make_tiny
from tests.openai_api.media_requests import asking, image_url
from tests.serving import served, settings_with
from tis.engine.prompt import ChatPrompt, Medium, media_of
from tis.engine.text.hf_tokenizer import HfTokenizer
from tis.engine.vision.choose_vision import choose_vision

pytestmark = [pytest.mark.slow, pytest.mark.model]

LENGTH = 8


class FamilyAnswer(NamedTuple):
    text: str
    logprobs: Any


PROMPTS = [
    prompt("Apa ini? ", picture(60, 90)),
    prompt("Halo, siapa kamu?"),
    prompt(picture(60, 90), " dan ", picture(64, 40), "?"),
    prompt("Lihat: ", picture(64, 40)),
]


def _qwen(family: str, architecture: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        make_folder(folder, FAMILIES[family])
        known = transformers.AutoConfig.from_pretrained(folder)
        ids = ("image_token_id", "video_token_id", "vision_start_token_id", "vision_end_token_id")
        model = new_vision_model(architecture, len(transformers.AutoTokenizer.from_pretrained(folder)))
        for name in ids:
            setattr(model.config, name, getattr(known, name))
        model.save_pretrained(folder)
        return folder

    return make


def _official(family: str) -> Callable[[Path], Path]:
    return lambda folder: make_tiny(folder, family)


MODELS: dict[str, Callable[[Path], Path]] = {
    "qwen2_vl": _qwen("qwen2", "qwen2_vl"),
    "qwen2_5_vl": _qwen("qwen2.5", "qwen2_5_vl"),
    "qwen3_vl": _qwen("qwen3", "qwen3_vl"),
    "gemma3": _official("gemma3"),
    "smolvlm": _official("smolvlm"),
    "llava": _official("llava"),
    "llava_onevision": _official("llava_onevision"),
    "idefics3": _official("idefics3"),
}


@pytest.mark.parametrize("name", MODELS)
def test_it_answers_what_generate_answers(tmp_path: Path, name: str) -> None:
    folder = MODELS[name](tmp_path / name)
    expected = _generated(folder, PROMPTS)
    settings = settings_with(model_repo_id=str(folder), torch_dtype="float32", load_wait_seconds=120)
    with served(settings) as server, httpx2.Client(base_url=server.url, timeout=120) as client:

        def answer(asked: ChatPrompt) -> FamilyAnswer:
            body = asking(*_parts(asked), max_tokens=LENGTH, ignore_eos=True, logprobs=True)
            reply = client.post("/v1/chat/completions", json=body)
            assert reply.status_code == 200, reply.text
            [choice] = reply.json()["choices"]
            tokens = choice["logprobs"]["content"]
            return FamilyAnswer(
                choice["message"]["content"], pytest.approx([one["logprob"] for one in tokens], abs=2e-3)
            )

        logprobs = [tuple(one.logprobs) for one in expected]
        assert len(set(logprobs)) == len(PROMPTS), "what is shown must matter"
        assert [answer(asked) for asked in PROMPTS] == expected
        with ThreadPoolExecutor(len(PROMPTS)) as together:
            assert list(together.map(answer, PROMPTS)) == expected


def _generated(folder: Path, prompts: list[ChatPrompt]) -> list[FamilyAnswer]:
    model = transformers.AutoModelForImageTextToText.from_pretrained(folder).eval().float()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    vision = choose_vision(folder, model.config, HfTokenizer(tokenizer, [], len(tokenizer)))
    assert vision
    answers = []
    for asked in prompts:
        ids = vision.encode(asked)
        row = torch.tensor([ids])
        media: list[Medium] = media_of(asked.messages)
        with torch.inference_mode():
            out = model.generate(
                row,
                attention_mask=torch.ones_like(row),
                generation_config=transformers.GenerationConfig(
                    max_new_tokens=LENGTH, min_new_tokens=LENGTH, do_sample=False, pad_token_id=0
                ),
                return_dict_in_generate=True,
                output_logits=True,
                **(vision.preprocess(ids, media).generate_kwargs() if media else {}),
            )
        made = out.sequences[0, len(ids) :]
        logprobs = torch.log_softmax(torch.cat(out.logits), -1)[torch.arange(LENGTH), made]
        answers.append(FamilyAnswer(str(tokenizer.decode(made, skip_special_tokens=True)), logprobs.tolist()))
    return answers


def _parts(asked: ChatPrompt) -> list[Any]:
    [message] = asked.messages
    return [part["text"] if part["type"] == "text" else image_url(_png(part["image"])) for part in message["content"]]


def _png(shown: Any) -> bytes:
    file = io.BytesIO()
    Image.fromarray(shown.pixels).save(file, "PNG")
    return file.getvalue()
