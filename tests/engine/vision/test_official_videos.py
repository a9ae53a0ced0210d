"""Videos of families with official processors: the numbers of an installation with torchvision, without it."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
import transformers

from tests.engine.vision.cases import REFERENCE, picture, prompt, video
from tests.engine.vision.tiny_models import ASKED_VIDEOS, TINY, digest_of, make_tiny
from tis.engine.prompt import ChatPrompt, media_of
from tis.engine.text.hf_tokenizer import HfTokenizer
from tis.engine.vision.choose_vision import choose_vision
from tis.engine.vision.official_processor import number_in_words
from tis.engine.vision.official_vision import OfficialVision
from tis.errors import BadRequest

pytestmark = pytest.mark.slow

RECORDED = json.loads((REFERENCE / "tiny_videos.json").read_text(encoding="utf-8"))
FAMILIES = [name for name, family in TINY.items() if family.videos]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], OfficialVision]:
    made: dict[str, OfficialVision] = {}

    def of(name: str) -> OfficialVision:
        if name not in made:
            folder = make_tiny(tmp_path_factory.mktemp("videos") / name, name)
            tokenizer = HfTokenizer(transformers.AutoTokenizer.from_pretrained(folder), [], 9)
            vision = choose_vision(folder, transformers.AutoConfig.from_pretrained(folder), tokenizer)
            assert isinstance(vision, OfficialVision)
            made[name] = vision
        return made[name]

    return of


def inputs_of(vision: OfficialVision, asked: ChatPrompt) -> dict[str, Any]:
    ids = vision.encode(asked)
    media = vision.preprocess(ids, media_of(asked.messages))
    row = torch.tensor([ids])
    return {"input_ids": row, "attention_mask": torch.ones_like(row), **media.generate_kwargs()}


@pytest.mark.parametrize("number", range(len(ASKED_VIDEOS)))
@pytest.mark.parametrize("name", FAMILIES)
def test_tokens_and_numbers_equal_those_of_torchvision(
    opened: Callable[[str], OfficialVision], name: str, number: int
) -> None:
    """Bit for bit: both resize the same bytes with torch."""
    made, recorded = inputs_of(opened(name), ASKED_VIDEOS[number]), dict(RECORDED[name][number])
    assert made.pop("input_ids").tolist() == recorded.pop("input_ids")
    assert {key: [list(value.shape), digest_of(value)] for key, value in made.items()} == recorded


def test_a_repeated_video_is_prepared_once_and_other_times_are_another_video(
    opened: Callable[[str], OfficialVision],
) -> None:
    vision, shown = opened("llava_onevision"), video(40, 60, [0, 12], 24.0)
    asked = prompt(shown, shown, replace(shown, times=(0.0, 1.0)))
    first, same, other = vision.preprocess(vision.encode(asked), media_of(asked.messages)).inputs
    assert first.kind == "video" and first.shown is same.shown
    assert first.digest == same.digest != other.digest


def test_a_single_frame_fills_a_patch_of_two(opened: Callable[[str], OfficialVision]) -> None:
    made = inputs_of(opened("glm4v"), prompt(video(48, 48, [0], 24.0)))
    assert made["video_grid_thw"].tolist()[0][0] == 1


def test_what_a_processor_does_not_take_is_a_bad_request(opened: Callable[[str], OfficialVision]) -> None:
    clips = video(40, 60, [0, 12], 24.0), video(40, 60, [0, 12, 24], 24.0)
    with pytest.raises(BadRequest, match="same number of frames"):
        opened("llava_onevision").encode(prompt(*clips))
    assert inputs_of(opened("glm4v"), prompt(*clips))["video_grid_thw"].tolist()[0][0] == 1


def test_pictures_and_videos_in_one_prompt_keep_their_places(opened: Callable[[str], OfficialVision]) -> None:
    """LLaVA-OneVision prepares several pictures together: here those around a video."""
    vision = opened("llava_onevision")
    asked = prompt(picture(40, 60), video(40, 60, [0, 12], 24.0), picture(60, 30))
    ids = vision.encode(asked)
    pictures, shown = vision.preprocess(ids, media_of(asked.messages)).inputs
    assert (pictures.kind, shown.kind) == ("image", "video")
    [(start, stop)] = shown.spans
    assert pictures.spans[0][1] <= start and stop <= pictures.spans[1][0]


@pytest.mark.parametrize(("number", "words"), [(4, "four"), (16, "sixteen"), (40, "forty"), (64, "sixty-four")])
def test_numbers_are_written_as_smolvlm_writes_them(number: int, words: str) -> None:
    assert number_in_words(number) == words


@pytest.mark.parametrize(
    ("number", "words"), [(100, "one hundred"), (107, "one hundred and seven"), (768, "seven hundred and sixty-eight")]
)
def test_as_many_frames_as_a_video_may_have_have_a_name(number: int, words: str) -> None:
    assert number_in_words(number) == words
