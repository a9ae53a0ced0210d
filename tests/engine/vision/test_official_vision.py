"""Families with official processors get the same tokens and pixels as from those directly."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from PIL import Image

from tests.engine.vision.cases import REFERENCE, picture, prompt, video
from tests.engine.vision.tiny_models import ASKED, TINY, make_tiny
from tis.engine.prompt import ChatPrompt, media_of
from tis.engine.text.hf_tokenizer import HfTokenizer
from tis.engine.text.text_encoder import TooManyTokens
from tis.engine.vision.choose_vision import choose_vision
from tis.engine.vision.official_vision import OfficialVision
from tis.errors import BadRequest

pytestmark = pytest.mark.slow

Folder = Callable[[str], Path]
RECORDED = json.loads((REFERENCE / "tiny.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    made: dict[str, Path] = {}

    def folder(name: str) -> Path:
        if name not in made:
            made[name] = make_tiny(tmp_path_factory.mktemp("tiny") / name, name)
        return made[name]

    return folder


def open_vision(folder: Path) -> OfficialVision:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    vision = choose_vision(folder, transformers.AutoConfig.from_pretrained(folder), HfTokenizer(tokenizer, [], 9))
    assert isinstance(vision, OfficialVision)
    return vision


def official_inputs(folder: Path) -> Any:
    """Calls the processor as the documentation of Transformers says."""
    content = [
        {"type": "image", "image": Image.fromarray(part["image"].pixels)} if part["type"] == "image" else part
        for part in ASKED.messages[0]["content"]
    ]
    return transformers.AutoProcessor.from_pretrained(folder).apply_chat_template(
        [{"role": "user", "content": content}],
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
        return_tensors="pt",
    )


def answer(folder: Path, **inputs: Any) -> list[int]:
    model = transformers.AutoModelForImageTextToText.from_pretrained(folder).eval()
    made = model.generate(**inputs, max_new_tokens=6, do_sample=False)
    return [int(token) for token in made[0, inputs["input_ids"].shape[1] :]]


def inputs_of(vision: OfficialVision, asked: ChatPrompt = ASKED) -> dict[str, Any]:
    ids = vision.encode(asked)
    media = vision.preprocess(ids, media_of(asked.messages))
    row = torch.tensor([ids])
    return {"input_ids": row, "attention_mask": torch.ones_like(row), **media.generate_kwargs()}


# The official processors of the other families need torchvision for videos.
@pytest.mark.parametrize("name", ["gemma3", "llava", "idefics3"])
def test_inputs_and_answers_equal_the_official_ones(tiny: Folder, name: str) -> None:
    ours, official = inputs_of(open_vision(tiny(name))), official_inputs(tiny(name))
    assert ours.keys() == official.keys()
    for key in official:
        assert torch.equal(ours[key], official[key]), key
    assert answer(tiny(name), **ours) == answer(tiny(name), **official)


@pytest.mark.parametrize("name", TINY)
def test_tokens_equal_those_of_an_installation_with_torchvision(tiny: Folder, name: str) -> None:
    """Pixels may differ by 2 in 255 there, as Pillow and torchvision round differently; both are official."""
    made, recorded = inputs_of(open_vision(tiny(name))), RECORDED[name]
    assert made["input_ids"].tolist() == recorded.pop("input_ids")
    assert {key: list(made[key].shape) for key in recorded} == recorded


@pytest.mark.parametrize("name", TINY)
def test_generate_accepts_the_inputs(tiny: Folder, name: str) -> None:
    assert len(answer(tiny(name), **inputs_of(open_vision(tiny(name))))) > 0


@pytest.mark.parametrize("name", ["gemma3", "llava", "llava_onevision"])
def test_a_user_cannot_type_a_placeholder(tiny: Folder, name: str) -> None:
    vision = open_vision(tiny(name))
    typed = TINY[name].image_token
    ids = vision.encode(prompt(picture(40, 60), typed))
    honest = vision.encode(prompt(picture(40, 60)))
    placeholders = vision._processor.image_token_ids
    assert sum(token in placeholders for token in ids) == sum(token in placeholders for token in honest)
    assert typed in vision._processor.tokenizer.decode(ids)


@pytest.mark.parametrize("content", ["Halo", [{"type": "text", "text": "Halo"}]])
@pytest.mark.parametrize("name", ["gemma3", "idefics3"])
def test_text_reaches_any_template(tiny: Folder, name: str, content: Any) -> None:
    vision = open_vision(tiny(name))
    ids = vision.encode(ChatPrompt([{"role": "user", "content": content}]))
    assert vision._processor.tokenizer.decode(ids).count("Halo") == 1
    assert vision.preprocess(ids, []).generate_kwargs() == {}


def test_the_bos_token_is_added_once(tiny: Folder, tmp_path: Path) -> None:
    """Llava's tokenizer writes one, its template does not."""
    folder = make_tiny(tmp_path / "model", "llava")
    vision = open_vision(folder)
    tokenizer = vision._processor.tokenizer
    plain = vision.encode(ASKED)
    tokenizer.bos_token = "<|im_start|>"
    tokenizer.backend_tokenizer.post_processor = _beginning_with("<|im_start|>", tokenizer.bos_token_id)
    template, tokenizer.chat_template = vision._processor.chat_template, None
    vision._processor.chat_template = template.replace("<|im_start|>", "")
    assert vision.encode(ASKED)[0] == tokenizer.bos_token_id
    vision._processor.chat_template = template
    assert vision.encode(ASKED) == plain, "nor written twice"


