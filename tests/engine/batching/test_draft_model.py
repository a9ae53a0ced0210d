"""A draft model changes no answer: with drafts that are right, half right and wrong, the pieces are the same."""

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.engine.batching import grammars
from tests.engine.batching.drafts import counts, draft_model_of, drafting_runner, nearly
from tests.engine.batching.test_grammars import CARD
from tests.engine.batching.test_lookup_exact import half_right, num_steps, predicted
from tests.engine.batching.test_resumed import CASES, asked
from tests.engine.batching.tiny import (
    Readers,
    greedy,
    new_model,
    new_model_of,
    new_request,
    new_runner,
    prompt,
    run,
    tokens,
)
from tests.engine.batching.tiny_vision import VisionPrompt, new_vision_model
from tests.engine.resuming import assert_same, resumed
from tests.faults.forms import short_or_long
from tis.engine.answer import Piece
from tis.engine.batching.batch_runner import BatchRunner
from tis.engine.request import Request

pytestmark = [pytest.mark.slow, pytest.mark.long]


@pytest.fixture(autouse=True)
def nothing_fails(request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A failure of the draft model fails no request, so it would be seen by nobody."""
    yield
    if "failure" not in request.node.name:
        assert not [one for one in caplog.get_records("call") if "nothing is drafted" in one.getMessage()]


def assert_all_free(runner: BatchRunner) -> None:
    draft = draft_model_of(runner)
    assert draft.num_free_blocks == draft._pool.num_blocks and not draft._rows


def test_the_tokens_are_those_of_generate(model: Any) -> None:
    """In rows that begin one after the other, some with prompt lookup, some with the model, some with neither."""
    prompts = [prompt(length, seed) for seed, length in enumerate([3, 90, 17, 40])]
    expected = [greedy(model, one, 24) for one in prompts]
    small = nearly(model)
    runner = drafting_runner(model, small, looks_up=True, tokens_per_step=48)
    requests = [new_request(one, max_tokens=24) for one in prompts]
    requests[2] = predicted(requests[2], half_right(expected[2]))
    before, before_lookup = counts(), counts("prompt_lookup")
    run(runner, requests, every=2)
    assert [tokens(request) for request in requests] == expected
    assert counts()[1] > before[1] and counts("prompt_lookup")[1] > before_lookup[1]
    assert_all_free(runner)


def test_of_the_model_itself_every_draft_is_right(qwen3: Any) -> None:
    ids = greedy(qwen3, prompt(9, 1), 40)
    request, before = new_request(prompt(9, 1), max_tokens=40), counts()
    steps, _ = num_steps(drafting_runner(qwen3, qwen3), request)
    drafted, accepted = (now - then for now, then in zip(counts(), before, strict=True))
    assert tokens(request) == ids
    # The first token, then six at a time: five drafted and the one behind them.
    assert steps == 8 and drafted == accepted == 32


def test_sampled_answers_are_foretold_by_the_same_noise(qwen3: Any) -> None:
    def ask() -> Request:
        return new_request(prompt(9, 1), max_tokens=60, temperature=1.0, top_p=0.95)

    plain, drafted = ask(), ask()
    run(new_runner(qwen3, draft_width=0), [plain])
    before = counts()
    run(drafting_runner(qwen3, qwen3), [drafted])
    assert tokens(drafted) == tokens(plain)
    assert counts()[0] - before[0] == counts()[1] - before[1] > 40


@pytest.mark.parametrize("case", CASES)
def test_every_kind_of_request_has_the_same_pieces(qwen3: Any, case: str) -> None:
    plain = asked(case, max_tokens=24)
    whole = run(new_runner(qwen3, draft_width=0), [plain]).of(plain)
    n = plain.prepared.params.n
    before = counts()
    small = nearly(qwen3, 0.01)
    for other in (qwen3, small):
        request = asked(case, max_tokens=24)
        assert_same(run(drafting_runner(qwen3, other), [request]).of(request), whole, n)
    assert counts()[1] > before[1]
    for shown in (whole[:3], whole[: len(whole) // 2]):
        rest = resumed(plain.prepared, shown)
        assert_same([*shown, *run(drafting_runner(qwen3, small), [rest]).of(rest)], whole, n)


def test_a_model_that_is_always_wrong_costs_what_it_drafts_and_no_more(qwen3: Any) -> None:
    ids = greedy(qwen3, prompt(9, 1), 40)
    request, before = new_request(prompt(9, 1), max_tokens=40), counts()
    steps, _ = num_steps(drafting_runner(qwen3, new_model("llama"), length=3), request)
    assert tokens(request) == ids and steps == 40
    assert counts()[1] == before[1] and counts()[0] - before[0] <= 3 * 39


def test_a_full_cache_preempts_and_gives_the_same_tokens(qwen3: Any) -> None:
    prompts = [prompt(length, seed) for seed, length in enumerate([20, 24, 9, 30])]
    expected = [greedy(qwen3, one, 30) for one in prompts]
    runner = drafting_runner(qwen3, nearly(qwen3), tokens=96, tokens_per_step=24)
    requests = [new_request(one, max_tokens=30) for one in prompts]
    before = counts()
    run(runner, requests)
    assert [tokens(request) for request in requests] == expected
    assert runner.scheduler.num_preemptions > 0 and counts()[1] > before[1]
    assert_all_free(runner)


@pytest.mark.parametrize("draft_tokens", [0, 40, 64])
def test_rows_without_room_in_the_cache_of_drafts_have_none(qwen3: Any, draft_tokens: int) -> None:
    prompts = [prompt(length, seed) for seed, length in enumerate([20, 24, 9, 30])]
    expected = [greedy(qwen3, one, 30) for one in prompts]
    runner = drafting_runner(qwen3, qwen3, draft_tokens=draft_tokens)
    requests = [new_request(one, max_tokens=30) for one in prompts]
    before = counts()
    run(runner, requests, every=3)
    assert [tokens(request) for request in requests] == expected
    assert (counts()[0] > before[0]) == (draft_tokens > 0)
    assert_all_free(runner)


def test_behind_a_shorter_context_nothing_is_drafted(qwen3: Any) -> None:
    ids = greedy(qwen3, prompt(20, 1), 40)
    request, before = new_request(prompt(20, 1), max_tokens=40), counts()
    run(drafting_runner(qwen3, qwen3, context_length=32), [request])
    assert tokens(request) == ids
    assert 8 <= counts()[0] - before[0] <= 12


@pytest.mark.parametrize("vocabulary", [300, 352])
def test_embeddings_may_be_padded_to_another_length(qwen3: Any, vocabulary: int) -> None:
    small = new_model_of("Llama", vocab_size=vocabulary)
    expected = [greedy(qwen3, prompt(9, seed), 30) for seed in range(2)]
    requests = [new_request(prompt(9, seed), max_tokens=30) for seed in range(2)]
    before = counts()
    run(drafting_runner(qwen3, small), requests)
    assert [tokens(request) for request in requests] == expected and counts()[0] > before[0]


def test_the_next_turn_reuses_what_the_draft_model_computed(qwen3: Any) -> None:
    first, question = prompt(21, 1), prompt(7, 2)
    runner = drafting_runner(qwen3, qwen3)
    one = new_request(first, max_tokens=16)
    run(runner, [one])
    second = [*first, *tokens(one), *question]
    expected = greedy(new_model("qwen3"), second, 12)
    again = new_request(second)
    runner.admit(again)
    runner.step(lambda deliveries: None)
    runner.step(lambda deliveries: None)
    [row] = draft_model_of(runner)._rows.values()
    assert row.num_cached_blocks >= 8
    run(runner, [])
    assert tokens(again) == expected


def test_a_long_prompt_is_computed_in_parts(qwen3: Any) -> None:
    ids = greedy(qwen3, prompt(200, 1), 30)
    request, before = new_request(prompt(200, 1), max_tokens=30), counts()
    run(drafting_runner(qwen3, qwen3, tokens_per_step=32), [request])
    assert tokens(request) == ids and counts()[1] > before[1]


def test_a_long_prompt_that_the_cache_has_is_not_computed_again(qwen3: Any) -> None:
    ids = greedy(qwen3, prompt(200, 1), 30)
    runner = drafting_runner(qwen3, qwen3)
    for _ in range(2):
        request, before = new_request(prompt(200, 1), max_tokens=30), counts()
        run(runner, [request])
        assert tokens(request) == ids and counts()[1] > before[1] + 15


def test_a_request_that_is_cancelled_between_drafts_ends(qwen3: Any) -> None:
    ids = greedy(qwen3, prompt(9, 1), 40)
    request = new_request(prompt(9, 1), max_tokens=40)
    runner = drafting_runner(qwen3, qwen3)
    runner.admit(request)
    pieces: list[Piece] = []
    for at in range(4):
        if at == 3:
            request.cancel()
        runner.step(lambda deliveries: pieces.extend(item for _, item in deliveries if isinstance(item, Piece)))
    made = [token_id for piece in pieces for token_id in piece.token_ids]
    assert pieces[-1].finish == "cancelled" and 3 < len(made) < 40 and made == ids[: len(made)]
    assert_all_free(runner)


def test_a_failure_costs_drafts_and_no_request(
    qwen3: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ids = greedy(qwen3, prompt(9, 1), 30)
    small, request = nearly(qwen3), new_request(prompt(9, 1), max_tokens=30)
    runner = drafting_runner(qwen3, small)
    runner.admit(request)
    for _ in range(3):
        runner.step(lambda deliveries: None)

    def fail(*args: Any, **named: Any) -> None:
        raise RuntimeError("an injected fault")

    monkeypatch.setattr(small, "forward", fail)
    run(runner, [])
    assert tokens(request) == ids
    assert sum("an injected fault" in message for message in caplog.messages) == 1  # it is not tried at every step
    assert_all_free(runner)


def test_a_grammar_allows_the_same_tokens_and_forces_the_same() -> None:
    form = grammars.schema(CARD)
    plain = grammars.new_request(form, temperature=1.0, max_tokens=300)
    whole = run(grammars.new_runner(draft_width=0), [plain]).of(plain)
    before = counts()
    for small in (grammars.model(), nearly(grammars.model())):
        request = grammars.new_request(form, temperature=1.0, max_tokens=300)
        runner = drafting_runner(
            grammars.model(), small, tokens=4096, block_size=16, context_length=4096, tokenizer=grammars.tokenizer()
        )
        assert_same(run(runner, [request]).of(request), whole)
    assert counts()[1] > before[1]


def test_log_probabilities_of_a_prompt_come_beside_drafts(qwen3: Any) -> None:
    def ask() -> Request:
        plain = new_request(prompt(70, 1), max_tokens=12, top_logprobs=2)
        return Request(replace(plain.prepared, prompt_logprobs=1, is_raw=True))

    plain, drafted = ask(), ask()
    whole = run(new_runner(qwen3, draft_width=0), [plain]).of(plain)
    before = counts()
    assert_same(run(drafting_runner(qwen3, qwen3), [drafted]).of(drafted), whole)
    assert counts()[1] > before[1]


def test_a_question_about_an_image_has_no_drafts_and_others_beside_it_have() -> None:
    seen = VisionPrompt(new_vision_model("qwen3_vl")).text(5, 1).picture(4, 4, 1).text(6, 2)
    expected = seen.greedy(24)
    ids = greedy(seen.model, prompt(9, 1), 24)
    shown, plain, before = seen.request(max_tokens=24), new_request(prompt(9, 1), max_tokens=24), counts()
    runner = drafting_runner(seen.model, new_model("qwen3"))
    run(runner, [shown])
    assert tokens(shown) == expected and counts() == before
    run(runner, [plain])
    assert tokens(plain) == ids and counts()[0] > before[0]


@pytest.mark.parametrize("seed", range(short_or_long(4, 60)))
def test_random_days(qwen3: Any, seed: int) -> None:
    """Caches of any size, steps of any width, shared beginnings, requests that go, drafts that are mostly right."""
    chance = random.Random(seed)
    shared = prompt(40, 99)
    asked = []
    for number in range(10):
        ids = shared[: chance.choice([0, 0, 16, 40])] + prompt(chance.randint(1, 90), 100 * seed + number)
        sampled = {"temperature": 1.0} if number % 2 else {}
        asked.append(new_request(ids, seed=number, **{"max_tokens": chance.randint(1, 40), **sampled}))
    small = nearly(qwen3)
    plain = [Request(one.prepared) for one in asked]
    run(new_runner(qwen3, draft_width=0), plain)
    runner = drafting_runner(
        qwen3,
        small,
        tokens=chance.choice([176, 240, 1024]),
        draft_tokens=chance.choice([64, 160, 1024]),
        tokens_per_step=chance.choice([24, 64, 512]),
        length=chance.choice([1, 4, 8]),
        context_length=chance.choice([70, 512]),
        looks_up=chance.random() < 0.5,
    )
    leaving = chance.sample(asked, 2)
    readers, waiting, steps = Readers(), list(asked), 0
    while waiting or runner.running:
        if waiting and runner.has_room and chance.random() < 0.6:
            runner.admit(waiting.pop(0))
        if steps == 12:
            for one in leaving:
                one.cancel()
        runner.step(readers.hand_out)
        steps += 1
        assert steps < 3000
    assert not readers.errors
    for one, expected in zip(asked, plain, strict=True):
        made = tokens(one)
        assert made == tokens(expected) or (one in leaving and made == tokens(expected)[: len(made)])
    assert_all_free(runner)
