"""Prompt lookup changes no answer: with drafts that are right, half right and wrong, the pieces are the same."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.engine.batching import grammars
from tests.engine.batching.test_grammars import CARD
from tests.engine.batching.test_resumed import CASES, asked
from tests.engine.batching.tiny import greedy, new_request, new_runner, prompt, run, tokens
from tests.engine.batching.tiny_vision import VisionPrompt, new_vision_model
from tests.engine.resuming import assert_same, resumed, through_json
from tis.engine.answer import Piece
from tis.engine.batching.batch_runner import BatchRunner
from tis.engine.batching.lookup import DRAFT_WIDTH
from tis.engine.request import Request
from tis.observability.metrics import ACCEPTED_DRAFT_TOKENS, DRAFT_TOKENS

pytestmark = pytest.mark.slow


def counts() -> tuple[float, float]:
    return DRAFT_TOKENS.labels("prompt_lookup")._value.get(), ACCEPTED_DRAFT_TOKENS.labels("prompt_lookup")._value.get()


def half_right(token_ids: Sequence[int]) -> list[int]:
    """A prediction with wrong, missing and additional tokens."""
    ids = [99 if at % 7 == 5 else token_id for at, token_id in enumerate(token_ids)]
    return [*ids[:9], *ids[10:14], 77, 78, *ids[14:]]


def predicted(request: Request, prediction_ids: Sequence[int]) -> Request:
    return Request(replace(request.prepared, prediction_ids=list(prediction_ids)))


def num_steps(runner: BatchRunner, request: Request) -> tuple[int, list[Piece]]:
    steps = 0
    pieces: list[Piece] = []
    runner.admit(request)
    while runner.running:
        runner.step(lambda deliveries: pieces.extend(item for _, item in deliveries if isinstance(item, Piece)))
        steps += 1
    return steps, pieces


def test_the_tokens_are_those_of_generate(model: Any) -> None:
    prompts = [prompt(length, seed) for seed, length in enumerate([3, 40, 17])]
    expected = [greedy(model, one, 24) for one in prompts]
    runner = new_runner(model)
    requests = [
        predicted(new_request(one, max_tokens=24), ids)
        for one, ids in zip(prompts, (expected[0], half_right(expected[1]), expected[1]), strict=True)
    ]
    before = counts()
    run(runner, requests, every=2)
    assert [tokens(request) for request in requests] == expected
    assert counts()[1] - before[1] > 20


def test_a_right_prediction_takes_a_fraction_of_the_steps(qwen3: Any) -> None:
    ids = greedy(qwen3, prompt(9, 1), 40)
    off, _ = num_steps(new_runner(qwen3, draft_width=0), predicted(new_request(prompt(9, 1), max_tokens=40), ids))
    on, _ = num_steps(new_runner(qwen3), predicted(new_request(prompt(9, 1), max_tokens=40), ids))
    assert (off, on <= 8) == (40, True)


@pytest.mark.parametrize("case", CASES)
def test_every_kind_of_request_has_the_same_pieces(qwen3: Any, case: str) -> None:
    plain = asked(case, max_tokens=24)
    whole = run(new_runner(qwen3, draft_width=0), [plain]).of(plain)
    ids = max((one.token_ids for one in plain.completions), key=len)
    n = plain.prepared.params.n
    predictions = (ids, half_right(ids))
    before = counts()
    for prediction in predictions:
        request = predicted(asked(case, max_tokens=24), prediction)
        assert_same(run(new_runner(qwen3), [request]).of(request), whole, n)
    assert counts()[1] > before[1]
    # Cut where a step of several tokens was handed out in part, and with the request as a store has it.
    again = predicted(asked(case, max_tokens=24), ids).prepared
    saved = through_json(again.resumable)
    assert saved.prediction_ids == ids
    for shown in (whole[:3], whole[: len(whole) // 2]):
        rest = resumed(replace(again, prediction_ids=saved.prediction_ids), shown)
        assert_same([*shown, *run(new_runner(qwen3), [rest]).of(rest)], whole, n)


def test_a_full_cache_preempts_and_gives_the_same_tokens(qwen3: Any) -> None:
    prompts = [prompt(length, seed) for seed, length in enumerate([20, 24, 9, 30])]
    expected = [greedy(qwen3, one, 30) for one in prompts]
    runner = new_runner(qwen3, tokens=96, tokens_per_step=24)
    requests = [
        predicted(new_request(one, max_tokens=30), half_right(ids)) for one, ids in zip(prompts, expected, strict=True)
    ]
    before = counts()
    run(runner, requests)
    assert [tokens(request) for request in requests] == expected
    assert runner.scheduler.num_preemptions > 0 and counts()[1] > before[1]


def test_the_next_turn_reuses_what_was_drafted(qwen3: Any) -> None:
    first = prompt(21, 1)
    answer = greedy(qwen3, first, 16)
    question = prompt(7, 2)
    expected = greedy(qwen3, first + answer + question, 16)
    runner = new_runner(qwen3)
    run(runner, [predicted(new_request(first, max_tokens=16), half_right(answer))])
    again = new_request(first + answer + question)
    run(runner, [again])
    assert tokens(again) == expected[:12]
    assert again.answer.cached_tokens >= 32


def test_a_request_that_is_cancelled_between_drafts_ends(qwen3: Any) -> None:
    ids = greedy(qwen3, prompt(9, 1), 40)
    request = predicted(new_request(prompt(9, 1), max_tokens=40), ids)
    runner = new_runner(qwen3)
    runner.admit(request)
    pieces: list[Piece] = []
    for _ in range(3):
        runner.step(lambda deliveries: pieces.extend(item for _, item in deliveries if isinstance(item, Piece)))
    request.cancel()
    runner.step(lambda deliveries: pieces.extend(item for _, item in deliveries if isinstance(item, Piece)))
    made = [token_id for piece in pieces for token_id in piece.token_ids]
    assert pieces[-1].finish == "cancelled" and 3 < len(made) < 40 and made == ids[: len(made)]
    assert runner.scheduler._pool.num_free == runner.scheduler._pool.num_blocks


def test_logits_that_cannot_be_sampled_behind_a_draft_are_computed_again(
    qwen3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tokens that were accepted before stand."""
    ids = greedy(qwen3, prompt(9, 1), 30)

    def no_memory(tensors: list[Any]) -> Any:
        raise RuntimeError("out of memory")

    monkeypatch.setattr("tis.engine.batching.picked_row.torch.stack", no_memory)
    request = predicted(new_request(prompt(9, 1), max_tokens=30), ids)
    run(new_runner(qwen3), [request])
    assert tokens(request) == ids


