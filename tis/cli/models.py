"""`tis models` lists the catalogue: what is on this machine, its size, and what a running server has loaded."""

import argparse
import json
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence

from tis.arguments.catalogue import catalogue_of, served_models_of
from tis.arguments.loading import hub_source_of
from tis.cli.ctrl_c import raise_keyboard_interrupt
from tis.engine.models.catalogue import CatalogueEntry, CatalogueError
from tis.engine.models.hub_files import find_local_folder, is_complete, local_bytes_of
from tis.setting_types import SettingsError
from tis.settings import Settings

DESCRIPTION = """List the models of the catalogue and of the settings.

ON DISK is the size of the files on this machine. SERVER is what a server on HOST and PORT says of the model now:
loaded, loading, unloaded; `-` if it does not serve it, or if no server answers there."""
_HEAD = ("MODEL", "TASK", "ON DISK", "SERVER", "ALIASES")
_SECONDS = 2.0
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="as JSON, sizes in bytes")


def run(parsed: argparse.Namespace) -> None:
    raise_keyboard_interrupt()
    try:
        settings = Settings.from_env()
        entries = _entries(settings)
    except (SettingsError, CatalogueError) as error:
        sys.exit(f"Cannot list: {error}")
    states = _states_at_server(settings)
    rows = [_row(settings, entry, states) for entry in entries]
    if parsed.json:
        print(json.dumps(rows, indent=2))  # noqa: T201
        return
    for line in _table(rows):
        print(line)  # noqa: T201


def _entries(settings: Settings) -> list[CatalogueEntry]:
    entries = catalogue_of(settings)
    known = {entry.repo for entry in entries}
    with_missing = settings.model_copy(update={"auto_download_models": True})  # here a missing model is no error
    return [*(entry for entry in served_models_of(with_missing) if entry.repo not in known), *entries]


def _row(settings: Settings, entry: CatalogueEntry, states: Mapping[str, str]) -> dict[str, object]:
    source = hub_source_of(settings, entry)
    folder = find_local_folder(entry.repo, entry.revision) if entry.has_files else None
    return {
        "id": entry.id,
        "task": entry.task,
        "aliases": list(entry.aliases),
        "bytes": local_bytes_of(folder) if folder else None,
        "complete": not entry.has_files or (folder is not None and is_complete(entry.repo, source)),
        "server": states.get(entry.id),
    }


def _states_at_server(settings: Settings) -> Mapping[str, str]:
    host = "127.0.0.1" if settings.host in ("0.0.0.0", "::") else settings.host
    address = f"[{host}]" if ":" in host else host
    keys = [key.get_secret_value() for key in settings.api_keys]
    headers = {"Authorization": f"Bearer {keys[0]}"} if keys else {}
    scheme = "https" if settings.ssl_certfile else "http"
    request = urllib.request.Request(f"{scheme}://{address}:{settings.port}/v1/models", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
            listed = json.loads(answer.read())["data"]
        return {str(model["id"]): str(model.get("status", "served")) for model in listed}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # no server there, or one of another kind
        return {}


def _table(rows: Sequence[Mapping[str, object]]) -> Iterator[str]:
    cells = [_HEAD, *(tuple(_cells(row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def _cells(row: Mapping[str, object]) -> Iterator[str]:
    size, aliases = row["bytes"], row["aliases"]
    yield str(row["id"])
    yield str(row["task"])
    yield _on_disk(size) + ("" if row["complete"] else ", incomplete") if isinstance(size, int) else "-"
    yield str(row["server"] or "-")
    yield ", ".join(aliases) if isinstance(aliases, list) else ""


def _on_disk(size: float) -> str:
    for unit in _UNITS[:-1]:
        if size < 1024:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} {_UNITS[-1]}"
