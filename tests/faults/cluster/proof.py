"""The proof of a cluster: clients of all kinds work through every blow, and then everything is compared."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.faults.cluster.askers import ClusterAskers
from tests.faults.cluster.blows import Blow, StruckBlow, all_blows, strike
from tests.faults.cluster.buyers import ClusterBuyers
from tests.faults.cluster.calm import Calm
from tests.faults.cluster.histories import RivalClients, SessionHistory
from tests.faults.cluster.machines import ChaosCluster, ChaosClusterPlan, running_cluster
from tests.faults.cluster.wanderers import Wanderer, blocks_seen, read_again, violations_of

_NUM_BUYERS, _NUM_ASKERS = 2, 4
_NUM_KINDS = 4  # of ways to ask for a response
_MAX_NOTES = 40


@dataclass(frozen=True)
class ProofPlan:
    """At least so many sessions and histories: more begin for as long as there are blows."""

    num_sessions: int = 200
    num_at_once: int = 60
    text_length: int = 240
    num_rivals: int = 40
    num_rivals_at_once: int = 4
    num_blows: int = 0  # 0: every one once
    pause_seconds: float = 1.5  # at most, between two of them
    patience_seconds: float = 240.0  # of one wandering client
    latency_seconds: float = 0.002
    jitter_seconds: float = 0.008
    cluster: ChaosClusterPlan = field(default_factory=ChaosClusterPlan)
    choose: Callable[[Blow], bool] = lambda blow: True


@dataclass
class ClusterProof:
    seconds: float = 0.0
    num_sessions: int = 0
    num_events: int = 0  # seen by those who wandered
    num_visits: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    violations: Counter[str] = field(default_factory=Counter)
    histories: list[SessionHistory] = field(default_factory=list)
    num_reservations: int = 0
    market_faults: Counter[str] = field(default_factory=Counter)
    market_statuses: Counter[int] = field(default_factory=Counter)
    responses: Counter[str] = field(default_factory=Counter)  # acknowledged ones, by how they were asked for
    num_not_stored: int = 0  # whose client was told so
    response_faults: Counter[str] = field(default_factory=Counter)  # at each server
    response_statuses: Counter[int] = field(default_factory=Counter)
    blows: list[StruckBlow] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def not_linear(self) -> list[SessionHistory]:
        return [history for history in self.histories if not history.is_linear]

    def faults(self) -> list[str]:
        """Nothing that was checked may be missing: a proof of nothing is none."""
        found = [f"{number} sessions {what}" for what, number in sorted(self.violations.items())]
        found += [f"{number} reservations {what}" for what, number in sorted(self.market_faults.items())]
        found += [f"{number} responses {what}" for what, number in sorted(self.response_faults.items())]
        found += [f"not linear:\n{history.story()}" for history in self.not_linear]
        found += [f"refused: {refusal}" for history in self.histories for refusal in history.refusals]
        checked = (self.num_events, self.num_reservations, any(one.num_answered for one in self.histories))
        if not all(checked) or len(self.responses) < _NUM_KINDS:
            found.append("nothing was checked")
        return found

    def report(self) -> str:
        told = Counter(one.told or "nothing" for history in self.histories for one in history.operations)
        lines = [
            f"verdict: {'passed' if not self.faults() else 'FAILED'} after {self.seconds:.0f} s",
            f"sessions: {self.num_sessions}, {self.num_events} events in {self.num_visits} connections;"
            f" answers by status {dict(sorted(self.statuses.items()))}",
            *(f"  {what}: {self.violations[what]}" for what in ("lost", "doubled", "mixed", "without a proper end")),
            f"  ended with an error: {self.violations['ended with an error']}",
            f"histories: {len(self.histories)}, {len(self.not_linear)} not linear; operations told {dict(told)}",
            f"reservations: {self.num_reservations}, faults {dict(self.market_faults) or 0};"
            f" answers by status {dict(sorted(self.market_statuses.items()))}",
            f"responses: {dict(self.responses)}, {self.num_not_stored} not stored,"
            f" faults {dict(self.response_faults) or 0};"
            f" answers by status {dict(sorted(self.response_statuses.items()))}",
            f"blows: {len(self.blows)}",
            *(f"  {blow.at:6.1f} s  {blow.name} ({blow.seconds} s)" for blow in self.blows),
            *self.notes[:_MAX_NOTES],
        ]
        return "\n".join(lines)


async def prove(folder: Path, plan: ProofPlan, say: Callable[[str], None] = lambda text: None) -> ClusterProof:
    async with running_cluster(folder, plan.cluster) as cluster:
        cluster.slow_everything(plan.latency_seconds, plan.jitter_seconds)
        proof = await _work_and_strike(cluster, plan, say)
        cluster.require_no_tracebacks()
    return proof


class _Work:
    """Who works while there are blows, and how many there were at least."""

    def __init__(self) -> None:
        self.is_striking = True

    async def keep_busy(self, work: Callable[[int], Awaitable[None]], at_once: int, at_least: int) -> None:
        num_begun = 0

        async def one_after_the_other() -> None:
            nonlocal num_begun
            while self.is_striking or num_begun < at_least:
                num_begun += 1
                await work(num_begun - 1)

        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(one_after_the_other())


async def _work_and_strike(cluster: ChaosCluster, plan: ProofPlan, say: Callable[[str], None]) -> ClusterProof:
    seed, proof, calm, work = plan.cluster.seed, ClusterProof(), Calm(), _Work()
    wanderers: list[Wanderer] = []
    buyers = ClusterBuyers(cluster.fronts, Random(f"buyers {seed}"))
    await asyncio.to_thread(buyers.open, cluster.servers[0].url)
    askers = ClusterAskers(cluster.fronts, Random(f"askers {seed}"), plan.text_length // 2, "far")

    async def wander(number: int) -> None:
        wanderers.append(Wanderer(number, cluster.fronts, calm, Random(f"{seed} {number}"), plan.text_length))
        await wanderers[-1].wander(plan.patience_seconds)

    async def contend(number: int) -> None:
        rivals = RivalClients(number, cluster.fronts, Random(f"rivals {seed} {number}"))
        await rivals.run(calm)
        proof.histories.append(rivals.history)

    began = time.monotonic()
    async with asyncio.TaskGroup() as group:
        busy = [asyncio.create_task(buyers.buy()) for _ in range(_NUM_BUYERS)]
        busy += [asyncio.create_task(askers.ask()) for _ in range(_NUM_ASKERS)]
        group.create_task(work.keep_busy(wander, plan.num_at_once, plan.num_sessions))
        group.create_task(work.keep_busy(contend, plan.num_rivals_at_once, plan.num_rivals))
        chance = Random(f"blows {seed}")
        blows = [blow for blow in all_blows(cluster, chance) if plan.choose(blow)]
        chance.shuffle(blows)
        blows = blows[: plan.num_blows or None]
        for number, blow in enumerate(blows, 1):
            await asyncio.sleep(chance.uniform(0, plan.pause_seconds))
            proof.blows.append(await strike(blow, cluster, calm, began))
            say(f"{number}/{len(blows)} {blow.name}; {len(wanderers)} sessions, {blocks_seen(wanderers)} events")
        work.is_striking = False
    buyers.is_open = askers.is_open = False
    await asyncio.gather(*busy)
    say("all have ended; everything is read again")
    cluster.slow_everything(0, 0)
    again = [client for front in cluster.fronts for client in await read_again(wanderers, front)]
    proof.violations, proof.notes = violations_of(wanderers, again)
    proof.response_faults = await askers.faults(cluster.database_url)
    proof.market_faults = await asyncio.to_thread(buyers.faults, cluster.database_url)
    proof.seconds = time.monotonic() - began
    proof.num_sessions, proof.num_events = len(wanderers), blocks_seen(wanderers)
    proof.num_visits = sum(len(one.client.history) for one in wanderers)
    proof.statuses = sum((one.statuses for one in wanderers), Counter())
    proof.num_reservations, proof.market_statuses = len(buyers.bought), buyers.statuses
    proof.responses, proof.num_not_stored = askers.num_by_kind, askers.num_not_stored
    proof.response_statuses = askers.statuses
    proof.notes += [*buyers.refusals, *askers.refusals, *askers.notes]
    return proof
