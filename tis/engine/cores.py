"""The cores that this process may use, and how many threads its models compute with."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # comes with accelerate

log = logging.getLogger("tis.engine")

_CPUS, _NODES = Path("/sys/devices/system/cpu"), Path("/sys/devices/system/node")


def allowed_cpus() -> frozenset[int]:
    """By the affinity of this process, numbered as the system does. Two of them may be one core."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def container_cores(path: Path = Path("/sys/fs/cgroup/cpu.max")) -> float | None:
    """The quota of the container; None without one."""
    try:
        quota, period = path.read_text(encoding="ascii").split()[:2]
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None


def available_cores() -> float:
    """Of those of the machine: the affinity of this process, and the quota of its container."""
    cores = float(len(allowed_cpus()))
    return min(cores, container_cores() or cores)


def physical_cores(cpus: frozenset[int], folder: Path = _CPUS) -> int:
    """Two hardware threads of one core share what computes: a second one only waits for it."""
    siblings = {_read(folder / f"cpu{cpu}" / "topology" / "thread_siblings_list") for cpu in cpus}
    if None in siblings:  # the system does not say
        return min(len(cpus), psutil.cpu_count(logical=False) or len(cpus))
    return len(siblings)


def best_threads() -> int:
    return max(1, min(physical_cores(allowed_cpus()), int(container_cores() or len(allowed_cpus()))))


def memory_nodes(cpus: frozenset[int], folder: Path = _NODES) -> int:
    """How many parts of the memory are near to some of these cores: one for each socket, as a rule."""
    lists = (_read(path) for path in folder.glob("node[0-9]*/cpulist"))
    return max(1, sum(not cpus.isdisjoint(_cpus_of(text or "")) for text in lists))


def is_interleaved(path: Path = Path("/proc/self/numa_maps")) -> bool:
    """Whether the memory of this process lies on all nodes in turn, as `numactl --interleave=all` asks."""
    try:
        with path.open(encoding="ascii", errors="replace") as lines:
            return "interleave" in lines.readline()
    except OSError:
        return False


def use_threads(wanted: int, *, are_set: bool) -> None:
    """Of all threads that have not computed yet. Imports torch.

    `wanted`: CPU_THREADS, or 0: as many as there are cores, unless `are_set`, by OMP_NUM_THREADS.
    """
    import torch

    before = torch.get_num_threads()
    number = wanted or (before if are_set else min(before, best_threads()))
    if number != before:
        log.info("models compute with %d threads instead of %d", number, before)
        torch.set_num_threads(number)


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None


def _cpus_of(text: str) -> Iterator[int]:
    """`0-3,8` are 0, 1, 2, 3 and 8."""
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            yield from range(int(first), int(last or first) + 1)
