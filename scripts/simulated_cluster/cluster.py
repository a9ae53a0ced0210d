"""Puts a cluster together, lets it suffer, and counts what its clients lost."""

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from scripts.simulated_cluster.events import EventQueue
from scripts.simulated_cluster.readers import Findings, SimulatedReader, check
from scripts.simulated_cluster.replicas import Delays, SimulatedServer
from scripts.simulated_cluster.simulated_redis import Fencing, RedisCosts, SimulatedRedis, SlowTime

_MAX_SLOWNESS = 12  # times as long as an answer takes when nothing goes wrong


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    servers: int = 8
    shards: int = 1
    sessions: int = 200
    tokens: int = 400
    rate: float = 20.0  # tokens a second of an answer
    readers_each: int = 2
    lease_seconds: float = 10.0
    kills: int = 3
    pauses: int = 3  # each longer than a lease
    hops: int = 200  # a reader goes to another server
    straggler_share: float = 0.25  # of the servers: they make tokens at a fifth of the rate
    slow: Sequence[SlowTime] = ()
    fencing: Fencing = "claims"
    seed: int = 1
    seconds: float | None = None  # without: until all answers are read
    costs: RedisCosts = field(default_factory=RedisCosts)


@dataclass(frozen=True, slots=True)
class Outcome:
    findings: Findings
    simulated_seconds: float
    events: int
    events_per_script: float
    median_ms: float  # until a token was shown
    p99_ms: float
    busy: float  # share of the time, of the busiest Redis
    taken: int
    unread: int  # answers that some reader had not read to the end


class Cluster:
    def __init__(self, plan: ClusterPlan) -> None:
        self.plan = plan
        self.queue = EventQueue()
        self.chance = random.Random(plan.seed)
        self.delays = Delays()
        self.shards = [
            SimulatedRedis(self.queue, plan.costs, plan.fencing, self.chance, plan.slow) for _ in range(plan.shards)
        ]
        self.num_started = 0
        self.servers = [self._new_server() for _ in range(plan.servers)]
        self.readers: list[SimulatedReader] = []
        self._unread: list[SimulatedReader] = []
        for number in range(plan.sessions):
            # Within the first interval of a token, so that tokens of different answers do not come at once.
            self.queue.at(self.chance.random() / plan.rate, partial(self._begin, number))
        for fault, times in ((self._kill, plan.kills), (self._pause, plan.pauses), (self._hop, plan.hops)):
            for _ in range(times):
                self.queue.at(self.chance.uniform(0.1, 0.9) * plan.tokens / plan.rate, fault)

    def run(self) -> Outcome:
        plan = self.plan
        until = plan.seconds or _MAX_SLOWNESS * plan.tokens / plan.rate
        self.queue.run(until, lambda: plan.seconds is None and self.queue.now > 1 and self._is_over())
        sessions = {number: one for shard in self.shards for number, one in shard.sessions.items()}
        elapsed = self.queue.now
        late = sorted(self.delays.seconds) or [0.0]
        return Outcome(
            check(self.readers, sessions) if plan.seconds is None else Findings(),
            elapsed,
            self.delays.num_events,
            self.delays.num_events / max(1, self.delays.num_scripts),
            statistics.median(late) * 1000,
            late[-1 - len(late) // 100] * 1000,
            max(shard.seconds_worked for shard in self.shards) / elapsed,
            sum(shard.num_taken for shard in self.shards),
            sum(not reader.is_done for reader in self.readers),
        )

    def _is_over(self) -> bool:
        while self._unread and self._unread[-1].is_done:
            self._unread.pop()
        return not self._unread

    @property
    def _alive(self) -> list[SimulatedServer]:
        return [server for server in self.servers if server.is_alive]

    def _new_server(self) -> SimulatedServer:
        self.num_started += 1
        is_straggler = self.num_started <= self.plan.straggler_share * self.plan.servers
        return SimulatedServer(
            self.queue,
            f"s{self.num_started}",
            self.shards,
            self.plan.rate / 5 if is_straggler else self.plan.rate,
            self.plan.lease_seconds,
            self.delays,
            self.chance.random(),
        )

    def _begin(self, number: int) -> None:
        server = self._alive[number % len(self._alive)]
        server.begin(number, self.plan.tokens)
        for place in range(self.plan.readers_each):
            reader = SimulatedReader(number, self.plan.tokens)
            self.readers.append(reader)
            self._unread.append(reader)
            (server if place == 0 else self.chance.choice(self._alive)).connect(reader)

    def _kill(self) -> None:
        """A new server takes its place. Of what it was sending a part arrives; its clients come back elsewhere."""
        server = self.chance.choice(self._alive)
        server.is_alive = False
        for asked in server.in_flight.values():
            if not asked.has_arrived:
                asked.num_arriving = self.chance.randint(0, len(asked.commands))
        self.servers.remove(server)
        self.servers.append(self._new_server())
        for reader in self.readers:
            if reader.connection is server:
                reader.connection = None
                self.queue.after(self.chance.uniform(0.2, 2.0), partial(self._connect, reader))

    def _pause(self) -> None:
        self.chance.choice(self._alive).pause(self.plan.lease_seconds * self.chance.uniform(1.2, 1.6))

    def _hop(self) -> None:
        reader = self.chance.choice(self.readers)
        if not reader.is_done:
            self._connect(reader)

    def _connect(self, reader: SimulatedReader) -> None:
        self.chance.choice(self._alive).connect(reader)
