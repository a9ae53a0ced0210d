"""A server of the simulation: it makes tokens, writes them under its claims, keeps its leases and takes sessions.

Its rules are those of `tis/streaming/stores/redis*.py`: one pipeline at a time for each Redis, with one script for each
session that has news; events are shown once they are stored; a lease is renewed every second; whoever was out of reach
of Redis himself waits for a whole lease before he takes anything.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from scripts.simulated_cluster.events import Ask, EventQueue, SimulatedMachine, Sleep, Work
from scripts.simulated_cluster.readers import SimulatedReader
from scripts.simulated_cluster.simulated_redis import SimulatedRedis, StoredEvent, Verdict

_MAX_CHANGES = 256  # in one pipeline
_MAX_EVENTS = 512  # in one script
_POLL_SECONDS = 1.0


@dataclass(slots=True, eq=False)
class HeldAnswer:
    number: int
    num_tokens: int
    claim: str
    first: int  # the token at which this server began
    began_at: float
    num_stored: int  # as far as this server knows
    readers: list[SimulatedReader] = field(default_factory=list)


@dataclass(slots=True)
class Delays:
    """How long the oldest token of each script waited until it was shown."""

    seconds: list[float] = field(default_factory=list)
    num_events: int = 0
    num_scripts: int = 0


class SimulatedServer(SimulatedMachine):
    def __init__(
        self,
        queue: EventQueue,
        name: str,
        shards: Sequence[SimulatedRedis],
        rate: float,
        lease_seconds: float,
        delays: Delays,
        phase: float,
    ) -> None:
        """`rate`: tokens a second of an answer here. `phase`: when in a second it renews its leases."""
        super().__init__(queue)
        self.name = name
        self.held: list[dict[int, HeldAnswer]] = [{} for _ in shards]
        self._shards, self._rate, self._lease_seconds, self._delays = shards, rate, lease_seconds, delays
        self._num_claims = 0
        for place in range(len(shards)):
            self.start(self._write(place))
            self.start(self._keep_lease(place, phase))

    def begin(self, number: int, num_tokens: int) -> None:
        place = number % len(self._shards)
        claim = self._new_claim()
        self._shards[place].begin(number, num_tokens, claim)
        self.held[place][number] = HeldAnswer(number, num_tokens, claim, 0, self.queue.now, 0)

    def pause(self, seconds: float) -> None:
        """It makes nothing meanwhile, and does not know."""
        self.paused_until = self.queue.now + seconds
        for answers in self.held:
            for answer in answers.values():
                answer.began_at += seconds

    def answer_of(self, number: int) -> HeldAnswer | None:
        return self.held[number % len(self._shards)].get(number)

    def redis_of(self, number: int) -> SimulatedRedis:
        return self._shards[number % len(self._shards)]

    def connect(self, reader: SimulatedReader) -> None:
        reader.connection = self
        answer = self.answer_of(reader.number)
        if answer is None:
            self.start(self._follow(reader))
            return
        answer.readers.append(reader)
        earlier = self.redis_of(reader.number).read(reader.number, reader.cursor) or ()
        reader.take([event for event in earlier if event.index < answer.first], self)
        self._show(answer, answer.first)

    def _new_claim(self) -> str:
        self._num_claims += 1
        return f"{self.name}:{self._num_claims}"

    def _num_made(self, answer: HeldAnswer) -> int:
        made = answer.first + int((self.queue.now - answer.began_at) * self._rate + 1e-9)
        return min(made, answer.num_tokens, answer.num_stored + _MAX_EVENTS)

    def _made_at(self, answer: HeldAnswer, token: int) -> float:
        return answer.began_at + (token + 1 - answer.first) / self._rate

    def _write(self, place: int) -> Work:
        answers, redis = self.held[place], self._shards[place]
        while True:
            news = [(one, made) for one in answers.values() if (made := self._num_made(one)) > one.num_stored]
            if not news:
                due = (self._made_at(one, one.num_stored) for one in answers.values())
                yield Sleep(max(1e-6, min(due, default=self.queue.now + 0.05) - self.queue.now))
                continue
            news.sort(key=lambda one: self._made_at(one[0], one[0].num_stored))
            batch = [(one, one.num_stored, made) for one, made in news[:_MAX_CHANGES]]
            costs = redis.costs
            work = sum(costs.script + costs.event * (end - first - 1) for _, first, end in batch)
            commands = [_writing(redis, one, first, end) for one, first, end in batch]
            verdicts: Sequence[Verdict] = yield Ask(redis, commands, costs.pipeline + work)
            for (answer, first, end), verdict in zip(batch, verdicts, strict=True):
                self._settle(answers, answer, first, end, verdict)

    def _settle(
        self, answers: dict[int, HeldAnswer], answer: HeldAnswer, first: int, end: int, verdict: Verdict
    ) -> None:
        if verdict != "ok":
            if answers.get(answer.number) is answer:
                del answers[answer.number]
            readers = [reader for reader in answer.readers if reader.connection is self]
            for reader in readers:  # they follow whoever has the session now
                self.connect(reader)
            return
        answer.num_stored = end
        self._delays.seconds.append(self.queue.now - self._made_at(answer, first))
        self._delays.num_events += end - first
        self._delays.num_scripts += 1
        self._show(answer, first)
        if end == answer.num_tokens and answers.get(answer.number) is answer:
            del answers[answer.number]

    def _show(self, answer: HeldAnswer, first: int) -> None:
        shown = [StoredEvent(token, token, answer.claim) for token in range(first, answer.num_stored)]
        for reader in answer.readers:
            reader.take(shown, self)

    def _follow(self, reader: SimulatedReader) -> Work:
        redis = self.redis_of(reader.number)
        while reader.connection is self and not reader.is_done:
            [events] = yield Ask(
                redis, [lambda: redis.read(reader.number, reader.cursor)], redis.costs.read, waits_for=reader.number
            )
            reader.take(events, self)

    def _keep_lease(self, place: int, phase: float) -> Work:
        redis = self._shards[place]
        redis.lease_ends[self.name] = self.queue.now + self._lease_seconds
        reached_at = reached_since = self.queue.now
        yield Sleep(phase)
        while True:
            [over] = yield Ask(redis, [lambda: redis.renew(self.name, self._lease_seconds)], redis.costs.lease)
            now = self.queue.now
            if now - reached_at > self._lease_seconds:
                reached_since = now
            reached_at = now
            if now - reached_since >= self._lease_seconds:
                for other in over:
                    if other != self.name:
                        yield from self._take_from(place, other)
            yield Sleep(_POLL_SECONDS)

    def _take_from(self, place: int, other: str) -> Work:
        redis = self._shards[place]
        cost = redis.costs.command
        [numbers] = yield Ask(redis, [lambda: redis.some_held(other)], cost)
        for number in numbers:
            [held] = yield Ask(redis, [partial(redis.claim_of, number)], cost)
            if held.partition(":")[0] == other:
                claim = self._new_claim()
                yield Ask(redis, [lambda: None], cost)  # SADD: the session is its own before it is taken
                [is_mine] = yield Ask(redis, [partial(redis.take, number, held, claim)], cost)
                if is_mine:
                    # HGETALL and GET
                    [stored] = yield Ask(redis, [partial(redis.sessions.__getitem__, number)], 2 * cost)
                    first = stored.events[-1].token + 1 if stored.events else 0  # its state is in the last event
                    self.held[place][number] = HeldAnswer(
                        number, stored.num_tokens, claim, first, self.queue.now, first
                    )
            yield Ask(redis, [partial(redis.no_longer_holds, other, number)], cost)


def _writing(redis: SimulatedRedis, answer: HeldAnswer, first: int, end: int) -> Callable[[], Verdict]:
    return partial(redis.write, answer.number, answer.claim, first, end)
