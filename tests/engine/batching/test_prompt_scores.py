"""The log probabilities of a prompt are those of one forward pass over it, however it is computed."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.engine.batching.families import FAMILIES
from tests.engine.batching.tiny import (
    Readers,
    new_model_of,
    new_request,
    new_runner,
    new_turn_runner,
    prompt,
    run,
    tokens,
)
from tis.engine.answer import Piece
from tis.engine.completion import Completion
from tis.engine.request import Request
from tis.engine.resumable_request import EmittedTokens

LENGTHS = [150, 1, 2, 64, 65, 129]


def scored_request(prompt_ids: list[int], num_top: int = 3, **params: Any) -> Request:
    plain = new_request(prompt_ids, **{"max_tokens": 6} | params)
    return Request(replace(plain.prepared, prompt_logprobs=num_top, is_raw=True))


def expected_scores(model: Any, prompt_ids: list[int]) -> Any:
    """To be called before a runner changes the attention of the model."""
    with torch.inference_mode():
        return torch.log_softmax(model(torch.tensor([prompt_ids])).logits[0].float(), -1)


def pieces_with_scores(readers: Readers, request: Request) -> list[Piece]:
    return [piece for piece in readers.of(request) if piece.prompt_logprobs]


def assert_scored(readers: Readers, request: Request, expected: Any, *, num_given: int = 0) -> None:
    pieces = pieces_with_scores(readers, request)
    made = [one for piece in pieces for one in piece.prompt_logprobs]
    ids = request.prompt_ids[num_given:]
    assert [one.token_id for one in made] == ids
    assert [len(piece.prompt_logprobs) for piece in pieces[:-1]] == [64] * (len(pieces) - 1)
    assert readers.of(request)[: len(pieces)] == pieces, "they come before the answer"
    for at, one in enumerate(made, num_given):
        if at:
            row = expected[at - 1]
            assert one.logprob == pytest.approx(float(row[one.token_id]), abs=2e-4)
            values, _ = torch.topk(row, len(one.top))
            assert [each.logprob for each in one.top] == pytest.approx(values.tolist(), abs=2e-4)
            assert [float(row[each.token_id]) for each in one.top] == pytest.approx(values.tolist(), abs=2e-4)


def test_prompts_of_all_lengths_in_one_batch(model: Any) -> None:
    prompts = [prompt(length, seed) for seed, length in enumerate(LENGTHS)]
    expected = [expected_scores(model, one) for one in prompts]
    requests = [scored_request(one) for one in prompts]
    plain = [new_request(prompt(40, 9), max_tokens=20), new_request(prompt(200, 10), max_tokens=5)]
    readers = run(new_runner(model, tokens_per_step=96), [plain[0], *requests, plain[1]], every=2)
    assert not readers.errors
    for request, scores in zip(requests, expected, strict=True):
        assert_scored(readers, request, scores)
    assert not any(pieces_with_scores(readers, request) for request in plain)


def test_a_cached_prefix_is_computed_once_more(qwen3: Any) -> None:
    shared = prompt(100, 1)
    expected = expected_scores(qwen3, shared + prompt(9, 2))
    runner = new_runner(qwen3)
    run(runner, [new_request(shared, max_tokens=4)])
    request = scored_request(shared + prompt(9, 2))
    readers = run(runner, [request])
    assert_scored(readers, request, expected)
    assert request.answer.cached_tokens == 0


def test_the_choices_of_a_prompt_share_its_scores_and_its_prefix(qwen3: Any) -> None:
    expected = expected_scores(qwen3, prompt(70, 1))
    request = scored_request(prompt(70, 1), n=3, temperature=1.0)
    readers = run(new_runner(qwen3), [request])
    assert {piece.choice for piece in pieces_with_scores(readers, request)} == {0}
    assert_scored(readers, request, expected)


def test_preempted_and_small_caches_score_each_token_once(qwen3: Any) -> None:
    prompts = [prompt(length, seed) for seed, length in enumerate([60, 80, 30])]
    expected = [expected_scores(qwen3, one) for one in prompts]
    runner = new_runner(qwen3, tokens=176, tokens_per_step=16)
    requests = [scored_request(one, max_tokens=40) for one in prompts]
    readers = run(runner, requests)
    assert runner.scheduler.num_preemptions > 0
    for request, scores in zip(requests, expected, strict=True):
        assert_scored(readers, request, scores)


def test_a_step_has_a_bounded_number_of_rows(qwen3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = new_runner(qwen3, tokens_per_step=1024)
    num_rows: list[int] = []
    whole = runner._logits

    def counting(inputs: Any, read: list[int], **more: Any) -> Any:
        num_rows.append(len(read))
        return whole(inputs, read, **more)

    monkeypatch.setattr(runner, "_logits", counting)
    run(runner, [scored_request(prompt(300, seed), max_tokens=1) for seed in range(3)])
    assert 100 < max(num_rows) <= 128 + 3


def test_a_request_that_is_resumed_gets_the_rest(qwen3: Any) -> None:
    expected = expected_scores(qwen3, prompt(150, 3))
    whole = scored_request(prompt(150, 3))
    run(new_runner(qwen3), [whole])
    for num_given in (64, 128, 150):
        [completion] = [Completion(0, whole.prepared)]
        completion.replay(EmittedTokens(num_scored=num_given))
        request = Request(whole.prepared, completions=[completion])
        readers = run(new_runner(qwen3), [request])
        if num_given < 150:
            assert_scored(readers, request, expected, num_given=num_given)
        else:
            assert not pieces_with_scores(readers, request)
        assert tokens(request) == tokens(whole)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["Mamba", "GPT2", "Jamba", "RecurrentGemma", "Qwen3", "Gemma2", "Zamba2"])
def test_models_whose_requests_take_turns(family: str) -> None:
    kind, sizes = FAMILIES[family]
    model = new_model_of(kind, **sizes)
    prompts = [prompt(length, seed) for seed, length in enumerate([150, 1, 20])]
    expected = [expected_scores(model, one) for one in prompts]
    requests = [scored_request(one) for one in prompts]
    readers = run(new_turn_runner(model), requests)
    assert not readers.errors
    for request, scores in zip(requests, expected, strict=True):
        assert_scored(readers, request, scores)
