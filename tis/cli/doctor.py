"""`tis doctor`: what this machine has, what the server will use of it, and what is slow and why."""

import argparse
import json
import os
import platform
import shutil
import socket
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

import psutil  # type: ignore[import-untyped]  # comes with accelerate

from tis import __version__
from tis.arguments import served_models_of
from tis.cli.ctrl_c import raise_keyboard_interrupt
from tis.engine.models.catalogue import CatalogueError
from tis.engine.models.hub_files import find_local_folder, local_bytes_of
from tis.http.transport.descriptors import descriptor_limit
from tis.setting_types import SettingsError
from tis.settings import Settings

DESCRIPTION = """Say what this machine has, what the server will use of it, and what is slow and why.

Starts no server, loads no model and asks no network. The exit code is 1 if `tis serve` could not start or answer."""
_PACKAGES = ("torch", "transformers", "tokenizers", "fastapi", "uvicorn", "pydantic", "numpy", "av", "Pillow", "mcp")
_FEATURES = ("avx2", "fma", "avx512f", "avx512_bf16", "avx512_vnni", "amx_bf16", "amx_int8")
_MARKS = {"ok": "  ok ", "slow": "slow ", "bad": "bad  "}
_GIB = 2**30

Verdict = Literal["ok", "slow", "bad"]


@dataclass(frozen=True, slots=True)
class Finding:
    about: str
    verdict: Verdict
    text: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(parsed: argparse.Namespace) -> None:
    raise_keyboard_interrupt()
    found = list(findings())
    if parsed.json:
        print(json.dumps([asdict(one) for one in found], indent=2))  # noqa: T201
    else:
        for one in found:
            print(f"{_MARKS[one.verdict]} {one.about:<12} {one.text}")  # noqa: T201
    if any(one.verdict == "bad" for one in found):
        sys.exit(1)


def findings() -> Iterator[Finding]:
    yield from _versions()
    yield from _processor(cpu_flags(), available_cores(), os.cpu_count() or 1)
    yield from _kernels()
    yield from _accelerator()
    try:
        settings = Settings.from_env()
    except SettingsError as error:
        yield Finding("settings", "bad", str(error))
        return
    yield from _models(settings)
    yield from _port(settings)
    yield from _files(settings)
    yield from _limits(settings)


def _versions() -> Iterator[Finding]:
    yield Finding("server", "ok", f"{__version__}, Python {platform.python_version()}, {platform.platform()}")
    known, missing = [], []
    for name in _PACKAGES:
        try:
            known.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    yield Finding("packages", "ok", ", ".join(known))
    if missing:
        yield Finding("packages", "bad", f"not installed: {', '.join(missing)}. pip install -r requirements.txt")


