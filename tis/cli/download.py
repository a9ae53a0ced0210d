"""`tis download ID...` fetches models from the Hugging Face hub, with a bar, and goes on where it was interrupted."""

import argparse
import sys
from dataclasses import replace

from tis.arguments.catalogue import catalogue_of
from tis.arguments.loading import hub_source_of
from tis.cli.ctrl_c import exit_at_once_after
from tis.cli.terminal import Terminal, detect_terminal
from tis.engine.errors import LoadFailed
from tis.engine.models.catalogue import CatalogueEntry, CatalogueError, entry_of
from tis.engine.models.hub_files import find_folder, local_bytes_of, remove_unfinished_files
from tis.observability.load_log import LoadSteps
from tis.setting_types import SettingsError
from tis.settings import Settings

DESCRIPTION = """Download models: ids and aliases of the catalogue, or any id of the Hugging Face hub.

Interrupted, the same command goes on: files that are finished are kept, a file that was begun is fetched again.
Weights are fetched as safetensors only. HF_TOKEN opens gated models, HF_HOME says where the files lie."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("models", nargs="+", metavar="ID", help="id or alias of the catalogue, or a hub id")


def run(parsed: argparse.Namespace) -> None:
    exit_at_once_after(remove_unfinished_files)
    try:
        settings = Settings.from_env()
        entries = [entry_of(catalogue_of(settings), name) for name in dict.fromkeys(parsed.models)]
    except (SettingsError, CatalogueError) as error:
        sys.exit(f"Cannot download: {error}")
    terminal = detect_terminal()
    failed = [entry.id for entry in entries if not _download(settings, entry, terminal)]
    if failed:
        sys.exit(f"Not downloaded: {', '.join(failed)}.")


def _download(settings: Settings, entry: CatalogueEntry, terminal: Terminal | None) -> bool:
    steps = LoadSteps()

    def report(stage: str, share: float | None) -> None:
        if terminal:
            terminal.show_bar(f"{entry.id}: {stage}", share)
        elif line := steps.line(entry.id, stage, share):
            print(line, file=sys.stderr, flush=True)  # noqa: T201

    try:
        if not entry.has_files:
            raise LoadFailed("it has no files to download.")
        source = hub_source_of(settings, entry)
        folder = find_folder(entry.repo, source, report)
        for place in entry.parts:
            find_folder(place, replace(source, revision=None), report)
    except LoadFailed as error:
        _say(terminal, f"{entry.id}: {error.message}")
        return False
    _say(terminal, f"{entry.id}: {local_bytes_of(folder) / 2**20:,.0f} MiB in {folder}")
    return True


def _say(terminal: Terminal | None, line: str) -> None:
    if terminal:
        terminal.print(line)
    else:
        print(line, file=sys.stderr, flush=True)  # noqa: T201
