"""`tis doctor`: what this machine has, what the server will use of it, and what is slow and why."""

import argparse
import json
import os
import shutil
import socket
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from tis.arguments.catalogue import served_models_of
from tis.cli.ctrl_c import raise_keyboard_interrupt
from tis.engine.machine import Finding, findings_of_accelerators, findings_of_machine, memory_bytes
from tis.engine.models.catalogue import CatalogueError
from tis.engine.models.hub_files import find_local_folder, local_bytes_of
from tis.http.transport.descriptors import descriptor_limit
from tis.setting_types import SettingsError
from tis.settings import Settings

DESCRIPTION = """Say what this machine has, what the server will use of it, and what is slow and why.

Starts no server, loads no model and asks no network. The exit code is 1 if `tis serve` could not start or answer."""
_MARKS = {"ok": "  ok ", "slow": "slow ", "bad": "bad  "}
_GIB = 2**30


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
    settings, fault = None, ""
    try:
        settings = Settings.from_env()
    except SettingsError as error:
        fault = str(error)
    yield from findings_of_machine(threads=_threads(settings))
    yield from findings_of_accelerators()
    if settings is None:
        yield Finding("settings", "bad", fault)
        return
    yield from _models(settings)
    yield from _port(settings)
    yield from _files(settings)
    yield from _limits(settings)


def _threads(settings: Settings | None) -> int | None:
    """None: as many as suit the cores."""
    of_openmp = os.environ.get("OMP_NUM_THREADS", "")
    return (settings.cpu_threads if settings else 0) or (int(of_openmp) if of_openmp.isdecimal() else None)


def _models(settings: Settings) -> Iterator[Finding]:
    free, _ = memory_bytes()
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
    if settings.store_kind == "sqlite":
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
    if settings.store_kind == "sqlite" and settings.sessions_sync == "full":
        yield Finding("sessions", "slow", "SESSIONS_SYNC=full: every commit waits for the disk")
