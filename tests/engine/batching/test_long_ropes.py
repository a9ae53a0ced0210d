"""Rotary embeddings that depend on lengths: the tokens are those of generate() on both sides of the border."""

from typing import Any

import pytest

from tests.engine.batching.test_lookup_exact import half_right, predicted
from tests.engine.batching.tiny import greedy, new_model_of, new_request, new_runner, prompt, run, tokens
from tests.engine.resuming import resumed
from tis.engine.batching.eligibility import why_not_batchable
from tis.engine.batching.long_ropes import RopeBorder, rope_borders
from tis.engine.kernels.native import native_kernels
from tis.engine.request import Request

pytestmark = pytest.mark.long

BORDER = 32
_LONGROPE: dict[str, Any] = {
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "original_max_position_embeddings": BORDER,
    "short_factor": [1.0] * 8,
    "long_factor": [1 + 0.7 * at for at in range(8)],
}
_DYNAMIC = {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 3.0}
KINDS: dict[str, tuple[str, dict[str, Any], RopeBorder]] = {
    "keys stay": ("Llama", {"rope_parameters": _LONGROPE}, RopeBorder(BORDER, grows=False, recomputes=False)),
    "keys are computed again": (
        "Phi3",
        {"rope_parameters": _LONGROPE, "original_max_position_embeddings": BORDER, "sliding_window": 45},
        RopeBorder(BORDER, grows=False, recomputes=True),
    ),
    "with scales of its own": (
        "Phimoe",
        {
            "rope_parameters": {**_LONGROPE, "short_mscale": 1.1, "long_mscale": 1.3},
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
        },
        RopeBorder(BORDER, grows=False, recomputes=True),
    ),
    "factors of every length": (
        "Llama",
        {"rope_parameters": _DYNAMIC, "max_position_embeddings": BORDER},
        RopeBorder(BORDER, grows=True, recomputes=False),
    ),
}
# Shorter than the border with their answers, growing past it, at it, behind it.
LENGTHS = (3, 20, 29, 31, 32, 33, 40, 60)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def new(kind: str) -> Any:
    family, config, _ = KINDS[kind]
    return new_model_of(family, **config)


def expected_of(kind: str, prompts: list[list[int]], length: int) -> list[list[int]]:
    """Each by a model that has seen nothing else: `dynamic` remembers the longest sequence."""
    return [greedy(new(kind), one, length) for one in prompts]


@pytest.mark.parametrize("options", [{}, {"tokens_per_step": 7}, {"kernels": native_kernels()}])
def test_sequences_on_both_sides_of_the_border_share_a_step(kind: str, options: dict[str, Any]) -> None:
    prompts = [prompt(length, seed) for seed, length in enumerate(LENGTHS)]
    expected = expected_of(kind, prompts, 16)
    requests = [new_request(one, max_tokens=16) for one in prompts]
    assert not run(new_runner(new(kind), **options), requests, every=2).errors
    assert [tokens(request) for request in requests] == expected


def test_preempted_sequences_have_the_factors_that_they_had(kind: str) -> None:
    prompts = [prompt(length, seed) for seed, length in enumerate((20, 24, 9, 30))]
    expected = expected_of(kind, prompts, 30)
    runner = new_runner(new(kind), tokens=108, tokens_per_step=16)
    requests = [new_request(one, max_tokens=30) for one in prompts]
    run(runner, requests, every=2)
    assert [tokens(request) for request in requests] == expected
    assert runner.scheduler.num_preemptions > 0


def test_keys_of_other_factors_are_no_cached_prefix(kind: str) -> None:
    shared = prompt(28, 1)
    prompts = [shared, shared + prompt(12, 2), shared + prompt(20, 3), shared + prompt(1, 4)]
    expected = expected_of(kind, prompts, 3)
    runner = new_runner(new(kind))
    requests = [new_request(one, max_tokens=3) for one in prompts]
    for request in requests:
        run(runner, [request])
    assert [tokens(request) for request in requests] == expected
    behind = 0 if KINDS[kind][2].grows else 28
    assert [request.answer.cached_tokens for request in requests] == [0, 0, behind, 28]


def test_drafts_across_the_border_change_nothing(kind: str) -> None:
    prompts = [prompt(20, 1), prompt(29, 2), prompt(40, 3)]
    expected = expected_of(kind, prompts, 24)
    runner = new_runner(new(kind))
    for predictions in (expected, [half_right(one) for one in expected]):
        requests = [
            predicted(new_request(one, max_tokens=24), ids) for one, ids in zip(prompts, predictions, strict=True)
        ]
        run(runner, requests)
        assert [tokens(request) for request in requests] == expected


def test_the_next_turn_behind_the_border_is_right(kind: str) -> None:
    first = prompt(24, 1)
    [answer] = expected_of(kind, [first], 16)
    second = first + answer + prompt(6, 2)
    [expected] = expected_of(kind, [second], 16)
    runner = new_runner(new(kind))
    for ids, wanted in ((first, answer), (second, expected)):
        request = new_request(ids, max_tokens=16)
        run(runner, [request])
        assert tokens(request) == wanted


def test_an_answer_is_resumed_on_either_side_of_the_border(kind: str) -> None:
    whole = new_request(prompt(26, 1), max_tokens=16)
    pieces = run(new_runner(new(kind)), [whole]).of(whole)
    assert [tokens(whole)] == expected_of(kind, [prompt(26, 1)], 16)
    for shown in (3, 6, 7, 12):
        rest = resumed(whole.prepared, pieces[:shown])
        run(new_runner(new(kind)), [rest])
        assert tokens(rest) == tokens(whole)


def test_several_choices_grow_past_the_border(kind: str) -> None:
    runner = new_runner(new(kind))
    request: Request = new_request(prompt(26, 1), max_tokens=16, n=3, temperature=0.8)
    run(runner, [request])
    alone = new_request(prompt(26, 1), max_tokens=16, n=3, temperature=0.8)
    run(new_runner(new(kind), tokens_per_step=5, draft_width=0), [alone])
    assert [tokens(request, at) for at in range(3)] == [tokens(alone, at) for at in range(3)]


def test_the_model_says_where_its_border_is_and_what_happens_there(kind: str) -> None:
    assert rope_borders(new(kind)) == {KINDS[kind][2]} and why_not_batchable(new(kind)) is None
    assert rope_borders(new_model_of("Llama")) == set()
