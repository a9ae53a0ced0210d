"""The simulation of a cluster: it repeats itself, loses nothing, and would notice if it did."""

import subprocess
import sys
from dataclasses import replace
from functools import cache

import pytest

from scripts.simulated_cluster.arithmetic import ScaleArithmetic, max_sessions, round_of
from scripts.simulated_cluster.cluster import Cluster, ClusterPlan, Outcome
from scripts.simulated_cluster.readers import Findings
from scripts.simulated_cluster.simulated_redis import Fencing, RedisCosts, SlowTime
from tests.serving import REPOSITORY

pytestmark = pytest.mark.long

# Kills, pauses longer than a lease, servers at a fifth of the speed, a Redis that is slow and one that stands still.
_FAULTS = ClusterPlan(
    servers=6,
    sessions=48,
    tokens=160,
    kills=3,
    pauses=4,
    hops=60,
    lease_seconds=1.5,
    slow=(SlowTime(1, 2, 50.0), SlowTime(4, 6, float("inf"))),
)
_SEEDS = (1, 2, 3)


@cache
def _outcome(seed: int, fencing: Fencing) -> Outcome:
    return Cluster(replace(_FAULTS, seed=seed, fencing=fencing)).run()


def _summed(fencing: Fencing) -> Findings:
    found = [_outcome(seed, fencing).findings for seed in _SEEDS]
    return Findings(*(sum(getattr(one, name) for one in found) for name in ("lost", "doubled", "mixed")))


def test_the_same_seed_gives_the_same_outcome() -> None:
    again = Cluster(replace(_FAULTS, seed=1)).run()
    assert again == _outcome(1, "claims") != _outcome(2, "claims")


@pytest.mark.parametrize("seed", _SEEDS)
def test_readers_lose_and_double_nothing_whatever_is_killed_paused_or_slow(seed: int) -> None:
    end = _outcome(seed, "claims")
    assert (end.findings, end.unread) == (Findings(lost=0, doubled=0, mixed=0), 0)
    assert end.taken > 0  # else no server had to go on with an answer of another


def test_several_redis_share_the_sessions_by_their_number() -> None:
    end = Cluster(replace(_FAULTS, shards=3)).run()
    assert (end.findings, end.unread) == (Findings(), 0) and end.taken > 0


def test_ids_alone_let_a_server_show_what_another_has_written_otherwise() -> None:
    assert _summed("ids").mixed > 0


def test_without_fencing_tokens_are_doubled_and_readers_see_other_events_than_are_stored() -> None:
    found = _summed("none")
    assert found.doubled > 0 and found.mixed > 0


def test_without_fencing_a_token_is_lost() -> None:
    found = [Cluster(replace(_FAULTS, seed=seed, fencing="none", hops=600)).run().findings for seed in _SEEDS]
    assert sum(one.lost for one in found) > 0


def test_a_slow_redis_delays_tokens_and_loses_none() -> None:
    calm = replace(_FAULTS, kills=0, pauses=0, hops=0, slow=())
    quick, slow = (Cluster(one).run() for one in (calm, replace(calm, slow=(SlowTime(0, 100, 60.0),))))
    assert slow.median_ms > quick.median_ms and slow.findings == quick.findings == Findings()


@pytest.mark.parametrize(("servers", "sessions"), [(2, 200), (8, 1200), (32, 4000)])
def test_the_formulas_say_what_the_simulation_does(servers: int, sessions: int) -> None:
    plan = ClusterPlan(
        servers=servers, sessions=sessions, tokens=10**6, readers_each=0, kills=0, pauses=0, hops=0,
        straggler_share=0, seconds=1,
    )  # fmt: skip
    end, said = Cluster(plan).run(), round_of(plan.costs, servers, sessions, plan.rate)
    assert end.busy == pytest.approx(said.busy, abs=0.1)
    assert end.events_per_script == pytest.approx(said.events_per_script, rel=0.25)


def test_a_redis_takes_more_sessions_when_tokens_may_be_late_but_not_any_number() -> None:
    costs = RedisCosts()
    direct = max_sessions(costs, 8, 20.0, 0.0, busy=0.6)
    late = max_sessions(costs, 8, 20.0, 0.0, round_seconds=0.25)
    assert 0 < direct < late < 1 / (20.0 * costs.event)


def test_more_streams_need_more_of_everything() -> None:
    scale = ScaleArithmetic()
    few, many = scale.need(10_000, 100), scale.need(1_000_000, 1000)
    assert many.shards_for_cpu > few.shards_for_cpu and many.shards_for_memory > few.shards_for_memory
    assert many.memory_bytes == pytest.approx(100 * few.memory_bytes)
    assert many.servers * scale.streams_of_a_server >= many.streams


def test_the_document_has_the_table_that_the_program_prints() -> None:
    program = [sys.executable, "scripts/simulate_cluster.py", "arithmetic"]
    printed = subprocess.run(program, cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=True).stdout
    document = (REPOSITORY / "docs" / "scale.md").read_text(encoding="utf-8")
    rows = [line for line in printed.splitlines() if line.startswith("|")]
    assert len(rows) > 5 and [row for row in rows if row not in document] == []
