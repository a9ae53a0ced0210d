"""Looks at the process from outside while a soak runs: memory, descriptors, threads, files, pauses."""

import asyncio
import os
import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx2

from tests.soak.soaked_server import KEYS, SoakedServer

_MAX_SAMPLES = 20_000
_LAG = re.compile(r'tis_event_loop_lag_seconds_bucket\{le="([^"]+)"\} (\S+)')
_MB = 2**20


@dataclass(frozen=True)
class GaugeSample:
    at: float  # seconds since the soak began
    life: int  # of which process: the number of kills before it
    age: float  # seconds since that process was ready
    rss_mb: float
    children_mb: float
    num_children: int
    num_descriptors: int
    num_threads: int
    sessions_mb: float
    market_mb: float
    log_mb: float


class Gauges:
    def __init__(self, server: SoakedServer, every_seconds: float) -> None:
        self._server, self._every = server, every_seconds
        self._began = time.monotonic()
        self.samples: list[GaugeSample] = []
        self._lag: dict[int, Counter[str]] = {}  # of each life, the newest buckets

    async def watch(self) -> None:
        async with httpx2.AsyncClient(base_url=self._server.url, timeout=30) as http:
            while True:
                life, kills = len(self._server.kills), self._server.kills
                if not kills or kills[-1].ready_at is not None:
                    await self._look(http, life, self._began if not kills else kills[-1].ready_at or 0)
                await asyncio.sleep(self._every)

    async def _look(self, http: httpx2.AsyncClient, life: int, since: float) -> None:
        try:
            sample = await asyncio.to_thread(self._sample, life, since)
            if len(self.samples) < _MAX_SAMPLES:
                self.samples.append(sample)
            metrics = (await http.get("/metrics", headers={"Authorization": f"Bearer {KEYS['ada']}"})).text
        except (OSError, IndexError, httpx2.TransportError):
            return  # it was killed meanwhile: its files in /proc are gone, or empty
        if found := _LAG.findall(metrics):
            self._lag[life] = Counter({le: int(float(count)) for le, count in found})

    def _sample(self, life: int, since: float) -> GaugeSample:
        process, now = Path(f"/proc/{self._server.pid}"), time.monotonic()
        children = [Path(f"/proc/{child}") for child in _children(process)]
        folder = self._server.folder
        return GaugeSample(
            at=round(now - self._began, 1),
            life=life,
            age=round(now - since, 1),
            rss_mb=round(_rss(process) / _MB, 1),
            children_mb=round(sum(_rss(child) for child in children) / _MB, 1),
            num_children=len(children),
            num_descriptors=len(os.listdir(process / "fd")),
            num_threads=len(os.listdir(process / "task")),
            sessions_mb=_size(folder, "sessions.db*"),
            market_mb=_size(folder, "market.db*"),
            log_mb=_size(folder, "server.log"),
        )

    def lag(self) -> dict[str, int]:
        """How many callbacks of the event loop came so late, over all lives; bounds in seconds."""
        total: Counter[str] = Counter()
        for buckets in self._lag.values():
            total.update(buckets)
        return dict(total)

    def as_json(self) -> list[dict[str, Any]]:
        return [asdict(sample) for sample in self.samples]


def _children(process: Path) -> list[str]:
    return [pid for task in (process / "task").iterdir() for pid in (task / "children").read_text().split()]


def _rss(process: Path) -> int:
    try:
        return int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0  # it has ended


def _size(folder: Path, pattern: str) -> float:
    return round(sum(path.stat().st_size for path in folder.glob(pattern)) / _MB, 2)


def slope_per_hour(points: Sequence[tuple[float, float]]) -> float:
    """Least squares, of (seconds, value)."""
    if len(points) < 3:
        return 0.0
    mean_x, mean_y = (sum(point[axis] for point in points) / len(points) for axis in (0, 1))
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return 3600 * sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0
