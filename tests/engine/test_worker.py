"""The worker thread of a model, with small runners of the tests."""

import queue
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tis.admission.admission import Admission
from tis.admission.limits import AdmissionLimits
from tis.admission.ticket import Ticket
from tis.engine.answer import Piece
from tis.engine.completion import Completion
from tis.engine.errors import WorkerDied
from tis.engine.models.echo import CharacterDetokenizer, CharacterTokenizer, EchoOptions, EchoRunner
from tis.engine.prepared_request import PreparedRequest
from tis.engine.request import Delivery, HandOut, Request
from tis.engine.sampling.params import SamplingParams
from tis.engine.worker import Worker
from tis.errors import GenerationFailed, QueueFull, ServiceError


class WorkerUnderTest:
    """Collects what a worker hands out."""

    def __init__(self, runner: Any, queue_size: int = 10) -> None:
        self.out: queue.Queue[Delivery] = queue.Queue()
        self.deaths: queue.Queue[str] = queue.Queue()
        self.worker = Worker("m", runner, self.hand_out, queue_size, self.deaths.put)

    def hand_out(self, deliveries: Sequence[Delivery]) -> None:
        for delivery in deliveries:
            self.out.put(delivery)

    def submit(self, text: str) -> Request:
        request = new_request(text, self.worker)
        self.worker.submit(request)
        return request

    def result(self, request: Request) -> str | ServiceError:
        """The text of the only running request, or its error."""
        text: str = ""
        while True:
            owner, item = self.out.get(timeout=10)
            assert owner is request
            if isinstance(item, ServiceError):
                return item
            text += str(item.text)
            if item.finish:
                return text


def new_request(text: str, worker: Worker | None = None, ticket: Ticket | None = None) -> Request:
    prepared = PreparedRequest("m", "r1", CharacterTokenizer(), [ord(c) for c in text], SamplingParams(), seed=1)
    on_cancel = worker.drop_if_queued if worker else lambda request: None
    return Request(prepared, on_cancel=on_cancel, ticket=ticket)


class OneAtATime(EchoRunner):
    """Admits one request and waits for the test before each step."""

    def __init__(self) -> None:
        super().__init__(EchoOptions())
        self.steps = threading.Semaphore(0)

    @property
    def has_room(self) -> bool:  # type: ignore[override]
        return not self.running

    def step(self, hand_out: HandOut) -> None:
        self.steps.acquire()
        super().step(hand_out)


class FailsToAdmit(EchoRunner):
    def admit(self, request: Request) -> None:
        if request.prompt_ids == [ord("x")]:
            raise ValueError
        super().admit(request)


class FailsInStep(EchoRunner):
    def step(self, hand_out: HandOut) -> None:
        if any(request.prompt_ids == [ord("x")] for request in self.running):
            raise ValueError
        super().step(hand_out)


class DiesInStep(EchoRunner):
    def step(self, hand_out: HandOut) -> None:
        raise SystemExit


class DiesInDropAll(DiesInStep):
    def drop_all(self) -> None:
        raise MemoryError


def test_requests_are_answered_one_after_the_other() -> None:
    under_test = WorkerUnderTest(EchoRunner(EchoOptions()))
    under_test.worker.start()
    assert [under_test.result(under_test.submit(text)) for text in ("one", "two")] == ["one", "two"]
    under_test.worker.close()


@pytest.mark.parametrize("runner", [FailsToAdmit, FailsInStep])
def test_a_failing_request_fails_alone(runner: type[EchoRunner]) -> None:
    under_test = WorkerUnderTest(runner(EchoOptions()))
    under_test.worker.start()
    assert isinstance(under_test.result(under_test.submit("x")), GenerationFailed)
    assert under_test.result(under_test.submit("still here")) == "still here"
    under_test.worker.close()


@pytest.mark.parametrize("runner", [DiesInStep, DiesInDropAll])
def test_when_the_thread_dies_every_request_fails_and_on_death_is_called(runner: type[EchoRunner]) -> None:
    under_test = WorkerUnderTest(runner(EchoOptions()))
    waiting = [under_test.submit(text) for text in ("one", "two")]
    under_test.worker.start()
    delivered = dict(under_test.out.get(timeout=10) for _ in waiting)
    assert all(isinstance(delivered[request], WorkerDied) for request in waiting)
    assert "SystemExit" in under_test.deaths.get(timeout=10)
    with pytest.raises(WorkerDied):
        under_test.submit("too late")


