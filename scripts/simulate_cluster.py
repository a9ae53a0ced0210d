"""Many servers on one or more Redis, simulated: do clients lose or double a token, and what is busy first?

    python scripts/simulate_cluster.py [faults|load|arithmetic] [--seed 1]

`faults` kills, pauses and slows down servers and Redis, with and without what keeps two servers from writing one
session; `load` compares the formulas of `docs/scale.md` with the simulation; `arithmetic` prints the formulas' table.
The same seed gives the same output. Redis that loses data, and events shown while it is away, are not simulated:
`tests/faults` does that with a real one.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from scripts.simulated_cluster.arithmetic import ScaleArithmetic, round_of
from scripts.simulated_cluster.cluster import Cluster, ClusterPlan
from scripts.simulated_cluster.simulated_redis import Fencing, SlowTime

_FENCINGS: Sequence[Fencing] = ("claims", "ids", "none")
SLOW = (SlowTime(3, 6, 50.0), SlowTime(9, 12, float("inf")))
# Servers on one Redis, and sessions on it.
LOADS = ((2, 200), (8, 800), (8, 1600), (8, 2800), (32, 5000), (200, 5000), (200, 8000))
SIZES = ((2, 200), (10, 3000), (100, 30_000), (1000, 300_000), (1000, 1_000_000))


def print_faults(seed: int) -> None:
    print("| kept apart by | lost | doubled | mixed | unread | sessions taken | shown after, median / p99 |")
    print("|---|---|---|---|---|---|---|")
    plan = ClusterPlan(slow=SLOW, kills=5, pauses=5, lease_seconds=3, seed=seed)
    for fencing in _FENCINGS:
        end = Cluster(replace(plan, fencing=fencing)).run()
        found = end.findings
        print(
            f"| {fencing} | {found.lost:,} | {found.doubled:,} | {found.mixed:,} | {end.unread} | {end.taken}"
            f" | {end.median_ms:.1f} / {end.p99_ms:.0f} ms |"
        )


def print_load(seed: int) -> None:
    print("| servers | sessions | busy: formula / simulated | events in a script | shown after, median / p99 |")
    print("|---|---|---|---|---|")
    for servers, sessions in LOADS:
        plan = ClusterPlan(
            servers=servers, sessions=sessions, tokens=10**6, readers_each=0, kills=0, pauses=0, hops=0,
            straggler_share=0, seed=seed, seconds=5,
        )  # fmt: skip
        end = Cluster(plan).run()
        said = round_of(plan.costs, servers, sessions, plan.rate)
        print(
            f"| {servers} | {sessions:,} | {said.busy:.2f} / {end.busy:.2f} | {said.events_per_script:.1f} /"
            f" {end.events_per_script:.1f} | {end.median_ms:.0f} / {end.p99_ms:.0f} ms |"
        )


def print_arithmetic() -> None:
    scale = ScaleArithmetic()
    needs = [scale.need(streams, servers) for servers, streams in SIZES]
    rows = [
        ("open streams", [f"{one.streams:,}" for one in needs]),
        ("server processes, at least", [f"{one.servers:,}" for one in needs]),
        ("tokens a second", [f"{one.events_per_second:,.0f}" for one in needs]),
        ("memory of Redis, GB", [f"{one.memory_bytes / 1e9:,.1f}" for one in needs]),
        ("Redis by memory", [f"{one.shards_for_memory:,}" for one in needs]),
        ("Redis by CPU", [f"{one.shards_for_cpu:,}" for one in needs]),
        ("... with rounds of 0.25 s", [f"{one.shards_for_cpu_late:,}" for one in needs]),
        ("network of all Redis, MB/s", [f"{one.network_bytes / 1e6:,.0f}" for one in needs]),
        ("append-only files, MB/s", [f"{one.file_bytes / 1e6:,.0f}" for one in needs]),
        ("connections of each Redis", [f"{one.redis_connections:,.0f}" for one in needs]),
        ("CPU of each Redis after a kill, at most, s", [f"{one.takeover_seconds:.2f}" for one in needs]),
        ("connections of PostgreSQL, at most", [f"{one.postgres_connections:,}" for one in needs]),
    ]
    print(f"| |{' |' * len(needs)}\n|---|{'---|' * len(needs)}")
    for name, values in rows:
        print(f"| {name} | {' | '.join(values)} |")
    print(f"\nStreams of one server process: {scale.streams_of_a_server}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", default=["faults", "load", "arithmetic"])
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    for what in arguments.what:
        if what == "faults":
            print_faults(arguments.seed)
        elif what == "load":
            print_load(arguments.seed)
        elif what == "arithmetic":
            print_arithmetic()
        else:
            parser.error(f"{what!r} is none of faults, load, arithmetic")
        print(flush=True)


if __name__ == "__main__":
    main()