def cpu_flags(path: Path = Path("/proc/cpuinfo")) -> frozenset[str] | None:
    """None where the system does not say."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    return next((frozenset(line.partition(":")[2].split()) for line in lines if line.startswith("flags")), None)


def available_cores() -> float:
    """Of those of the machine: the affinity of this process, and the quota of its container."""
    cores = float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    return min(cores, container_cores() or cores)


def container_cores(path: Path = Path("/sys/fs/cgroup/cpu.max")) -> float | None:
    try:
        quota, period = path.read_text(encoding="ascii").split()[:2]
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None


def _processor(flags: frozenset[str] | None, cores: float, of_machine: int) -> Iterator[Finding]:
    if flags is not None:
        has = [name for name in _FEATURES if name in flags]
        if "avx2" in flags:
            yield Finding("processor", "ok", f"{platform.machine()} with {', '.join(has)}")
        else:
            yield Finding("processor", "slow", f"{platform.machine()} without AVX2: the C kernels run as plain code")
        if "avx2" in flags and "avx512f" not in flags:
            yield Finding("processor", "slow", "no AVX-512: large prompts take about twice as long as with it")
        elif "avx512f" in flags and not {"avx512_bf16", "amx_bf16"} & flags:
            yield Finding("processor", "slow", "no bfloat16 instructions: bfloat16 weights are widened to float32")
    text = f"{cores:g} of {of_machine} cores"
    if cores < 2:
        yield Finding("cores", "slow", f"{text}: model and server share one")
    else:
        yield Finding("cores", "ok", text)
    if (quota := container_cores()) and quota < of_machine and "OMP_NUM_THREADS" not in os.environ:
        best = max(1, int(quota))
        yield Finding("cores", "slow", f"the container gets {quota:g}, and torch sees all: set OMP_NUM_THREADS={best}")


def _kernels() -> Iterator[Finding]:
    from tis.engine.kernels.build import library_path, why_not_here

    if why := why_not_here():
        yield Finding("kernels", "slow", f"off: {why}")
    elif not library_path().exists():
        yield Finding("kernels", "slow", "not built: torch computes all. `make setup` builds them with a C compiler")
    else:
        from tis.engine.kernels.native import native_kernels

        if kernels := native_kernels():
            yield Finding("kernels", "ok", f"C kernels for {kernels.isa}")
        else:
            yield Finding("kernels", "slow", f"{library_path().name} does not suit: `make setup` builds it anew")


def _accelerator() -> Iterator[Finding]:
    from tis.engine.accelerators import accelerators

    found = accelerators()
    for one in found:
        yield Finding("gpu", "ok", f"{one.name}, {one.free_bytes / _GIB:.1f} of {one.total_bytes / _GIB:.1f} GiB free")
    if not found and shutil.which("nvidia-smi"):
        yield Finding("gpu", "slow", "nvidia-smi is here, but this torch is built without CUDA: docs/install.md")
    elif not found:
        yield Finding("gpu", "slow", "none: models compute on the processor")


def _models(settings: Settings) -> Iterator[Finding]:
    memory = psutil.virtual_memory()
    limit = container_bytes() or memory.total
    free = min(memory.available, limit)
    yield Finding("memory", "ok", f"{free / _GIB:.1f} of {min(limit, memory.total) / _GIB:.1f} GiB available")
    if psutil.swap_memory().used > _GIB:
        yield Finding("memory", "slow", f"{psutil.swap_memory().used / _GIB:.1f} GiB are swapped out")
    try:
        served = served_models_of(settings.model_copy(update={"auto_download_models": True}))
    except CatalogueError as error:
        yield Finding("model", "bad", str(error))
        return
    for entry in served:
        if not entry.has_files:
            yield Finding("model", "ok", f"{entry.id}: needs no files")
            continue
        folder = find_local_folder(entry.repo, entry.revision)
        if folder is None:
            may = settings.auto_download_models
            todo = "the first start downloads it" if may else "run `tis download` first, as AUTO_DOWNLOAD_MODELS=0"
            yield Finding("model", "slow" if may else "bad", f"{entry.id}: not on this machine; {todo}")
            continue
        size = local_bytes_of(folder)
        fits = size < free or bool(settings.quantize)
        text = f"{entry.id}: {size / _GIB:.1f} GiB on disk"
        yield Finding(
            "model", "ok" if fits else "slow", text + ("" if fits else ", more than the memory that is available")
        )


def container_bytes(path: Path = Path("/sys/fs/cgroup/memory.max")) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _port(settings: Settings) -> Iterator[Finding]:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            yield Finding("port", "bad", f"{settings.host}:{settings.port} cannot be bound: {error.strerror}. Set PORT")
        else:
            yield Finding("port", "ok", f"{settings.host}:{settings.port} is free")
    if not settings.is_local and not settings.api_keys:
        yield Finding("keys", "bad", f"none, and HOST={settings.host}: everybody who reaches it may call. Set API_KEYS")


def _files(settings: Settings) -> Iterator[Finding]:
    cache = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    yield _folder("model files", cache)
    if settings.persist_sessions:
        yield _folder("sessions", Path(settings.sessions_db_path).absolute().parent)
    kind, _, path = settings.database_url.get_secret_value().partition(":///")
    if kind == "sqlite" and path:
        yield _folder("marketplace", Path(path.partition("?")[0]).absolute().parent)


def _folder(about: str, folder: Path) -> Finding:
    there = next(one for one in (folder, *folder.parents) if one.exists())
    if not os.access(there, os.W_OK):
        return Finding(about, "bad", f"{there} cannot be written")
    free = shutil.disk_usage(there).free
    return Finding(about, "ok" if free > _GIB else "slow", f"{folder}, {free / _GIB:.1f} GiB free on its disk")


def _limits(settings: Settings) -> Iterator[Finding]:
    limit = descriptor_limit()
    if limit is not None:
        few = limit < 4096
        text = f"{limit} files and connections at once"
        yield Finding("descriptors", "slow" if few else "ok", text + (": raise `ulimit -n`" if few else ""))
    if settings.kernels == "off":
        yield Finding("kernels", "slow", "KERNELS=off: torch computes all")
    if settings.persist_sessions and settings.sessions_sync == "full":
        yield Finding("sessions", "slow", "SESSIONS_SYNC=full: every commit waits for the disk")
