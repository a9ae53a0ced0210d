"""Videos of families with official processors, in the batch: each request gets the tokens of `generate()`.

`make soak` tries all families; otherwise those that differ most: a token of its own for videos, and positions by frame.
"""

import logging
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from tests.engine.batching.tiny import new_runner, run, tokens
from tests.engine.resuming import resumed
from tests.engine.vision.cases import picture, prompt, video
from tests.engine.vision.tiny_models import TINY, make_tiny
from tis.engine.batching.batch_runner import BatchRunner
from tis.engine.batching.choose_runner import choose_runner
from tis.engine.batching.limits import BatchLimits
from tis.engine.batching.picture_trial import find_tower, why_no_videos
from tis.engine.batching.towers import ForwardTower
from tis.engine.batching.turn_runner import TurnRunner
from tis.engine.optional_stages import BATCHES, OptionalStages
from tis.engine.prepared_request import PreparedRequest
from tis.engine.prompt import ChatPrompt, Video, media_of
from tis.engine.request import Request
from tis.engine.sampling.params import SamplingParams
from tis.engine.text.hf_tokenizer import HfTokenizer
from tis.engine.vision.choose_vision import choose_vision
from tis.engine.vision.official_vision import OfficialVision
from tis.errors import BadRequest

pytestmark = pytest.mark.slow

LENGTH = 10
ALL = tuple(name for name, family in TINY.items() if family.videos)
TRIED = ALL if os.environ.get("SOAK") else ("llava_onevision", "glm4v")
# The others' `forward` takes pictures or videos, not both.
MIXING = {"llava_onevision", "llava_next_video", "internvl"}


