"""Requests with images in a batch: every request gets the tokens of model.generate() alone."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from tests.engine.batching.tiny import Readers, new_runner, run, tokens
from tests.engine.batching.tiny_vision import IMAGE, VISION_MODELS, VisionPrompt, mixed, new_vision_model
from tests.engine.resuming import resumed
from tis.engine.kernels.native import native_kernels
from tis.engine.weights.packed import quantise_weights
from tis.errors import GenerationFailed

pytestmark = pytest.mark.slow

LENGTH = 14


@pytest.fixture(params=VISION_MODELS)
def vision_model(request: pytest.FixtureRequest) -> Any:
    return new_vision_model(request.param)


@pytest.fixture
def qwen3_vl() -> Any:
    return new_vision_model("qwen3_vl")


def _answers(runner: Any, prompts: Sequence[VisionPrompt], every: int = 2) -> list[list[int]]:
    requests = [one.request(max_tokens=LENGTH) for one in prompts]
    readers = run(runner, requests, every=every)
    assert not readers.errors
    return [tokens(request) for request in requests]


def test_the_answer_depends_on_the_image_or_video(vision_model: Any) -> None:
    """Otherwise the tests below would prove nothing."""
    answers = [VisionPrompt(vision_model).text(5, 1).picture(4, 4, seed).text(6, 2).greedy(LENGTH) for seed in range(4)]
    assert len({tuple(answer) for answer in answers}) == 4
    clips = [VisionPrompt(vision_model).text(5, 1).video(2, 4, 4, seed).text(6, 2).greedy(LENGTH) for seed in range(4)]
    assert len({tuple(answer) for answer in clips}) == 4


@pytest.mark.parametrize("tokens_per_step", [512, 7])
def test_images_videos_and_text_in_a_batch_get_the_tokens_of_generate(vision_model: Any, tokens_per_step: int) -> None:
    prompts = mixed(vision_model)
    expected = [one.greedy(LENGTH) for one in prompts]
    assert _answers(new_runner(vision_model, tokens_per_step=tokens_per_step), prompts) == expected


def test_a_quantised_model_encodes_an_image_in_a_step_that_samples_no_token(qwen3_vl: Any) -> None:
    quantise_weights(qwen3_vl, native_kernels())
    [answer] = _answers(new_runner(qwen3_vl, tokens_per_step=16), [VisionPrompt(qwen3_vl).picture(4, 4, 1).text(40, 2)])
    assert len(answer) == LENGTH


def test_preempted_requests_get_the_same_tokens(vision_model: Any) -> None:
    prompts = mixed(vision_model)
    expected = [one.greedy(LENGTH) for one in prompts]
    runner = new_runner(vision_model, tokens=128, tokens_per_step=16)
    assert _answers(runner, prompts) == expected
    assert runner.scheduler.num_preemptions > 0


def test_a_video_encoded_a_few_frames_at_a_time_gives_the_same_tokens(vision_model: Any) -> None:
    prompts = [
        VisionPrompt(vision_model).text(4, 1).video(6, 4, 4, 1).text(5, 2),
        VisionPrompt(vision_model).text(9, 3),
    ]
    expected = [one.greedy(LENGTH) for one in prompts]
    runner = new_runner(vision_model, patches_per_step=32)  # two frames
    assert _answers(runner, prompts, every=1) == expected


def test_a_repeated_image_is_encoded_once_and_its_blocks_are_reused(qwen3_vl: Any) -> None:
    prompts = [VisionPrompt(qwen3_vl).text(5, 1).picture(8, 8, 1).text(6 + n, 2 + n) for n in range(3)]
    expected = [one.greedy(LENGTH) for one in prompts]
    encoded = _count_encoded_patches(qwen3_vl)
    runner = new_runner(qwen3_vl)
    requests = [one.request(max_tokens=LENGTH) for one in prompts]
    for request in requests:
        run(runner, [request])
    assert [tokens(request) for request in requests] == expected
    assert encoded == [64]
    before_question = 5 + 1 + 16 + 1
    assert [request.answer.cached_tokens for request in requests] == [0] + 2 * [before_question // 4 * 4]


def test_another_image_does_not_share_blocks(qwen3_vl: Any) -> None:
    prompts = [VisionPrompt(qwen3_vl).text(5, 1).picture(8, 8, seed).text(6, 2) for seed in range(3)]
    assert len({tuple(one.ids) for one in prompts}) == 1, "their tokens are the same, only the images differ"
    expected = [one.greedy(LENGTH) for one in prompts]
    runner = new_runner(qwen3_vl)
    requests = [one.request(max_tokens=LENGTH) for one in prompts]
    for request in requests:
        run(runner, [request])
    assert [tokens(request) for request in requests] == expected
    assert [request.answer.cached_tokens for request in requests] == [0, 4, 4]


def test_a_cached_prefix_may_end_in_the_middle_of_an_image(qwen3_vl: Any) -> None:
    """The first request is cancelled after a part of its prompt was computed."""
    whole = VisionPrompt(qwen3_vl).text(5, 1).picture(8, 8, 1).text(6, 2)
    expected = whole.greedy(LENGTH)
    runner = new_runner(qwen3_vl, tokens_per_step=12)
    first, second = whole.request(max_tokens=LENGTH), whole.request(max_tokens=LENGTH)
    runner.admit(first)
    runner.step(lambda deliveries: None)
    first.cancel()
    run(runner, [second])
    assert tokens(second) == expected and second.answer.cached_tokens == 12


def test_several_choices_of_a_prompt_with_an_image(qwen3_vl: Any) -> None:
    one = VisionPrompt(qwen3_vl).text(5, 1).picture(4, 4, 1).text(6, 2)
    runner = new_runner(qwen3_vl)
    request = one.request(n=3, temperature=1.2, max_tokens=LENGTH)
    run(runner, [request])
    alone = [one.request(n=3, temperature=1.2, max_tokens=LENGTH) for _ in range(1)]
    other = new_runner(qwen3_vl, tokens_per_step=5)
    run(other, [VisionPrompt(qwen3_vl).text(8, 8).request(), *alone])
    assert [tokens(request, at) for at in range(3)] == [tokens(alone[0], at) for at in range(3)]


def test_a_generated_placeholder_token_is_not_an_image(qwen3_vl: Any) -> None:
    """A random model may generate one: it must not get the features of any image."""
    talking = VisionPrompt(qwen3_vl).text(6, 1)
    one = VisionPrompt(qwen3_vl).text(5, 1).picture(4, 4, 1).text(6, 2)
    expected = one.greedy(LENGTH)
    runner = new_runner(qwen3_vl)
    repeating = talking.request(logit_bias={IMAGE: 100.0}, max_tokens=LENGTH)
    request = one.request(max_tokens=LENGTH)
    readers = run(runner, [repeating, request], every=4)
    assert not readers.errors
    assert tokens(repeating) == [IMAGE] * LENGTH and tokens(request) == expected


def test_an_invalid_image_fails_only_its_own_request(qwen3_vl: Any, caplog: pytest.LogCaptureFixture) -> None:
    good = [VisionPrompt(qwen3_vl).text(5, 1).picture(4, 4, 1).text(6, 2), VisionPrompt(qwen3_vl).text(5, 3)]
    expected = [one.greedy(LENGTH) for one in good]
    bad = VisionPrompt(qwen3_vl).text(5, 1).picture(4, 4, 2).text(6, 2)
    patches = bad.vision_inputs[0].patches
    patches.resize_(patches.shape[0], 7)
    requests = [one.request(max_tokens=LENGTH) for one in (good[0], bad, good[1])]
    readers = run(new_runner(qwen3_vl), requests, every=1)
    assert isinstance(readers.errors[id(requests[1])], GenerationFailed) and len(readers.errors) == 1
    assert [tokens(requests[0]), tokens(requests[2])] == expected


def test_a_reader_gets_the_error_of_an_image_even_if_the_step_fails_later(
    qwen3_vl: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: Any) -> None:
        raise RuntimeError

    runner, readers = new_runner(qwen3_vl), Readers()
    bad, fine = VisionPrompt(qwen3_vl).picture(4, 4, 2).text(6, 2), VisionPrompt(qwen3_vl).text(5, 3)
    bad.vision_inputs[0].patches.resize_(bad.vision_inputs[0].patches.shape[0], 7)
    requests = [one.request() for one in (bad, fine)]
    for request in requests:
        runner.admit(request)
    monkeypatch.setattr(runner, "_accept", fail)
    with pytest.raises(RuntimeError):
        runner.step(readers.hand_out)
    assert isinstance(readers.errors[id(requests[0])], GenerationFailed)
    assert runner.running == [requests[1]]  # whoever called the step delivers its error


def test_the_cache_of_features_is_bounded(qwen3_vl: Any) -> None:
    encoded = _count_encoded_patches(qwen3_vl)
    of_one_picture = 4 * 64 * 4 * 3  # tokens, numbers, bytes, layers
    runner = new_runner(qwen3_vl, vision_cache_bytes=2 * of_one_picture)

    def show(seed: int) -> None:
        run(runner, [VisionPrompt(qwen3_vl).text(2 + seed, 90 + len(encoded)).picture(4, 4, seed).text(3, 1).request()])

    for seed in (1, 2, 1, 3):
        show(seed)
    assert len(encoded) == 3
    show(1)
    assert len(encoded) == 3
    show(2)
    assert len(encoded) == 4


def _count_encoded_patches(model: Any) -> list[int]:
    """Records the number of patches of each call of the vision tower."""
    encoded: list[int] = []
    look = model.base_model.get_image_features

    def counted(patches: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        encoded.append(len(patches))
        return look(patches, *args, **kwargs)

    model.base_model.get_image_features = counted
    return encoded


def test_an_answer_about_an_image_resumes_in_another_batch(vision_model: Any) -> None:
    one = VisionPrompt(vision_model).text(5, 1).picture(8, 4, 1).video(2, 4, 4, 2).text(6, 2)
    request = one.request(max_tokens=LENGTH)
    whole = run(new_runner(vision_model), [request]).of(request)
    parts = [(cut, resumed(request.prepared, whole[:cut])) for cut in (1, 7, LENGTH - 1)]
    readers = run(new_runner(vision_model, tokens_per_step=9), [again for _, again in parts])
    for cut, again in parts:
        assert [*whole[:cut], *readers.of(again)] == whole


def test_a_partly_encoded_video_is_kept_while_other_requests_go_first(qwen3_vl: Any) -> None:
    encoded = _count_encoded_patches(qwen3_vl)
    runner = new_runner(qwen3_vl, tokens_per_step=24, patches_per_step=16)  # one frame
    video = VisionPrompt(qwen3_vl).text(4, 1).video(6, 4, 4, 1).text(5, 2).request()
    company = [VisionPrompt(qwen3_vl).text(90, 3).request()] + [
        VisionPrompt(qwen3_vl).text(5, 4 + n).request() for n in range(20)
    ]
    run(runner, [company[0], video, *company[1:]], every=1)
    assert sum(encoded) == 6 * 16


def test_images_and_prompts_take_turns_when_steps_have_a_time(qwen3_vl: Any) -> None:
    """Whoever decodes gets a token in every step, and everybody the tokens of generate()."""
    prompts = [VisionPrompt(qwen3_vl).text(4, seed).picture(8, 8, seed).text(70, seed) for seed in (1, 2, 3)]
    expected = [one.greedy(12) for one in prompts]
    runner, readers = new_runner(qwen3_vl, step_seconds=1e-6), Readers()
    talking, shown = VisionPrompt(qwen3_vl).text(5, 3).request(max_tokens=40), [one.request() for one in prompts]
    runner.admit(talking)
    runner.step(readers.hand_out)
    for request in shown:
        runner.admit(request)
    for _ in range(12):
        before = len(tokens(talking))
        runner.step(readers.hand_out)
        assert len(tokens(talking)) == before + 1
    while runner.running:
        runner.step(readers.hand_out)
    assert not readers.errors
    assert [tokens(request) for request in shown] == expected