def test_a_full_queue_refuses_new_requests() -> None:
    under_test = WorkerUnderTest(EchoRunner(EchoOptions()), queue_size=2)
    under_test.submit("one"), under_test.submit("two")
    with pytest.raises(QueueFull) as refused:
        under_test.submit("three")
    assert refused.value.retry_after
    under_test.worker.start()
    under_test.worker.close()


def test_cancelling_a_queued_request_ends_it_at_once() -> None:
    runner = OneAtATime()
    under_test = WorkerUnderTest(runner)
    under_test.worker.start()
    under_test.submit("running")
    waiting = under_test.submit("waiting")
    waiting.cancel()
    owner, item = under_test.out.get(timeout=10)
    assert owner is waiting and isinstance(item, Piece) and item.finish == "cancelled"
    for _ in range(20):
        runner.steps.release()
    under_test.worker.close()


class FailsToFlush(CharacterDetokenizer):
    def flush(self) -> str:
        raise ValueError


class TokenizerThatFailsToFlush(CharacterTokenizer):
    def new_detokenizer(self) -> CharacterDetokenizer:
        return FailsToFlush()


def test_a_queued_request_whose_cancellation_fails_gets_its_error_when_admitted() -> None:
    under_test = WorkerUnderTest(EchoRunner(EchoOptions()))
    prepared = replace(new_request("waiting").prepared, tokenizer=TokenizerThatFailsToFlush())
    request = Request(prepared, on_cancel=under_test.worker.drop_if_queued)
    under_test.worker.submit(request)
    with pytest.raises(ValueError):
        request.cancel()
    under_test.worker.start()
    assert isinstance(under_test.result(request), GenerationFailed)
    under_test.worker.close()


def test_cancelling_a_running_request_ends_it_within_a_step() -> None:
    runner = OneAtATime()
    under_test = WorkerUnderTest(runner)
    under_test.worker.start()
    request = under_test.submit("a long answer")
    runner.steps.release()
    assert under_test.out.get(timeout=10) == (request, Piece(0, "a", (97,)))
    request.cancel()
    runner.steps.release()
    _, item = under_test.out.get(timeout=10)
    assert isinstance(item, Piece) and item.finish == "cancelled"
    under_test.worker.close()


def test_closing_fails_queued_requests() -> None:
    runner = OneAtATime()
    under_test = WorkerUnderTest(runner)
    under_test.submit("first")
    second = under_test.submit("second")
    under_test.worker.start()
    threading.Timer(0.1, runner.steps.release).start()
    under_test.worker.close()
    delivered = [delivery for delivery in list(under_test.out.queue) if delivery[0] is second]
    assert isinstance(delivered[0][1], WorkerDied) and under_test.deaths.empty()


def test_resumed_requests_go_before_new_ones_in_order_of_arrival() -> None:
    under_test = WorkerUnderTest(OneAtATime(), queue_size=2)
    new = [under_test.submit(text) for text in ("one", "two")]
    resumed = []
    for _ in range(2):
        prepared = new_request("begun").prepared
        resumed.append(Request(prepared, completions=[Completion(0, prepared)]))
        under_test.worker.submit(resumed[-1])
    with pytest.raises(QueueFull):
        under_test.submit("three")
    assert list(under_test.worker._queue) == [*resumed, *new]


def test_owners_are_served_in_turn_and_none_fills_the_queue() -> None:
    under_test = WorkerUnderTest(OneAtATime(), queue_size=4)
    admission = Admission(AdmissionLimits(owner_share=0.5))
    one, two = admission.ticket("one"), admission.ticket("two")
    requests = {name: new_request(name, ticket=ticket) for name, ticket in (("a", one), ("b", one), ("c", two))}
    for request in requests.values():
        under_test.worker.submit(request)
    with pytest.raises(QueueFull):
        under_test.worker.submit(new_request("d", ticket=one))
    resumed = new_request("e", ticket=admission.resumed_ticket())
    resumed.is_resumed = True
    under_test.worker.submit(resumed)
    begun = new_request("f", ticket=one)
    begun.is_begun = True
    under_test.worker.submit(begun)
    assert list(under_test.worker._queue) == [resumed, requests["a"], requests["c"], requests["b"], begun]
    under_test.worker.close()
