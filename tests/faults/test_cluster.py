"""A cluster of real processes under kills and a bad network; `make soak-cluster` has the long form."""

import os
from pathlib import Path

import pytest

from tests.faults.cluster.machines import ChaosClusterPlan
from tests.faults.cluster.proof import ProofPlan, prove
from tests.marketplace.postgres import programs_of_postgres

pytestmark = [pytest.mark.slow, pytest.mark.anyio]
BLOWS = {
    "kill a server",
    "kill an upstream",
    "kill Redis",
    "kill PostgreSQL",
    "pause a server for longer than its lease",
    "black_hole between redis and a server",
    "half_open_back between clients and a server",
}
PLAN = ProofPlan(
    num_sessions=24,
    num_at_once=12,
    text_length=160,
    num_rivals=6,
    num_rivals_at_once=2,
    pause_seconds=0.5,
    cluster=ChaosClusterPlan(tokens_per_second=16),
    choose=lambda blow: blow.name in BLOWS,
)


@pytest.mark.skipif(
    programs_of_postgres() is None and os.environ.get("SERVICES") != "required",
    reason="no PostgreSQL here: `apt-get install postgresql`",
)
async def test_nothing_is_lost_doubled_or_mixed_whatever_happens_to_the_parts_of_a_cluster(tmp_path: Path) -> None:
    proof = await prove(tmp_path, PLAN)
    assert proof.faults() == [], proof.report()
    assert {blow.name for blow in proof.blows} == BLOWS
