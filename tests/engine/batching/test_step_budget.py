"""Steps by time: how many tokens of prompts fit beside the sequences that decode."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.engine.batching.tiny import greedy, new_request, new_runner, prompt, run, tokens
from tis.engine.batching.step_budget import StepBudget


def prompt_tokens_of(cost: Callable[[int], float], steps: int = 30, cap: int = 2048) -> list[int]:
    """The sizes of steps on a machine on which a step of so many prompt tokens takes this long."""
    budget, sizes = StepBudget(0.25, cap, 1024), []
    for _ in range(steps):
        budget.computed(0, cost(0))
        sizes.append(budget.next.num_prompt_tokens)
        budget.computed(sizes[-1], cost(sizes[-1]))
    return sizes


def test_a_step_takes_about_the_time_it_may() -> None:
    sizes = prompt_tokens_of(lambda number: 0.05 + number * 0.0004)
    assert sizes[0] == 48 and set(sizes[5:]) == {496}  # 0.05 + 496 * 0.0004 = 0.248


def test_costs_that_grow_with_the_context_make_steps_smaller() -> None:
    steps = iter(range(1000))
    sizes = prompt_tokens_of(lambda number: number * 0.0004 * (1 + next(steps) / 20))
    assert sizes[2] > 512 > 160 >= sizes[-1]


def test_a_slow_machine_still_advances_by_a_chunk_and_a_fast_one_stops_at_the_cap() -> None:
    assert set(prompt_tokens_of(lambda number: 2 + number * 0.1)) == {48}
    assert prompt_tokens_of(lambda number: number * 1e-6, cap=500)[-1] == 500


def test_a_short_prompt_says_nothing_about_the_cost_of_a_token() -> None:
    budget = StepBudget(0.25, 2048, 1024)
    budget.computed(512, 0.2)
    before = budget.next
    budget.computed(5, 0.2)
    assert budget.next == before


def test_without_a_time_the_caps_are_all() -> None:
    budget = StepBudget(0, 100, 50)
    budget.computed(100, 60.0)
    assert not budget.encoded(50, 60.0)
    assert (budget.next.num_prompt_tokens, budget.next.num_patches) == (100, 50)


def test_images_that_take_half_the_step_make_prompts_wait() -> None:
    budget = StepBudget(0.25, 512, 1024)
    assert not budget.encoded(0, 1.0) and not budget.encoded(64, 0.1) and budget.encoded(256, 0.2)
    assert budget.next.num_patches == 192


@pytest.mark.parametrize("step_seconds", [1e-6, 10.0])
def test_steps_by_time_change_no_token(qwen3: Any, step_seconds: float) -> None:
    prompts = [prompt(length, seed) for seed, length in enumerate([3, 200, 70, 130])]
    expected = [greedy(qwen3, one, 12) for one in prompts]
    runner = new_runner(qwen3, step_seconds=step_seconds)
    requests = [new_request(one) for one in prompts]
    run(runner, requests, every=2)
    assert [tokens(request) for request in requests] == expected


def test_a_long_prompt_is_computed_in_chunks_of_the_time(qwen3: Any) -> None:
    sizes: list[int] = []
    embeddings = qwen3.get_input_embeddings()
    runner = new_runner(qwen3, step_seconds=1e-6)
    embeddings.register_forward_pre_hook(lambda module, given: sizes.append(given[0].shape[-1]))
    run(runner, [new_request(prompt(300, 1), max_tokens=2)])
    assert sizes == [48, 48, 48, 48, 48, 48, 12, 1]
