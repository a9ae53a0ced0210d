"""The tokens of every request in a mixed, staggered batch are those of model.generate() alone."""

from dataclasses import replace
from typing import Any

import pytest

from tests.engine.batching.tiny import greedy, new_request, new_runner, prompt, run, tokens
from tis.engine.batching.batch_runner import BatchRunner
from tis.engine.request import Request

LENGTHS = [3, 40, 17, 1, 26, 33]


def _expected(model: Any, prompts: list[list[int]], length: int = 16) -> list[list[int]]:
    return [greedy(model, one, length) for one in prompts]


def _made(runner: BatchRunner, prompts: list[list[int]], length: int = 16, every: int = 2) -> list[list[int]]:
    requests = [new_request(one, max_tokens=length) for one in prompts]
    readers = run(runner, requests, every=every)
    assert not readers.errors
    return [tokens(request) for request in requests]


def test_staggered_requests_get_the_tokens_of_generate(model: Any) -> None:
    prompts = [prompt(length, seed) for seed, length in enumerate(LENGTHS)]
    expected = _expected(model, prompts)
    assert min(len(set(answer)) for answer in expected) > 6, "repetitive answers would hide errors of the attention"
    assert _made(new_runner(model), prompts) == expected


def test_prompts_computed_in_chunks_give_the_same_tokens(model: Any) -> None:
    prompts = [prompt(length, seed) for seed, length in enumerate(LENGTHS)]
    expected = _expected(model, prompts)
    assert _made(new_runner(model, tokens_per_step=7), prompts) == expected


def test_a_prefix_cached_by_another_request_gives_the_same_tokens(model: Any) -> None:
    shared = prompt(30, 1)
    prompts = [shared + prompt(5, 2), shared + prompt(9, 3), shared[:22] + prompt(8, 4), shared]
    expected = _expected(model, prompts)
    runner = new_runner(model)
    requests = [new_request(one, max_tokens=16) for one in prompts]
    run(runner, requests, every=3)
    assert [tokens(request) for request in requests] == expected
    assert [request.answer.cached_tokens for request in requests] == [0, 28, 20, 28]


def test_preempted_requests_give_the_same_tokens(model: Any) -> None:
    prompts = [prompt(length, seed) for seed, length in enumerate([20, 24, 9, 30])]
    expected = _expected(model, prompts, 30)
    runner = new_runner(model, tokens=96, tokens_per_step=16)
    assert _made(runner, prompts, 30) == expected
    assert runner.scheduler.num_preemptions > 0


def test_the_next_turn_reuses_the_cached_answer(model: Any) -> None:
    first = prompt(21, 1)
    answer = greedy(model, first, 16)
    second = first + answer + prompt(6, 2)
    expected = greedy(model, second, 16)
    runner = new_runner(model)
    [made] = _made(runner, [first])
    assert made == answer
    request = new_request(second, max_tokens=16)
    run(runner, [request])
    assert tokens(request) == expected
    assert request.answer.cached_tokens == 36


def test_prefixes_are_shared_only_within_a_salt(qwen3: Any) -> None:
    """Whether a prefix is cached shows in the time to the first token: another owner must not learn it."""
    whole = prompt(32, 1)
    expected, runner = greedy(qwen3, whole, 16), new_runner(qwen3)
    cached = []
    for salt in ("owner:a", "owner:b", "owner:a", "salt:owner:a"):
        request = new_request(whole, max_tokens=16)
        request = Request(replace(request.prepared, cache_salt=salt))
        run(runner, [request])
        assert tokens(request) == expected
        cached.append(request.answer.cached_tokens)
    assert cached == [0, 0, 28, 0]


@pytest.mark.parametrize("every", [1, 5])
def test_the_order_of_arrival_changes_nothing(qwen3: Any, every: int) -> None:
    prompts = [prompt(length, seed) for seed, length in enumerate(LENGTHS)]
    expected = _expected(qwen3, prompts)
    made = _made(new_runner(qwen3, tokens_per_step=11), prompts[::-1], every=every)
    assert made == expected[::-1]


def test_the_last_block_of_a_fully_cached_prompt_is_computed_again(qwen3: Any) -> None:
    whole = prompt(32, 1)
    expected = greedy(qwen3, whole, 16)
    runner = new_runner(qwen3)
    for cached in (0, 28):
        request = new_request(whole, max_tokens=16)
        run(runner, [request])
        assert tokens(request) == expected and request.answer.cached_tokens == cached
