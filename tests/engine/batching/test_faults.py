"""A forward pass that fails is computed again by halves: only the rows that are to blame fail."""

from typing import Any

import pytest
import torch

from tests.engine.batching.tiny import alone, new_request, new_runner, prompt, run, tokens
from tis.engine.batching.batch_runner import BatchRunner
from tis.engine.errors import OutOfMemory
from tis.engine.faults import DeviceLost
from tis.engine.request import Request
from tis.engine.sampling.pick import pick_all
from tis.errors import GenerationFailed

POISON = 305  # no other prompt has it


def fail_on_poison(model: Any, error: Exception) -> list[int]:
    """Makes every forward pass fail that computes this token. Returns the sizes of the passes, as they come."""
    sizes: list[int] = []

    def check(module: Any, given: tuple[Any, ...]) -> None:
        sizes.append(given[0].shape[-1])
        if (given[0] == POISON).any():
            raise error

    model.get_input_embeddings().register_forward_pre_hook(check)
    return sizes


def healthy_and_sick(num_healthy: int = 5) -> tuple[list[Request], Request]:
    return [new_request(prompt(6 + at, at)) for at in range(num_healthy)], new_request([4, 5, POISON])


def assert_answered_as_alone(qwen3: Any, requests: list[Request]) -> None:
    for ours in requests:
        lonely = new_request(ours.prompt_ids)
        alone(qwen3, lonely)
        assert tokens(ours) == tokens(lonely)


def test_only_the_guilty_row_of_a_failing_pass_fails(qwen3: Any, caplog: pytest.LogCaptureFixture) -> None:
    healthy, sick = healthy_and_sick()
    fail_on_poison(qwen3, ValueError())
    readers = run(new_runner(qwen3), [*healthy[:2], sick, *healthy[2:]])
    assert [type(error) for error in readers.errors.values()] == [GenerationFailed]
    assert id(sick) in readers.errors and "ValueError" in caplog.text
    assert_answered_as_alone(qwen3, healthy)


def test_finding_the_guilty_row_takes_a_logarithm_of_passes(qwen3: Any) -> None:
    healthy, sick = healthy_and_sick(15)
    runner = new_runner(qwen3)
    sizes = fail_on_poison(qwen3, ValueError())
    for request in [*healthy, sick]:
        runner.admit(request)
    runner.step(lambda deliveries: None)
    assert len(sizes) == 1 + 2 * 4


def test_a_request_that_is_too_large_for_the_memory_gets_its_own_error_and_the_server_goes_on(qwen3: Any) -> None:
    healthy, sick = healthy_and_sick()
    fail_on_poison(qwen3, torch.OutOfMemoryError("CUDA out of memory."))
    runner = new_runner(qwen3)
    readers = run(runner, [sick, *healthy])
    [error] = readers.errors.values()
    assert isinstance(error, OutOfMemory) and (error.status, error.code) == (503, "out_of_memory")
    assert_answered_as_alone(qwen3, healthy)
    assert runner.scheduler.sequences == [] and not runner.running


def test_a_batch_that_is_too_large_for_the_memory_is_computed_in_parts(qwen3: Any) -> None:
    """Nobody is to blame: each half fits."""
    requests = [new_request(prompt(20, seed)) for seed in range(4)]

    def fit(module: Any, given: tuple[Any, ...]) -> None:
        if given[0].shape[-1] > 40:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes.")

    qwen3.get_input_embeddings().register_forward_pre_hook(fit)
    readers = run(new_runner(qwen3), requests)
    assert not readers.errors
    assert_answered_as_alone(qwen3, requests)


def test_sampling_that_fails_for_a_whole_batch_is_repeated_by_halves(
    qwen3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    healthy, sick = healthy_and_sick()

    def pick(logits: Any, completions: Any) -> Any:
        if any(one.prompt_ids == sick.prompt_ids for one in completions):
            raise IndexError("sampling")
        return pick_all(logits, completions)

    monkeypatch.setattr("tis.engine.batching.picked_row.pick_all", pick)
    readers = run(new_runner(qwen3), [*healthy, sick])
    assert list(readers.errors) == [id(sick)]
    assert_answered_as_alone(qwen3, healthy)


def test_after_a_lost_device_no_request_fails(qwen3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process ends, and they are resumed by the next one."""
    healthy, sick = healthy_and_sick()
    fail_on_poison(qwen3, RuntimeError("CUDA error: an illegal memory access was encountered"))
    monkeypatch.setattr(BatchRunner, "device_answers", lambda runner: False)
    runner = new_runner(qwen3)
    delivered: list[Any] = []
    for request in (*healthy, sick):
        runner.admit(request)
    with pytest.raises(DeviceLost):
        runner.step(delivered.extend)
    assert delivered == [] and runner.running == [*healthy, sick]
