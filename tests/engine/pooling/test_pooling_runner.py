"""Rows of many requests in one step: in turn, alone with their faults, and within the bounds of a step."""

import asyncio
from collections.abc import Sequence
from typing import Any

import torch

from tis.engine.pooling.pooling_request import PoolingRequest
from tis.engine.pooling.pooling_runner import PoolingRunner
from tis.engine.pooling.token_row import TokenRow
from tis.engine.request import deliver
from tis.errors import GenerationFailed


class FaultyEncoder:
    """A row's state is its first token: 13 fails the step, 7 gives no number."""

    device = torch.device("cpu")

    def __init__(self) -> None:
        self.steps: list[list[int]] = []
        self.was_bounded: list[bool] = []
        self.runner: Any = None

    def hidden_states(self, rows: Sequence[TokenRow]) -> list[Any]:
        firsts = [row.ids[0] for row in rows]
        self.steps.append(firsts)
        self.was_bounded.append(self.runner.has_bounded_steps)
        if 13 in firsts:
            raise ValueError("an injected fault")
        return [torch.tensor([float("nan") if first == 7 else float(first)]) for first in firsts]


def answers_of(*requests: Sequence[Sequence[int]], tokens_per_step: int = 4) -> tuple[list[Any], FaultyEncoder]:
    """What each request gets, of one owner."""

    async def run() -> list[Any]:
        runner = PoolingRunner(encoder, lambda states, rows: torch.stack(list(states)), tokens_per_step)
        encoder.runner = runner
        waiting = [PoolingRequest([TokenRow(ids) for ids in one], lambda request: None, None) for one in requests]
        for request in waiting:
            runner.admit(request)
        while runner.running:
            runner.step(deliver)
        answers: list[Any] = await asyncio.gather(*(request.answer for request in waiting), return_exceptions=True)
        return answers

    encoder = FaultyEncoder()
    return asyncio.run(run()), encoder


def numbers(answer: Any) -> list[float]:
    return [float(one[0]) for one in answer]


def test_a_short_request_does_not_wait_for_the_end_of_a_long_one_of_its_owner() -> None:
    [long, short], encoder = answers_of([[1], [2], [3], [4], [5], [6]], [[20]])
    assert numbers(long) == [1, 2, 3, 4, 5, 6] and numbers(short) == [20]
    assert 20 in encoder.steps[0]


def test_a_row_that_fails_fails_its_request_alone() -> None:
    [good, bad, other], _ = answers_of([[1], [2]], [[13]], [[3]])
    assert numbers(good) == [1, 2] and numbers(other) == [3] and isinstance(bad, GenerationFailed)


def test_what_is_no_number_is_never_answered() -> None:
    [bad, good], _ = answers_of([[1], [7]], [[2]])
    assert isinstance(bad, GenerationFailed) and "NaN" in bad.message and numbers(good) == [2]


def test_a_row_longer_than_a_step_has_one_alone_that_may_take_long() -> None:
    [answer], encoder = answers_of([[1], [2] * 9, [3]])
    assert numbers(answer) == [1, 2, 3]
    assert encoder.steps == [[1], [2], [3]] and encoder.was_bounded == [True, False, True]


def test_a_result_keeps_no_others_in_memory() -> None:
    [[first, _]], _ = answers_of([[1], [2]])
    assert first.base is None
