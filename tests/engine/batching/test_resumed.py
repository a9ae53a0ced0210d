"""An answer cut at any piece resumes in another runner, with exactly the pieces that it would have had."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.engine.batching.tiny import NumberTokenizer, alone, new_request, new_runner, prompt, run
from tests.engine.resuming import assert_same, emitted_tokens, resumed
from tis.engine.answer import Piece
from tis.engine.prepared_request import PreparedRequest
from tis.engine.request import Request
from tis.engine.text.detokenizer import ByteDetokenizer, Detokenizer

pytestmark = pytest.mark.slow

# Characters are split across tokens, and a token can end one character and begin the next.
_FRAGMENTS = [b"a", b"\xf0\x9f", b"\x98\x80", b"\x98\x80b\xf0\x9f"]

CASES: dict[str, dict[str, Any]] = {
    "greedy": {},
    "sampled": {"temperature": 1.2, "top_p": 0.95},
    "penalties": {"temperature": 0.9, "repetition_penalty": 1.5, "presence_penalty": 0.8, "frequency_penalty": 0.6},
    "greedy penalties": {"repetition_penalty": 1.3, "frequency_penalty": 1.0},
    "stop strings": {"temperature": 1.1, "stop": ("\U0001f600b\U0001f600b", "aa\U0001f600x", "\ufffda\ufffdb")},
    "delayed text": {"temperature": 1.1, "stop": ("\ufffdx", "\ufffda\ufffd\ufffdx", "\U0001f600\U0001f600x")},
    "stop tokens": {"temperature": 1.2, "stop_token_ids": tuple(range(100, 180)), "min_tokens": 6},
    "an end": {"temperature": 1.0, "ignore_eos": False, "logit_bias": {2: 4.0}, "min_tokens": 4},
    "logprobs": {"temperature": 1.0, "top_logprobs": 3},
    "choices": {"temperature": 1.3, "n": 3, "stop_token_ids": tuple(range(100, 120)), "top_logprobs": 0},
}


class FragmentTokenizer(NumberTokenizer):
    def token_bytes(self, token_id: int) -> bytes:
        return _FRAGMENTS[token_id % len(_FRAGMENTS)]

    def new_detokenizer(self) -> Detokenizer:  # type: ignore[override]
        return ByteDetokenizer({token_id: self.token_bytes(token_id) for token_id in range(self.vocabulary_size)})


def asked(case: str, seed: int = 11, max_tokens: int = 16) -> Request:
    request = new_request(prompt(13, 3), seed, **{"max_tokens": max_tokens, **CASES[case]})
    return Request(replace(request.prepared, tokenizer=FragmentTokenizer()))


def cuts(whole: Sequence[Piece], n: int) -> list[list[Piece]]:
    """Cuts at every piece, and for several choices also at another piece of each."""
    found = [list(whole[:at]) for at in range(len(whole))]
    chance = random.Random(len(whole))
    for _ in range(6 if n > 1 else 0):
        kept = [chance.randrange(20) for _ in range(n)]
        cut = [piece for at in range(n) for piece in [one for one in whole if one.choice == at][: kept[at]]]
        if len(cut) < len(whole):
            found.append(cut)
    return found


def check(whole: Sequence[Piece], prepared: PreparedRequest, shown: Sequence[Piece], rest: Sequence[Piece]) -> None:
    assert_same([*shown, *rest], whole, prepared.params.n)


def test_every_cut_of_every_answer_resumes_identically_in_one_batch(any_model: Any) -> None:
    answers = [(request, run(new_runner(any_model), [request]).of(request)) for request in map(asked, CASES)]
    parts = [
        (request.prepared, whole, shown, resumed(request.prepared, shown))
        for request, whole in answers
        for shown in cuts(whole, request.prepared.params.n)
    ]
    random.Random(1).shuffle(parts)
    company = [new_request(prompt(4 + 9 * at, at), max_tokens=20) for at in range(4)]
    together = [part[3] for part in parts]
    readers = run(new_runner(any_model, tokens=8192, tokens_per_step=200), [*company[:2], *together, *company[2:]])
    assert not readers.errors
    for prepared, whole, shown, request in parts:
        check(whole, prepared, shown, readers.of(request))
    assert [len(readers.of(request)) for request in company] == [20] * 4


def test_the_cases_cover_what_they_should(qwen3: Any) -> None:
    """A seed that gives repetitive answers would prove nothing."""
    whole = {case: run(new_runner(qwen3), [request]).of(request) for case in CASES if (request := asked(case))}
    assert {pieces[-1].finish for pieces in whole.values()} == {"stop", "length"}
    assert "\U0001f600" in "".join(piece.text for pieces in whole.values() for piece in pieces)
    assert any(len(piece.token_ids) > 1 for piece in whole["greedy"])
    finished = [at for at, piece in enumerate(whole["choices"]) if piece.finish]
    assert finished[0] < len(whole["choices"]) - 3


@pytest.mark.parametrize("case", CASES)
def test_an_answer_begun_in_turns_resumes_there_and_in_a_batch(qwen3: Any, case: str) -> None:
    request = asked(case)
    whole, n = alone(qwen3, request).of(request), request.prepared.params.n
    for shown in cuts(whole, n):
        again = resumed(request.prepared, shown)
        check(whole, request.prepared, shown, alone(qwen3, again).of(again))
    parts = [(shown, resumed(request.prepared, shown)) for shown in cuts(whole, n)]
    readers = run(new_runner(qwen3), [again for _, again in parts], every=2)
    for shown, again in parts:
        check(whole, request.prepared, shown, readers.of(again))


def test_a_resumed_answer_may_be_preempted_and_interrupted_again(qwen3: Any) -> None:
    runner = new_runner(qwen3, tokens=112, tokens_per_step=16)
    first = [asked("sampled", seed, max_tokens=40) for seed in range(4)]
    wholes = [run(new_runner(qwen3), [request]).of(request) for request in first]
    second = [resumed(request.prepared, whole[:6]) for request, whole in zip(first, wholes, strict=True)]
    readers = run(runner, second)
    assert runner.scheduler.num_preemptions > 0
    for request, whole, again in zip(first, wholes, second, strict=True):
        rest = readers.of(again)
        check(whole, request.prepared, whole[:6], rest)
        third = resumed(request.prepared, [*whole[:6], *rest[:5]])
        check(whole, request.prepared, whole[:11], run(new_runner(qwen3), [third]).of(third))


def test_the_cached_tokens_of_a_resumed_answer_are_of_its_prompt(qwen3: Any) -> None:
    request = asked("greedy")
    runner = new_runner(qwen3)
    whole = run(runner, [request]).of(request)
    same_runner, other_runner = (resumed(request.prepared, whole[:-1]) for _ in range(2))
    run(runner, [same_runner])
    run(new_runner(qwen3), [other_runner])
    assert same_runner.answer.cached_tokens == len(request.prompt_ids) == 13
    assert other_runner.answer.cached_tokens == 0


def test_a_finished_choice_takes_no_room(qwen3: Any) -> None:
    request = asked("choices")
    whole = alone(qwen3, request).of(request)
    [first_end, *_] = [at for at, piece in enumerate(whole) if piece.finish]
    again = resumed(request.prepared, whole[: first_end + 1])
    runner = new_runner(qwen3, max_running=3)
    runner.admit(again)
    assert len(runner.scheduler.sequences) == 2 and runner.has_room
    finished = whole[first_end].choice
    assert [choice.is_finished for choice in again.completions] == [at == finished for at in range(3)]


def test_cancelling_a_resumed_answer_flushes_its_text(qwen3: Any) -> None:
    request = asked("greedy")
    whole = run(new_runner(qwen3), [request]).of(request)
    again = resumed(request.prepared, whole[:4])
    runner = new_runner(qwen3)
    runner.admit(again)
    again.cancel()
    readers = run(runner, [])
    assert [piece.finish for piece in readers.of(again)] == ["cancelled"]
    assert emitted_tokens([*whole[:4], *readers.of(again)])[0].token_ids == emitted_tokens(whole[:4])[0].token_ids