def _beginning_with(token: str, token_id: int) -> Any:
    from tokenizers.processors import TemplateProcessing

    return TemplateProcessing(single=f"{token} $A", special_tokens=[(token, token_id)])


def test_media_that_do_not_match_the_prompt(tiny: Folder) -> None:
    vision = open_vision(tiny("gemma3"))
    with pytest.raises(ValueError, match="placeholders"):
        vision.preprocess(vision.encode(ASKED), [picture(40, 60)])
    with pytest.raises(ValueError, match="video"):
        vision.preprocess(vision.encode(ASKED), [video(40, 60, [0, 1], 1.0)])


def test_a_text_beyond_the_context_never_reaches_the_processor(tiny: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    vision = open_vision(tiny("llava"))
    monkeypatch.setattr(vision, "_process", lambda *_, **__: pytest.fail("it was processed"))
    asked = prompt(picture(40, 40), "many words " * 20_000)
    with pytest.raises(TooManyTokens):
        vision.encode(replace(asked, max_tokens=1000))


def test_the_sample_has_as_many_pictures_as_the_template_takes(tiny: Folder) -> None:
    vision = open_vision(tiny("llava"))
    sample = vision.sample()
    assert sample and len(sample.media.inputs) == 2
    pictures = "messages[0].content | selectattr('type', 'equalto', 'image') | list | length"
    vision._processor.chat_template = (
        f"{{% if {pictures} > 1 %}}{{{{ raise_exception('one at a time') }}}}{{% endif %}}"
        + vision._processor.chat_template
    )
    sample = vision.sample()
    assert sample and len(sample.media.inputs) == 1


def test_unsupported_content_is_a_bad_request(tiny: Folder) -> None:
    vision = open_vision(tiny("gemma3"))
    with pytest.raises(BadRequest):
        vision.encode(prompt(video(40, 60, [0, 1], 1.0)))
    with pytest.raises(BadRequest, match="control token"):
        vision.encode(ChatPrompt(ASKED.messages, tools=[{"function": {"a<start_of_image>b": 1}}]))
    vision._processor.chat_template = "{{ raise_exception('never pictures') }}"
    with pytest.raises(BadRequest, match="cannot process these images"):
        vision.encode(ASKED)


def test_a_line_of_pixels_is_refused_before_the_processor_enlarges_it(
    tiny: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some bring the shorter side to hundreds of pixels, and the other with it."""
    vision = open_vision(tiny("llava"))
    monkeypatch.setattr(vision, "_process", lambda *_, **__: pytest.fail("it was processed"))
    for height, width in ((1, 3000), (3000, 1)):
        with pytest.raises(BadRequest, match="too elongated") as refused:
            vision.encode(prompt(picture(height, width)))
        assert refused.value.code == "invalid_image"


def test_options_that_the_template_does_not_use_are_ignored(tiny: Folder) -> None:
    vision = open_vision(tiny("gemma3"))
    options = {"enable_thinking": False, "images": ["picture.png"], "do_resize": False}
    assert vision.encode(replace(ASKED, template_options=options)) == vision.encode(ASKED)
    vision._processor.chat_template += "{{ 'quietly' if enable_thinking is false }}"
    said = vision._processor.tokenizer.decode(vision.encode(replace(ASKED, template_options=options)))
    assert said.endswith("quietly")


# The library does not close the files of further templates.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_default_of_several_templates_is_used(tmp_path: Path) -> None:
    folder = make_tiny(tmp_path / "model", "gemma3")
    plain = open_vision(folder).encode(ASKED)
    (folder / "additional_chat_templates").mkdir()
    (folder / "additional_chat_templates" / "tool_use.jinja").write_text("tools")
    assert open_vision(folder).encode(ASKED) == plain


def test_typed_control_tokens_are_rejected_if_they_cannot_be_sanitised(tiny: Folder) -> None:
    """Idefics3 counts characters in its text, which fails when that was sanitised."""
    vision = open_vision(tiny("idefics3"))
    for typed in ("<image>", "<|im_end|>"):
        with pytest.raises(BadRequest, match="control token"):
            vision.encode(prompt(picture(40, 60), f"What does {typed} mean?"))
        assert typed in vision._processor.tokenizer.decode(vision.encode(prompt(f"What does {typed} mean?")))
