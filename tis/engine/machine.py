"""What this machine has, what the engine uses of it, and what is slow and why: for `tis doctor` and GET /v1/machine."""

import os
import platform
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

import psutil  # type: ignore[import-untyped]  # comes with accelerate

from tis import __version__
from tis.engine.cores import allowed_cpus, available_cores, is_interleaved, memory_nodes
from tis.engine.kernels.build import library_path, why_not_here

_PACKAGES = ("torch", "transformers", "tokenizers", "fastapi", "uvicorn", "pydantic", "numpy", "av", "Pillow", "mcp")
_FEATURES = ("avx2", "fma", "avx512f", "avx512_bf16", "avx512_vnni", "amx_bf16", "amx_int8")
_GIB = 2**30

Verdict = Literal["ok", "slow", "bad"]


@dataclass(frozen=True, slots=True)
class Finding:
    """`code` and `values` say the same as `text`, for programs that say it in another language."""

    about: str
    verdict: Verdict
    text: str
    code: str | None = None
    values: Mapping[str, str | float] = field(default_factory=dict)


def findings_of_machine(*, threads: int | None, with_torch: bool = True) -> Iterator[Finding]:
    """Reads files. `threads`: those of models, where that is known or somebody has set them.

    `with_torch`: imports torch to load the kernels; else they are judged by their file.
    """
    yield from _versions()
    yield from _processor(cpu_flags(), available_cores(), os.cpu_count() or 1)
    yield from crowd(load_average(), os.cpu_count() or 1)
    yield from crowded_threads(threads, available_cores())
    yield from sockets(memory_nodes(allowed_cpus()), interleaved=is_interleaved())
    yield from _kernels(with_torch=with_torch)
    free, limit = memory_bytes()
    values = {"free": round(free / _GIB, 1), "limit": round(limit / _GIB, 1)}
    yield Finding("memory", "ok", f"{values['free']:.1f} of {values['limit']:.1f} GiB available", "memory", values)
    if (swapped := psutil.swap_memory().used) > _GIB:
        amount = round(swapped / _GIB, 1)
        yield Finding("memory", "slow", f"{amount:.1f} GiB are swapped out", "swapped", {"amount": amount})


def _versions() -> Iterator[Finding]:
    system = platform.platform()
    values = {"server": __version__, "python": platform.python_version(), "system": system}
    text = f"{values['server']}, Python {values['python']}, {system}"
    yield Finding("server", "ok", text, "server", values)
    known, missing = [], []
    for name in _PACKAGES:
        try:
            known.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    yield Finding("packages", "ok", ", ".join(known), "packages", {"known": ", ".join(known)})
    if missing:
        names = ", ".join(missing)
        text = f"not installed: {names}. pip install -r requirements.txt"
        yield Finding("packages", "bad", text, "missing_packages", {"names": names})


def cpu_flags(path: Path = Path("/proc/cpuinfo")) -> frozenset[str] | None:
    """None where the system does not say."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    return next((frozenset(line.partition(":")[2].split()) for line in lines if line.startswith("flags")), None)


def _processor(flags: frozenset[str] | None, cores: float, of_machine: int) -> Iterator[Finding]:
    machine = platform.machine()
    if flags is not None:
        has = ", ".join(name for name in _FEATURES if name in flags)
        if "avx2" in flags:
            values = {"machine": machine, "features": has}
            yield Finding("processor", "ok", f"{machine} with {has}", "features", values)
        else:
            text = f"{machine} without AVX2: the C kernels run as plain code"
            yield Finding("processor", "slow", text, "no_avx2", {"machine": machine})
        if "avx2" in flags and "avx512f" not in flags:
            text = "no AVX-512: large prompts take about twice as long as with it"
            yield Finding("processor", "slow", text, "no_avx512")
        elif "avx512f" in flags and not {"avx512_bf16", "amx_bf16"} & flags:
            text = "no bfloat16 instructions: bfloat16 weights are widened to float32"
            yield Finding("processor", "slow", text, "no_bfloat16")
    text = f"{cores:g} of {of_machine} cores"
    counts: dict[str, str | float] = {"cores": f"{cores:g}", "of": of_machine}
    if cores < 2:
        yield Finding("cores", "slow", f"{text}: model and server share one", "one_core", counts)
    else:
        yield Finding("cores", "ok", text, "cores", counts)


def load_average() -> float | None:
    """Programs that computed or waited for it, of the whole machine, in the last minute."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def crowd(load: float | None, of_machine: int) -> Iterator[Finding]:
    if load and load > 1.5 * of_machine:
        text = f"{load:.0f} threads want the {of_machine} cores of this machine: all of them wait for each other"
        yield Finding("cores", "slow", text, "crowded", {"load": f"{load:.0f}", "of": of_machine})


def crowded_threads(threads: int | None, cores: float) -> Iterator[Finding]:
    if threads and threads > max(1, cores):
        text = f"{threads} threads of models for {cores:g} cores: they wait for each other. Lower CPU_THREADS"
        yield Finding("cores", "slow", text, "too_many_threads", {"threads": threads, "cores": f"{cores:g}"})


def sockets(nodes: int, *, interleaved: bool) -> Iterator[Finding]:
    if nodes > 1 and not interleaved:
        text = f"{nodes} sockets, and the weights lie at one: start a server on each, or `numactl --interleave=all`"
        yield Finding("memory", "slow", text, "sockets", {"nodes": nodes})


def _kernels(*, with_torch: bool) -> Iterator[Finding]:
    if why := why_not_here():
        yield Finding("kernels", "slow", f"off: {why}", "kernels_not_here", {"system": sys.platform})
    elif not library_path().exists():
        text = "not built: torch computes all. `make setup` builds them with a C compiler"
        yield Finding("kernels", "slow", text, "kernels_not_built")
    elif not with_torch:
        yield Finding("kernels", "ok", "C kernels, which the first model loads", "kernels_later")
    else:
        from tis.engine.kernels.native import native_kernels

        if kernels := native_kernels():
            yield Finding("kernels", "ok", f"C kernels for {kernels.isa}", "kernels", {"isa": kernels.isa})
        else:
            name = library_path().name
            yield Finding("kernels", "slow", f"{name} does not suit: `make setup` builds it anew", "kernels_unfit")


def findings_of_accelerators() -> Iterator[Finding]:
    """Imports torch."""
    from tis.engine.accelerators import accelerators

    found = accelerators()
    for one in found:
        free, total = f"{one.free_bytes / _GIB:.1f}", f"{one.total_bytes / _GIB:.1f}"
        values = {"name": one.name, "free": free, "total": total}
        yield Finding("gpu", "ok", f"{one.name}, {free} of {total} GiB free", "gpu", values)
    if not found and shutil.which("nvidia-smi"):
        text = "nvidia-smi is here, but this torch is built without CUDA: docs/install.md"
        yield Finding("gpu", "slow", text, "gpu_without_cuda")
    elif not found:
        yield Finding("gpu", "slow", "none: models compute on the processor", "no_gpu")


def memory_bytes() -> tuple[int, int]:
    """What is available, and the most that there is: of the machine, or of the container."""
    memory = psutil.virtual_memory()
    limit = min(container_bytes() or memory.total, memory.total)
    return min(memory.available, limit), limit


def container_bytes(path: Path = Path("/sys/fs/cgroup/memory.max")) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
