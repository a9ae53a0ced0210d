"""An owner who floods the model leaves others their part of the batch, and loses no token by it."""

import threading
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from tests.engine.batching.tiny import Readers, alone, new_request, new_runner, prompt, run, tokens
from tis.engine.answer import Piece
from tis.engine.batching.batch_runner import BatchRunner
from tis.engine.request import Delivery, Request
from tis.engine.worker import Worker

pytestmark = pytest.mark.slow


def _request_of(owner: str, seed: int, **params: Any) -> Request:
    request = new_request(prompt(9 + seed, seed), seed, **{"temperature": 0.9, **params})
    request.owner = owner
    return request


def _places(runner: BatchRunner) -> Counter[str]:
    return Counter(sequence.request.owner for sequence in runner.scheduler.sequences)


def _full_of(owner: str, model: Any, **params: Any) -> tuple[BatchRunner, list[Request]]:
    runner = new_runner(model, max_running=4)
    requests = [_request_of(owner, seed, **params) for seed in range(4)]
    for request in requests:
        runner.admit(request)
    return runner, requests


def test_who_floods_leaves_others_their_part_and_gets_the_same_tokens(qwen3: Any) -> None:
    runner, flood = _full_of("flood", qwen3, max_tokens=30)
    readers = Readers()
    for _ in range(5):
        runner.step(readers.hand_out)
    assert not runner.has_room and not runner.owes_place("flood")
    others: list[Request] = []
    while runner.owes_place("other"):
        others.append(_request_of("other", 10 + len(others), max_tokens=8))
        runner.admit(others[-1])
    assert _places(runner) == {"flood": 2, "other": 2}
    while any(request.unfinished for request in others):
        runner.step(readers.hand_out)
    assert all(request.unfinished for request in flood)
    while runner.running:
        runner.step(readers.hand_out)
    assert not readers.errors
    lonely = [_request_of("any", seed, max_tokens=30) for seed in range(4)]
    lonely += [_request_of("any", 10 + seed, max_tokens=8) for seed in range(len(others))]
    for request in lonely:
        alone(qwen3, request)
    assert [tokens(request) for request in [*flood, *others]] == [tokens(request) for request in lonely]


def test_a_free_place_goes_to_the_owner_who_has_fewer(qwen3: Any) -> None:
    runner, _ = _full_of("flood", qwen3, max_tokens=30)
    short, longer = (_request_of("other", 10 + at, max_tokens=2 + 10 * at) for at in range(2))
    runner.admit(short)
    runner.admit(longer)
    readers = Readers()
    while short.unfinished:
        runner.step(readers.hand_out)
    # Two of the flood are suspended, and yet the owner with one place is next.
    assert not runner.has_room and runner.owes_place("other") and not runner.owes_place("flood")
    runner.step(readers.hand_out)
    assert _places(runner) == {"flood": 3, "other": 1}  # nobody asked for it


def test_one_owner_alone_has_all_places(qwen3: Any) -> None:
    runner, _ = _full_of("only", qwen3)
    assert _places(runner) == {"only": 4} and not runner.owes_place("only")


def test_a_request_with_many_choices_gives_places_back_too(qwen3: Any) -> None:
    runner = new_runner(qwen3, max_running=4)
    flood = _request_of("flood", 1, n=6, max_tokens=12)
    runner.admit(flood)
    readers = Readers()
    runner.step(readers.hand_out)
    other = _request_of("other", 2, max_tokens=3)
    assert runner.owes_place("other")
    runner.admit(other)
    assert _places(runner) == {"flood": 3, "other": 1}
    while runner.running:
        runner.step(readers.hand_out)
    lonely = _request_of("any", 1, n=6, max_tokens=12)
    alone(qwen3, lonely)
    assert [tokens(flood, at) for at in range(6)] == [tokens(lonely, at) for at in range(6)]


def test_a_suspended_request_can_be_cancelled(qwen3: Any) -> None:
    runner, flood = _full_of("flood", qwen3, max_tokens=30)
    runner.admit(_request_of("other", 9, max_tokens=3))
    flood[-1].cancel()
    readers = Readers()
    runner.step(readers.hand_out)
    assert readers.finish(flood[-1]) == "cancelled" and flood[-1] not in runner.running
    assert len(_places(runner)) == 2 and not runner._places.suspended


def test_nothing_stays_suspended_when_all_is_dropped(qwen3: Any) -> None:
    runner, _ = _full_of("flood", qwen3)
    runner.admit(_request_of("other", 9))
    runner.drop_all()
    assert runner.has_room and not runner.running
    assert not run(runner, [_request_of("flood", 3)]).errors


def test_a_short_request_does_not_wait_for_the_long_answers_of_another_owner(qwen3: Any) -> None:
    finished: list[str] = []
    is_over = threading.Event()

    def hand_out(deliveries: Iterable[Delivery]) -> None:
        finished.extend(request.owner for request, item in deliveries if isinstance(item, Piece) and item.finish)
        if len(finished) == 9:
            is_over.set()

    worker = Worker("tiny", new_runner(qwen3, max_running=4), hand_out, 64, on_death=lambda reason: None)
    for seed in range(8):
        worker.submit(_request_of("flood", seed, max_tokens=40))
    worker.submit(_request_of("other", 20, max_tokens=2))
    worker.start()
    try:
        assert is_over.wait(60)
    finally:
        worker.close()
    assert finished[0] == "other"
