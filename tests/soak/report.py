"""The report of a soak, as Markdown and JSON, and its verdict."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from tests.soak.gauges import Gauges, GaugeSample, slope_per_hour
from tests.soak.ledger import Note, SoakLedger
from tests.soak.soaked_server import SoakedServer

WARM_UP_SECONDS = 300  # caches fill; of a life of less than twice that, its first half
_MIN_JUDGED_SECONDS = 1200  # of the longest life behind its warm-up, for a verdict on its memory
MAX_SLOPE_MB_PER_HOUR = 60.0
MAX_MORE_DESCRIPTORS, MAX_MORE_THREADS = 32, 16
_GAUGES = ("rss_mb", "children_mb", "num_children", "num_descriptors", "num_threads")


class SoakReport:
    def __init__(
        self, server: SoakedServer, ledger: SoakLedger, gauges: Gauges, minutes: float, stock: dict[str, int], log: str
    ) -> None:
        self._server, self._ledger, self._gauges = server, ledger, gauges
        self._minutes, self._stock, self._log = minutes, stock, log
        samples = gauges.samples
        lives = {sample.life for sample in samples}
        by_length = sorted(([one for one in samples if one.life == life] for life in lives), key=_length)
        self.longest: Sequence[GaugeSample] = by_length[-1] if by_length else []
        length = _length(self.longest)
        warm_up = WARM_UP_SECONDS if length > 2 * WARM_UP_SECONDS else length / 2
        self.warm = [one for one in self.longest if one.age >= self.longest[0].age + warm_up]

    def growth(self) -> dict[str, Any]:
        """Of the life that was longest, after its warm-up."""
        if len(self.warm) < 3:
            return {"seconds": 0}
        first, last = self.warm[: max(1, len(self.warm) // 5)], self.warm[-max(1, len(self.warm) // 5) :]
        grown: dict[str, Any] = {"seconds": round(_length(self.warm))}
        for name in _GAUGES:
            ends = [median(getattr(one, name) for one in part) for part in (first, last)]
            highest = max(getattr(one, name) for one in self.longest)
            grown[name] = {"first": round(ends[0], 1), "last": round(ends[1], 1), "highest": highest}
        grown["rss_mb_per_hour"] = round(slope_per_hour([(one.age, one.rss_mb) for one in self.warm]), 1)
        return grown

    def faults(self) -> list[str]:
        found = [f"{number} {sort}" for sort, number in sorted(self._ledger.faults.items())]
        if unexpected := self._ledger.server_errors["unexpected"]:
            found.append(f"{unexpected} unexpected 5xx")
        if "Traceback" in self._log:
            found.append(f"{self._log.count('Traceback')} tracebacks in the log of the server")
        grown = self.growth()
        for name, allowed in (("num_descriptors", MAX_MORE_DESCRIPTORS), ("num_threads", MAX_MORE_THREADS)):
            if grown["seconds"] and grown[name]["last"] - grown[name]["first"] > allowed:
                found.append(f"{name} grew from {grown[name]['first']} to {grown[name]['last']}")
        if grown["seconds"] >= _MIN_JUDGED_SECONDS and grown["rss_mb_per_hour"] > MAX_SLOPE_MB_PER_HOUR:
            found.append(f"memory grew by {grown['rss_mb_per_hour']} MB an hour")
        if not self._ledger.checks["blocks that were found again"] or not self._stock["reservations"]:
            found.append("nothing was checked")
        if not grown["seconds"]:
            found.append("nothing was measured")
        return found

    def as_json(self) -> dict[str, Any]:
        ledger = self._ledger
        downs = [kill.ready_at - kill.at for kill in self._server.kills if kill.ready_at is not None]
        return {
            "minutes": round(self._minutes, 1),
            "verdict": "passed" if not self.faults() else "failed",
            "faults": self.faults(),
            "lost": ledger.faults["lost"],
            "doubled": ledger.faults["doubled"],
            "different": ledger.faults["different"],
            "kills": len(self._server.kills),
            "seconds_down": {"median": round(median(downs), 1), "highest": round(max(downs), 1)} if downs else {},
            "requests": ledger.num_answers,
            "answers": {kind: dict(outcomes) for kind, outcomes in sorted(ledger.answers.items())},
            "latency_seconds": {kind: _latency(sorted(times)) for kind, times in sorted(ledger.latencies.items())},
            "checks": dict(sorted(ledger.checks.items())),
            "fault_notes": [asdict(note) for note in ledger.fault_notes],
            "server_errors": dict(ledger.server_errors),
            "server_error_notes": [asdict(note) for note in ledger.server_error_notes],
            "stock": self._stock,
            "growth": self.growth(),
            "event_loop_lag": self._gauges.lag(),
            "samples": self._gauges.as_json(),
        }

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report.json").write_text(json.dumps(self.as_json(), indent=1))
        page = folder / "report.md"
        page.write_text(self._page(self.as_json()))
        return page

    def _page(self, told: dict[str, Any]) -> str:
        grown, ledger = told["growth"], self._ledger
        gauges = [[name, *grown[name].values()] for name in _GAUGES if name in grown]
        lines = [
            f"# Soak of {told['minutes']} minutes: {told['verdict']}",
            "",
            *(f"* {fault}" for fault in told["faults"]),
            f"* {told['requests']} requests, {told['kills']} kills, {told['seconds_down']} seconds until ready again",
            f"* lost {told['lost']}, doubled {told['doubled']}, different {told['different']}",
            f"* stock: {told['stock']}",
            f"* 5xx: {told['server_errors'] or 'none'}",
            "",
            "## The longest life of the process, after its warm-up",
            "",
            f"{grown['seconds']} s; resident memory {grown.get('rss_mb_per_hour', 0)} MB an hour.",
            "",
            *_table(["gauge", "first fifth", "last fifth", "highest"], gauges),
            "",
            "## Over all",
            "",
            *_table(_OVER_ALL, [[getattr(one, name) for name in _OVER_ALL] for one in _some(self._gauges.samples)]),
            "",
            f"Callbacks of the event loop that came late (seconds: how many, summed): {told['event_loop_lag']}",
            "",
            "## Requests",
            "",
            *_table(["kind", "answers", "median s", "95 % s"], [_row(kind, told) for kind in told["answers"]]),
            "",
            "## What was checked",
            "",
            *_table(["what", "held"], [[what, number] for what, number in told["checks"].items()]),
            "",
            "## Faults",
            "",
            *_notes(ledger.fault_notes),
            "",
            "## 5xx",
            "",
            *_notes(ledger.server_error_notes),
        ]
        return "\n".join(lines) + "\n"


_OVER_ALL = [
    "at",
    "life",
    "rss_mb",
    "num_descriptors",
    "num_threads",
    "num_children",
    "sessions_mb",
    "market_mb",
    "log_mb",
]


def _length(samples: Sequence[GaugeSample]) -> float:
    return samples[-1].age - samples[0].age if samples else 0.0


def _some(samples: Sequence[GaugeSample], number: int = 25) -> Sequence[GaugeSample]:
    return samples[:: max(1, len(samples) // number)]


def _latency(times: list[float]) -> dict[str, float]:
    high = quantiles(times, n=20)[-1] if len(times) > 1 else times[0]
    return {"median": round(median(times), 3), "95%": round(high, 3)}


def _row(kind: str, told: dict[str, Any]) -> list[Any]:
    times = told["latency_seconds"].get(kind, {"median": "–", "95%": "–"})
    return [kind, ", ".join(f"{status}: {number}" for status, number in told["answers"][kind].items()), *times.values()]


def _table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    written = ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|", *written]


def _notes(notes: Sequence[Note]) -> list[str]:
    return [f"* {note.seconds} s, {note.kind}: `{note.text}`" for note in notes] or ["None."]
