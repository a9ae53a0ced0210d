"""Simulated time: an event queue, and processes as generators that sleep or ask Redis."""

import heapq
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


class EventQueue:
    """What is due at the same time happens in the order in which it was scheduled."""

    def __init__(self) -> None:
        self.now = 0.0
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._num_scheduled = 0

    def at(self, time: float, action: Callable[[], None]) -> None:
        self._num_scheduled += 1
        heapq.heappush(self._heap, (max(time, self.now), self._num_scheduled, action))

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        self.at(self.now + seconds, action)

    def run(self, until: float, is_over: Callable[[], bool] = lambda: False) -> None:
        while self._heap and self._heap[0][0] <= until and not is_over():
            self.now, _, action = heapq.heappop(self._heap)
            action()


@dataclass(frozen=True, slots=True)
class Sleep:
    seconds: float


@dataclass(slots=True, eq=False)
class Ask:
    """Commands for one Redis, sent together; the answer is the list of their results."""

    redis: "Answering"
    commands: Sequence[Callable[[], Any]]
    seconds: float  # of work for Redis
    waits_for: int | None = None  # a session: answer only when the one command has a result
    num_arriving: int | None = None  # a sender that dies in the middle sends only the first ones
    has_arrived: bool = False


Work = Generator[Sleep | Ask, Any, None]


class Answering(Protocol):
    def ask(self, asked: Ask, reply: Callable[[Any], None]) -> None: ...


@dataclass(slots=True, eq=False)
class SimulatedMachine:
    """What processes run on: it can be killed, or paused for a while."""

    queue: EventQueue
    is_alive: bool = True
    paused_until: float = 0.0
    in_flight: dict[int, Ask] = field(default_factory=dict)

    def start(self, work: Work) -> None:
        self.queue.after(0.0, lambda: self._step(work, None))

    def _step(self, work: Work, result: Any) -> None:
        if not self.is_alive:
            work.close()
            return
        if self.paused_until > self.queue.now:
            self.queue.at(self.paused_until, lambda: self._step(work, result))
            return
        try:
            wait = work.send(result)
        except StopIteration:
            return
        if isinstance(wait, Sleep):
            self.queue.after(wait.seconds, lambda: self._step(work, None))
            return
        self.in_flight[id(wait)] = wait

        def reply(results: Any) -> None:
            self.in_flight.pop(id(wait), None)
            self._step(work, results)

        wait.redis.ask(wait, reply)