def clip(seed: int, *, frames: int = 3) -> Video:
    """Clips of the same times and sizes, each in a colour of its own."""
    made = video(40, 60, [12 * at for at in range(frames)], 24.0)
    tint = np.random.default_rng(seed).integers(0, 256, 3)
    return replace(made, frames=(made.frames // 3 + tint // 3 * 2).astype(np.uint8), digest=f"{made.digest} {seed}")


ASKED: tuple[ChatPrompt, ...] = (
    prompt("Lihat ", clip(0), " Apa ini?"),
    prompt("Halo"),
    prompt(clip(1, frames=4), " dan ", clip(2, frames=4), "?"),
    prompt("Lihat ", clip(5), " Apa ini?"),
    prompt(picture(40, 60), "Apa?"),
    prompt("Ini ", clip(3), " dan ", clip(3), "?"),
)
MIXED = (
    prompt(picture(40, 60), " lalu ", clip(0), "?"),
    prompt("a ", picture(40, 60), clip(0), picture(60, 30), "?"),
)


class VideoCase:
    """A model of a folder, prompts for it, and their tokens by `generate()`."""

    def __init__(self, name: str, folder: Path) -> None:
        make_tiny(folder, name)
        self.model = transformers.AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32).eval()
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.tokenizer = HfTokenizer(tokenizer, [], len(tokenizer))
        vision = choose_vision(folder, self.model.config, self.tokenizer)
        assert isinstance(vision, OfficialVision)
        self.vision = vision
        self.asked = [*ASKED, *(MIXED if name in MIXING else ())]
        self.expected = [self._greedy(self.request(asked)) for asked in self.asked]
        sample = vision.sample()
        assert sample
        self.tower = find_tower(self.model, sample)
        assert isinstance(self.tower, ForwardTower)
        self.why_no_videos = why_no_videos(self.model, vision.video_sample(), self.tower)

    def request(self, asked: ChatPrompt) -> Request:
        ids, media = self.vision.encode(asked), media_of(asked.messages)
        vision = self.vision.preprocess(ids, media) if media else None
        params = SamplingParams(temperature=0.0, max_tokens=LENGTH, ignore_eos=True)
        return Request(PreparedRequest("tiny", "r1", self.tokenizer, ids, params, 1, vision=vision))

    def answers(self, runner: BatchRunner, numbers: Sequence[int], *, every: int = 2) -> list[list[int]]:
        requests = [self.request(self.asked[number]) for number in numbers]
        assert not run(runner, requests, every=every).errors
        return [tokens(request) for request in requests]

    def new_runner(self, **options: Any) -> BatchRunner:
        return new_runner(self.model, tower=self.tower, **options)

    def _greedy(self, request: Request) -> list[int]:
        row, vision = torch.tensor([request.prompt_ids]), request.prepared.vision
        if hasattr(self.model.base_model, "rope_deltas"):
            self.model.base_model.rope_deltas = None
        made = self.model.generate(
            row,
            attention_mask=torch.ones_like(row),
            **(vision.generate_kwargs() if vision else {}),
            do_sample=False,
            min_new_tokens=LENGTH,
            max_new_tokens=LENGTH,
            eos_token_id=None,
        )
        return [int(token) for token in made[0, row.shape[1] :]]


@pytest.fixture(scope="module", params=TRIED)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> VideoCase:
    return VideoCase(str(request.param), tmp_path_factory.mktemp("videos") / str(request.param))


def test_the_trial_finds_that_a_batch_computes_videos(case: VideoCase) -> None:
    assert case.why_no_videos is None
    assert len({tuple(answer) for answer in case.expected}) == len(case.expected), "they depend on what is shown"


@pytest.mark.parametrize("options", [{}, {"tokens_per_step": 7, "patches_per_step": 16}], ids=["whole", "parts"])
def test_side_by_side_they_get_the_tokens_of_generate(case: VideoCase, options: dict[str, int]) -> None:
    assert case.answers(case.new_runner(**options), range(len(case.asked))) == case.expected


def test_alone_they_get_the_tokens_of_generate(case: VideoCase) -> None:
    for number in range(len(case.asked)):
        assert case.answers(case.new_runner(), [number]) == [case.expected[number]], number


def test_preempted_they_get_the_same_tokens(case: VideoCase) -> None:
    """There is room for the prompts, and not for all of their answers."""
    numbers = [0, 2, 5]
    lengths = [len(case.request(case.asked[number]).prompt_ids) for number in numbers]
    num_preemptions = 0
    for room in (2, 3, 4, 5):  # in blocks; prompts may share some
        runner = case.new_runner(tokens=sum(-(-length // 4) * 4 for length in lengths) + 4 * room)
        assert case.answers(runner, numbers, every=1) == [case.expected[number] for number in numbers]
        num_preemptions += runner.scheduler.num_preemptions
    assert num_preemptions > 0


def test_a_repeated_video_is_encoded_once(case: VideoCase, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(case.tower, ForwardTower)
    encoded: list[bytes] = []
    encode = case.tower.encode

    def counted(jobs: Sequence[Any]) -> Any:
        encoded.extend(job.vision_input.digest for job in jobs)
        return encode(jobs)

    monkeypatch.setattr(case.tower, "encode", counted)
    runner = case.new_runner()
    for _ in range(2):
        assert case.answers(runner, [5, 0]) == [case.expected[5], case.expected[0]]
    assert len(encoded) == 2 == len(set(encoded))


def test_another_video_does_not_share_blocks(case: VideoCase) -> None:
    assert case.request(case.asked[0]).prompt_ids == case.request(case.asked[3]).prompt_ids
    runner = case.new_runner()
    assert [case.answers(runner, [number])[0] for number in (0, 3)] == [case.expected[0], case.expected[3]]


def test_an_answer_resumes_in_another_batch(case: VideoCase) -> None:
    request = case.request(case.asked[2])
    whole = run(case.new_runner(), [request]).of(request)
    parts = [(cut, resumed(request.prepared, whole[:cut])) for cut in (1, len(whole) - 1)]
    readers = run(case.new_runner(tokens_per_step=9), [again for _, again in parts])
    for cut, again in parts:
        assert [piece.token_ids for piece in [*whole[:cut], *readers.of(again)]] == [one.token_ids for one in whole]


def test_videos_that_differ_are_refused_and_the_log_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Pictures are computed in the batch all the same. This model's videos depend on what stands beside them."""
    case = VideoCase("llava_onevision", tmp_path / "model")
    model_class, given = type(case.model.base_model), type(case.model.base_model).get_video_features

    def depending(model: Any, pixel_values_videos: Any, **options: Any) -> Any:
        return given(model, pixel_values_videos * len(pixel_values_videos), **options)

    monkeypatch.setattr(model_class, "get_video_features", depending)
    with caplog.at_level(logging.INFO, "tis.engine"):
        runner = choose_runner(case.model, case.tokenizer, 512, BatchLimits(cache_tokens=2048), case.vision).new()
    assert isinstance(runner, BatchRunner) and "videos are refused: a picture has other features" in caplog.text
    assert case.vision.kinds == {"image"}
    with pytest.raises(BadRequest, match="accepts no videos"):
        case.request(case.asked[0])


def test_a_model_that_takes_turns_refuses_videos(tmp_path: Path) -> None:
    case = VideoCase("llava_onevision", tmp_path / "model")
    limits, stages = BatchLimits(cache_tokens=2048), OptionalStages(frozenset({BATCHES}))
    runner = choose_runner(case.model, case.tokenizer, 512, limits, case.vision, stages=stages).new()
    assert isinstance(runner, TurnRunner) and case.vision.kinds == {"image"}
