"""Two sides asked in turns, what each costs, and the table that says so."""

import json
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bare_market import Question
from sqlalchemy.orm import Session

# CPU milliseconds on SQLite that we mean to stay under, at 100,000 and a million products.
AIMS = {
    "text ranked": (4, 45),
    "text + 25 km + nearest": (2, 22),
    "category + 25 km": (0.5, 5),
    "facets": (15, 140),
    "page by cursor": (0.2, 0.2),
    "broad words": (60, 110),
    "the broadest word": (60, 110),
}


@dataclass(frozen=True)
class Kind:
    name: str
    ours: Callable[[], int]  # how many came
    bare: Question


@dataclass(frozen=True)
class Cost:
    wall_p50: float  # milliseconds, all of them
    wall_p95: float
    cpu: float
    found: int


@dataclass(frozen=True)
class Result:
    database: str
    products: int
    kind: str
    ours: Cost
    bare: Cost


def costs_of(kind: Kind, session: Session, rounds: int, backend: int | None) -> tuple[Cost, Cost]:
    """In turns, so that whatever else the machine does hits both alike."""
    sides: list[Callable[[], int]] = [kind.ours, lambda: kind.bare.ask(session)]
    walls: list[list[float]] = [[], []]
    cpus: list[list[float]] = [[], []]
    found = [side() for _ in range(3) for side in sides][-2:]
    for _ in range(rounds):
        for number, side in enumerate(sides):
            wall, cpu = time.perf_counter(), _cpu(backend)
            side()
            cpus[number].append(_cpu(backend) - cpu)
            walls[number].append(time.perf_counter() - wall)
    ours, theirs = (_cost(walls[number], cpus[number], found[number], backend) for number in (0, 1))
    return ours, theirs


def _cost(walls: Sequence[float], cpus: Sequence[float], found: int, backend: int | None) -> Cost:
    cpu = statistics.fmean(cpus) if backend else statistics.median(cpus)
    slow = statistics.quantiles(walls, n=20)[-1]
    return Cost(1000 * statistics.median(walls), 1000 * slow, 1000 * cpu, found)


def _cpu(backend: int | None) -> float:
    if backend is None:
        return time.process_time()
    fields = Path(f"/proc/{backend}/stat").read_text().rpartition(")")[2].split()
    return time.process_time() + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def table_of(results: Sequence[Result]) -> str:
    lines = [
        f"\n{results[0].database}, {results[0].products:,} products\n",
        "| query | wall ms p50 / p95 | CPU ms | bare SQL: wall p50, CPU | ours / bare, CPU | aim (CPU) | rows |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in results:
        aim = dict(zip((100_000, 1_000_000), AIMS[one.kind], strict=True)).get(one.products)
        shown = f"{aim:g}" if aim and one.database == "sqlite" else "–"
        lines.append(
            f"| {one.kind} | {one.ours.wall_p50:.2f} / {one.ours.wall_p95:.2f} | {one.ours.cpu:.2f} |"
            f" {one.bare.wall_p50:.2f}, {one.bare.cpu:.2f} | {one.ours.cpu / max(one.bare.cpu, 0.001):.2f} | {shown} |"
            f" {one.ours.found} and {one.bare.found} |"
        )
    return "\n".join(lines)


def collected(file: Path, results: list[Result]) -> list[Result]:
    kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    new = {(result.database, result.products) for result in results}
    older = [row for row in kept if (row["database"], row["products"]) not in new]
    everything = [
        Result(**{**row, "ours": Cost(**row["ours"]), "bare": Cost(**row["bare"])}) for row in older
    ] + results
    file.write_text(json.dumps([asdict(result) for result in everything], indent=1) + "\n", encoding="utf-8")
    return everything
