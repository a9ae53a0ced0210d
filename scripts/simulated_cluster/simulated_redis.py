"""One Redis of the simulation: a queue before one thread, and what the scripts of the server do to sessions there."""

import random
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from scripts.simulated_cluster.events import Ask, EventQueue

# What keeps two servers from writing one session. The server has `claims`: a claim, compared by each script, and ids.
# `ids` has the explicit ids of entries alone; `none` appends what comes.
Fencing = Literal["claims", "ids", "none"]
Verdict = Literal["ok", "fenced", "gap"]


@dataclass(frozen=True, slots=True)
class RedisCosts:
    """Seconds of CPU of Redis; the defaults were measured by `benchmarks/redis_costs.py` (see docs/scale.md)."""

    pipeline: float = 20e-6  # beside its scripts
    script: float = 16e-6  # with one event
    event: float = 3.3e-6  # each further one
    read: float = 12e-6  # an XREAD that begins to wait, and once more when it is answered
    command: float = 9e-6  # another one, sent alone
    lease: float = 22e-6
    round_trip: float = 0.5e-3  # of the network: an assumption


@dataclass(slots=True)
class StoredEvent:
    index: int
    token: int  # which token of the answer it is: its index, as long as nothing goes wrong
    claim: str  # under which it was made


@dataclass(slots=True)
class StoredSession:
    num_tokens: int
    claim: str
    next_index: int = 0
    is_running: bool = True
    events: list[StoredEvent] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SlowTime:
    begin: float
    end: float
    factor: float  # inf: Redis does nothing meanwhile


class SimulatedRedis:
    def __init__(
        self, queue: EventQueue, costs: RedisCosts, fencing: Fencing, chance: random.Random, slow: Sequence[SlowTime]
    ) -> None:
        self.costs = costs
        self.sessions: dict[int, StoredSession] = {}
        self.held: dict[str, dict[int, None]] = {}  # by server: the sessions that it runs
        self.lease_ends: dict[str, float] = {}
        self.num_taken = self.num_commands = 0
        self._busy_seconds = 0.0
        self._queue, self._fencing, self._chance, self._slow = queue, fencing, chance, slow
        self._busy_until = 0.0
        self._waiting: dict[int, list[tuple[Ask, Callable[[Any], None]]]] = {}

    @property
    def seconds_worked(self) -> float:
        return self._busy_seconds - max(0.0, self._busy_until - self._queue.now)

    def ask(self, asked: Ask, reply: Callable[[Any], None]) -> None:
        self._queue.after(self.costs.round_trip / 2, lambda: self._arrive(asked, reply))

    def _arrive(self, asked: Ask, reply: Callable[[Any], None]) -> None:
        asked.has_arrived = True
        self._work(asked.seconds)
        self._queue.at(self._busy_until, lambda: self._execute(asked, reply))

    def _execute(self, asked: Ask, reply: Callable[[Any], None]) -> None:
        commands = asked.commands[: asked.num_arriving]
        self.num_commands += len(commands)
        results = [command() for command in commands]
        if asked.waits_for is not None and results == [None]:
            self._waiting.setdefault(asked.waits_for, []).append((asked, reply))
            return
        self._queue.after(self.costs.round_trip / 2, lambda: reply(results))

    def _work(self, seconds: float) -> None:
        begin = max(self._busy_until, self._queue.now)
        for slow in self._slow:
            if slow.begin <= begin < slow.end:
                begin, seconds = (slow.end, seconds) if slow.factor == float("inf") else (begin, seconds * slow.factor)
        self._busy_until = begin + seconds
        self._busy_seconds += seconds

    def _wake(self, number: int) -> None:
        for asked, reply in self._waiting.pop(number, ()):
            if (result := asked.commands[0]()) is None:
                self._waiting.setdefault(number, []).append((asked, reply))
                continue
            self._work(self.costs.read)
            self._queue.at(self._busy_until + self.costs.round_trip / 2, partial(reply, [result]))

    # The commands.

    def begin(self, number: int, num_tokens: int, claim: str) -> None:
        self._work(self.costs.script)
        self.sessions[number] = StoredSession(num_tokens, claim)
        self.held.setdefault(_server_of(claim), {})[number] = None

    def write(self, number: int, claim: str, first: int, end: int) -> Verdict:
        session = self.sessions[number]
        if self._fencing == "claims":
            if session.claim != claim:
                return "fenced"
            if first > session.next_index:
                return "gap"
        for token in range(first, end):
            index = session.next_index if self._fencing == "none" else token
            if index >= session.next_index:
                session.events.append(StoredEvent(index, token, claim))
                session.next_index = index + 1
        if end == session.num_tokens:
            session.is_running = False
            self.held.get(_server_of(claim), {}).pop(number, None)
        self._wake(number)
        return "ok"

    def read(self, number: int, after: int) -> Sequence[StoredEvent] | None:
        """None: nothing yet."""
        events = self.sessions[number].events
        return events[bisect_right(events, after, key=lambda event: event.index) :] or None

    def renew(self, server: str, lease_seconds: float) -> Sequence[str]:
        """Returns those whose lease is over."""
        self.lease_ends[server] = self._queue.now + lease_seconds
        return [other for other, end in self.lease_ends.items() if end < self._queue.now][:64]

    def some_held(self, server: str) -> Sequence[int]:
        held = list(self.held.get(server, ()))
        if not held:
            self.lease_ends.pop(server, None)
        return self._chance.sample(held, min(64, len(held)))

    def claim_of(self, number: int) -> str:
        return self.sessions[number].claim

    def take(self, number: int, held: str, claim: str) -> bool:
        session = self.sessions[number]
        if not session.is_running or (self._fencing == "claims" and session.claim != held):
            return False
        session.claim = claim
        self.held.setdefault(_server_of(claim), {})[number] = None
        self.num_taken += 1
        return True

    def no_longer_holds(self, server: str, number: int) -> None:
        self.held.get(server, {}).pop(number, None)


def _server_of(claim: str) -> str:
    return claim.partition(":")[0]
