"""Each request in a batch gets the answer that it gets alone, whatever happens to the others."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.engine.batching.tiny import (
    NumberTokenizer,
    Readers,
    alone,
    greedy,
    new_request,
    new_runner,
    prompt,
    run,
    tokens,
)
from tis.engine.batching.scheduler import Plan
from tis.engine.errors import ContextLengthExceeded
from tis.engine.request import Request
from tis.errors import GenerationFailed

pytestmark = pytest.mark.slow

PARAMETER_SETS: list[dict[str, Any]] = [
    {},
    {"temperature": 0.8},
    {"temperature": 1.5, "top_p": 0.7},
    {"temperature": 1.0, "top_k": 5},
    {"temperature": 1.0, "min_p": 0.1},
    {"temperature": 0.9, "top_k": 40, "top_p": 0.9, "min_p": 0.02},
    {"repetition_penalty": 1.8},
    {"presence_penalty": 1.5, "frequency_penalty": 0.5},
    {"logit_bias": {17: 6.0, 40: -100.0}, "temperature": 0.7},
    {"stop": (chr(ord("A") + 170), "no such text")},
    {"temperature": 1.2, "stop_token_ids": tuple(range(100, 180)), "min_tokens": 6},
    {"ignore_eos": False, "logit_bias": {2: 9.0}, "min_tokens": 4},
    {"top_logprobs": 5},
    {"temperature": 1.1, "top_logprobs": 0, "max_tokens": 3},
    {"n": 3, "temperature": 1.3, "top_logprobs": 2},
    {"max_tokens": 1},
]


def _requests(seed: int = 5) -> list[Request]:
    shared = prompt(13, 99)
    return [
        new_request((shared if at % 3 == 0 else []) + prompt(4 + 3 * at, at), seed + at, **params)
        for at, params in enumerate(PARAMETER_SETS)
    ]


def _answer(readers: Readers, request: Request) -> list[tuple[str, list[int], str | None]]:
    return [
        (readers.text(request, at), tokens(request, at), readers.finish(request, at))
        for at in range(len(request.completions))
    ]


def test_all_parameter_sets_in_one_batch_give_the_answers_of_each_alone(any_model: Any) -> None:
    runner = new_runner(any_model, tokens_per_step=24)
    together = _requests()
    readers = run(runner, together)
    assert not readers.errors
    finishes = set()
    for ours, lonely in zip(together, _requests(), strict=True):
        theirs = alone(any_model, lonely)
        assert _answer(readers, ours) == _answer(theirs, lonely), ours.prepared.params
        finishes.add(readers.finish(ours))
    assert finishes == {"stop", "length"}


def test_logprobs_are_those_of_the_request_alone(any_model: Any) -> None:
    runner = new_runner(any_model, tokens_per_step=9)
    together = [new_request(prompt(9 + 7 * at, at), top_logprobs=20, temperature=at % 2) for at in range(5)]
    readers = run(runner, together)
    for at, ours in enumerate(together):
        lonely = new_request(ours.prompt_ids, top_logprobs=20, temperature=at % 2)
        theirs = alone(any_model, lonely)
        for mine, other in zip(readers.of(ours), theirs.of(lonely), strict=True):
            [a], [b] = mine.logprobs, other.logprobs
            assert a.token_id == b.token_id and a.logprob == pytest.approx(b.logprob, abs=1e-4)
            assert [one.logprob for one in a.top] == pytest.approx([one.logprob for one in b.top], abs=1e-4)


def test_a_seed_gives_the_same_text_in_any_batch_and_after_preemption(any_model: Any) -> None:
    def asked() -> Request:
        return new_request(prompt(12, 1), seed=77, temperature=1.2, top_p=0.95, max_tokens=30)

    lonely = asked()
    alone(any_model, lonely)
    for company in range(3):
        runner = new_runner(any_model, tokens=96, tokens_per_step=8 + company)
        ours = asked()
        others = [new_request(prompt(20 + at, at), seed=at, temperature=0.9, max_tokens=25) for at in range(company)]
        run(runner, [*others, ours])
        assert tokens(ours) == tokens(lonely)
    assert runner.scheduler.num_preemptions > 0


def test_choices_of_a_prompt_differ_and_its_blocks_are_computed_once(qwen3: Any) -> None:
    runner = new_runner(qwen3)
    sizes: list[int] = []
    plan = runner.scheduler.plan

    def watched(max_prompt_tokens: int | None = None) -> Plan:
        planned = plan(max_prompt_tokens)
        sizes.extend(chunk.stop - chunk.start for chunk in planned.chunks)
        return planned

    runner.scheduler.plan = watched  # type: ignore[method-assign]
    request = new_request(prompt(41, 3), n=4, temperature=1.4, max_tokens=8)
    run(runner, [request])
    assert len({tuple(tokens(request, at)) for at in range(4)}) == 4
    assert sorted(sizes)[-2:] == [1, 41]
    assert request.answer.cached_tokens == 0


def test_a_cancelled_request_ends_at_the_next_step_and_the_others_continue(qwen3: Any) -> None:
    runner, readers = new_runner(qwen3, tokens_per_step=10), Readers()
    running, cancelled, waiting = (new_request(prompt(length, length), max_tokens=10) for length in (8, 9, 40))
    for request in (running, cancelled, waiting):
        runner.admit(request)
    for _ in range(3):
        runner.step(readers.hand_out)
    cancelled.cancel()
    waiting.cancel()
    runner.step(readers.hand_out)
    assert readers.finish(cancelled) == readers.finish(waiting) == "cancelled"
    assert runner.running == [running]
    while runner.running:
        runner.step(readers.hand_out)
    lonely = new_request(running.prompt_ids, max_tokens=10)
    alone(qwen3, lonely)
    assert tokens(running) == tokens(lonely)


class UndecodableTokenizer(NumberTokenizer):
    """Raises at the end of every text."""

    def flush(self) -> str:
        raise ValueError


def test_a_cancelled_request_that_cannot_finish_stays_running_so_that_it_gets_the_error(qwen3: Any) -> None:
    runner, readers = new_runner(qwen3), Readers()
    request = new_request(prompt(8, 1))
    request = Request(replace(request.prepared, tokenizer=UndecodableTokenizer()))
    runner.admit(request)
    runner.step(readers.hand_out)
    request.cancel()
    with pytest.raises(ValueError):
        runner.step(readers.hand_out)
    assert runner.running == [request]


def test_logits_that_are_nan_fail_only_their_own_request(qwen3: Any) -> None:
    poisoned = 305  # no other prompt has it
    with torch.no_grad():
        qwen3.model.embed_tokens.weight[poisoned] = math.nan
    runner = new_runner(qwen3)
    healthy = [new_request(prompt(10 + at, at)) for at in range(3)]
    sick = new_request([4, 5, poisoned])
    readers = run(runner, [healthy[0], sick, *healthy[1:]])
    assert isinstance(readers.errors[id(sick)], GenerationFailed) and len(readers.errors) == 1
    for ours in healthy:
        lonely = new_request(ours.prompt_ids)
        alone(qwen3, lonely)
        assert tokens(ours) == tokens(lonely)


def test_a_choice_that_cannot_be_sampled_fails_only_its_request(qwen3: Any, caplog: pytest.LogCaptureFixture) -> None:
    runner = new_runner(qwen3)
    fine, broken = new_request(prompt(9, 1)), new_request(prompt(9, 2), n=2, logit_bias={10**6: 1.0})
    readers = run(runner, [broken, fine])
    assert isinstance(readers.errors[id(broken)], GenerationFailed) and len(tokens(fine)) == 12
    assert "IndexError" in caplog.text


def test_a_request_that_can_never_fit_is_rejected(qwen3: Any) -> None:
    expected = greedy(qwen3, prompt(60, 1), 5)
    runner = new_runner(qwen3, tokens=64)
    with pytest.raises(ContextLengthExceeded, match="64 tokens"):
        runner.admit(new_request(prompt(60, 1), max_tokens=6))
    whole = new_request(prompt(60, 1), max_tokens=5)  # no place is needed for what comes last
    run(runner, [whole])
    assert tokens(whole) == expected
    assert not runner.running


def test_a_long_prompt_delays_other_requests_by_at_most_a_chunk(qwen3: Any) -> None:
    runner, readers = new_runner(qwen3, tokens_per_step=16), Readers()
    talking, long, short = (new_request(prompt(size, size), max_tokens=40) for size in (5, 200, 8))
    for request in (talking, long):
        runner.admit(request)
        runner.step(readers.hand_out)
    runner.admit(short)
    for _ in range(5):
        before = len(tokens(talking))
        runner.step(readers.hand_out)
        assert len(tokens(talking)) == before + 1
    assert tokens(short) and not tokens(long)


def test_a_step_that_samples_no_token_computes_no_head(any_model: Any) -> None:
    sizes: list[int] = []
    any_model.get_output_embeddings().register_forward_hook(lambda head, given, out: sizes.append(given[0].shape[-2]))
    request = new_request(prompt(40, 1), max_tokens=3)
    run(new_runner(any_model, tokens_per_step=16), [request])
    assert sizes == [1, 1, 1] and len(tokens(request)) == 3


def test_a_step_that_fails_for_all_fails_all_and_nothing_of_it_is_reused(
    qwen3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner, readers = new_runner(qwen3), Readers()
    request = new_request(prompt(20, 1))
    runner.admit(request)
    runner.step(readers.hand_out)
    monkeypatch.setattr(qwen3.get_decoder(), "forward", lambda *given, **named: 1 / 0)
    runner.step(readers.hand_out)
    assert runner.running == [] and isinstance(readers.errors[id(request)], GenerationFailed)
    monkeypatch.undo()
    again = new_request(request.prompt_ids)
    run(runner, [again])
    assert again.answer.cached_tokens == 16 and tokens(again)[:1] == tokens(request)  # of the step before


def test_when_the_worker_drops_everything_nothing_is_reused(qwen3: Any) -> None:
    runner = new_runner(qwen3)
    run(runner, [new_request(prompt(20, 1))])
    runner.admit(new_request(prompt(9, 2)))
    runner.drop_all()
    again = new_request(prompt(20, 1))
    run(runner, [again])
    assert runner.running == [] and again.answer.cached_tokens == 0 and len(tokens(again)) == 12


def test_a_full_runner_has_no_room(qwen3: Any) -> None:
    runner = new_runner(qwen3, max_running=2)
    for seed in range(2):
        assert runner.has_room
        runner.admit(new_request(prompt(5, seed)))
    assert not runner.has_room