def test_a_grammar_allows_the_same_tokens_and_forces_the_same() -> None:
    """Drafts of JSON that the grammar forbids, too: names of other properties, and text behind its end."""
    form = grammars.schema(CARD)
    plain = grammars.new_request(form, temperature=1.0, max_tokens=300)
    whole = run(grammars.new_runner(draft_width=0), [plain]).of(plain)
    [ids] = [one.token_ids for one in plain.completions]
    wrong = grammars.tokenizer().encode_text('{"nama": "Sari", "alamat": "Jalan"} and more')
    before = counts()
    for prediction in (ids, half_right(ids), [*wrong, *ids[4:]]):
        request = predicted(grammars.new_request(form, temperature=1.0, max_tokens=300), prediction)
        assert_same(run(grammars.new_runner(draft_width=DRAFT_WIDTH), [request]).of(request), whole)
    assert counts()[1] - before[1] > 20


def test_a_budget_of_reasoning_ends_it_at_the_same_token() -> None:
    opening = grammars.tokenizer().reasoning_tokens
    assert opening
    limits: dict[str, Any] = {"temperature": 1.0, "max_tokens": 60, "thinking_budget": 20}
    plain = grammars.new_request(None, **limits)
    plain = Request(grammars.with_thinking(replace(plain.prepared, prompt_ids=[*plain.prompt_ids, opening.open_id])))
    whole = run(grammars.new_runner(draft_width=0), [plain]).of(plain)
    ids = plain.completions[0].token_ids
    assert opening.close_id in ids
    without_end = [token_id for token_id in ids if token_id != opening.close_id]
    for prediction in (ids, without_end):
        request = predicted(Request(plain.prepared), prediction)
        assert_same(run(grammars.new_runner(draft_width=DRAFT_WIDTH), [request]).of(request), whole)


def test_a_question_about_an_image_has_the_tokens_of_generate() -> None:
    seen = VisionPrompt(new_vision_model("qwen3_vl")).text(5, 1).picture(4, 4, 1).text(6, 2)
    expected = seen.greedy(24)
    before = counts()
    for prediction in (expected, half_right(expected)):
        request = predicted(seen.request(max_tokens=24), prediction)
        run(new_runner(seen.model), [request])
        assert tokens(request) == expected
    assert counts()[1] - before[1] > 20
