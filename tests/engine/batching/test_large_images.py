"""Images with more patches than a step encodes: some layers of the vision tower in each step."""

from typing import Any

import pytest
import torch

from tests.engine.batching.tiny import Readers, new_runner, run, tokens
from tests.engine.batching.tiny_vision import VISION_MODELS, VisionPrompt, new_vision_model
from tis.engine.batching.towers import EncodeJob, QwenTower
from tis.engine.errors import OutOfMemory
from tis.engine.request import Request

_LENGTH = 8
_BUDGET = 32  # patches a step; the picture below has 64, so that a step computes one layer of three


@pytest.fixture(scope="module")
def qwen3_vl() -> Any:
    return new_vision_model("qwen3_vl")


@pytest.fixture(params=VISION_MODELS)
def vision_model(request: pytest.FixtureRequest) -> Any:
    return new_vision_model(request.param)


def _large(model: Any, seed: int = 1) -> VisionPrompt:
    return VisionPrompt(model).text(5, 1).picture(8, 8, seed).text(6, 2)


def _plain(model: Any, prompt: VisionPrompt) -> list[int]:
    request = prompt.request(max_tokens=_LENGTH)
    run(new_runner(model), [request])
    return tokens(request)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_layer_by_layer_the_features_are_those_of_one_call(vision_model: Any, dtype: torch.dtype) -> None:
    model = vision_model.to(dtype)
    tower, job = QwenTower(model), EncodeJob(_large(model).vision_inputs[0], 0, 1)
    with torch.inference_mode():
        [whole] = tower.encode([job])
        tower_run = tower.begin(job)
        assert tower_run
        outs = [tower_run.advance(1) for _ in range(tower_run.num_layers)]
    assert not any(outs[:-1]) and outs[-1]
    [features] = outs[-1]
    assert torch.equal(features.tokens, whole.tokens)
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(features.deep, whole.deep, strict=True))
    assert not any("forward" in module.__dict__ for module in model.modules()), "the model is as it was"


def test_large_images_get_the_tokens_of_generate(vision_model: Any) -> None:
    prompts = [_large(vision_model), VisionPrompt(vision_model).text(9, 3), _large(vision_model, 2).picture(4, 4, 3)]
    expected = [one.greedy(_LENGTH) for one in prompts]
    requests = [one.request(max_tokens=_LENGTH) for one in prompts]
    readers = run(new_runner(vision_model, patches_per_step=_BUDGET), requests)
    assert not readers.errors
    assert [tokens(request) for request in requests] == expected


def _beside_a_talker(model: Any) -> tuple[Any, Readers, Request, Request]:
    """A request that decodes, and one with a large image, of which one layer is computed."""
    runner, readers = new_runner(model, patches_per_step=_BUDGET), Readers()
    talking, shown = VisionPrompt(model).text(5, 3).request(max_tokens=30), _large(model).request(max_tokens=_LENGTH)
    runner.admit(talking)
    runner.step(readers.hand_out)
    runner.admit(shown)
    runner.step(readers.hand_out)
    assert runner._vision._unfinished
    return runner, readers, talking, shown


def _finish(runner: Any, readers: Readers) -> None:
    while runner.running:
        runner.step(readers.hand_out)


def test_whoever_decodes_gets_a_token_in_every_step_of_a_large_image(qwen3_vl: Any) -> None:
    expected = _plain(qwen3_vl, _large(qwen3_vl))
    runner, readers, talking, shown = _beside_a_talker(qwen3_vl)
    num_steps = 1
    while runner._vision._unfinished:
        before, num_encoded = len(tokens(talking)), runner._vision.num_encoded
        runner.step(readers.hand_out)
        num_steps += 1
        assert len(tokens(talking)) == before + 1
        assert 0 < runner._vision.num_encoded - num_encoded <= _BUDGET
    _finish(runner, readers)
    assert num_steps == 3 and not readers.errors
    assert round(runner._vision.num_encoded) == 64
    assert tokens(shown) == expected


def test_a_cancelled_image_is_dropped_at_once(qwen3_vl: Any) -> None:
    expected = _plain(qwen3_vl, _large(qwen3_vl))
    runner, readers, talking, shown = _beside_a_talker(qwen3_vl)
    shown.cancel()
    runner.step(readers.hand_out)
    assert not runner._vision._unfinished
    again = _large(qwen3_vl).request(max_tokens=_LENGTH)
    runner.admit(again)
    _finish(runner, readers)
    assert not readers.errors and len(tokens(talking)) == 30
    assert tokens(again) == expected


def test_an_image_that_others_show_too_outlives_the_cancelled_request(qwen3_vl: Any) -> None:
    expected = _plain(qwen3_vl, _large(qwen3_vl))
    runner, readers, _, shown = _beside_a_talker(qwen3_vl)
    other = _large(qwen3_vl).request(max_tokens=_LENGTH)
    runner.admit(other)
    shown.cancel()
    _finish(runner, readers)
    assert tokens(other) == expected
    assert round(runner._vision.num_encoded) == 64, "no layer was computed twice"


def test_without_memory_for_a_later_layer_only_that_request_fails(
    qwen3_vl: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: Any, **named: Any) -> None:
        raise torch.OutOfMemoryError("out of memory")

    expected = _plain(qwen3_vl, _large(qwen3_vl))
    runner, readers, talking, shown = _beside_a_talker(qwen3_vl)
    with monkeypatch.context() as patched:
        patched.setattr(qwen3_vl.base_model.visual.blocks[1], "forward", fail)
        runner.step(readers.hand_out)
    assert isinstance(readers.errors[id(shown)], OutOfMemory)
    assert not runner._vision._unfinished
    again = _large(qwen3_vl).request(max_tokens=_LENGTH)
    runner.admit(again)
    _finish(runner, readers)
    assert len(readers.errors) == 1 and len(tokens(talking)) == 30
    assert tokens(again) == expected
