"""`tis backup FOLDER` copies the SQLite files of a running server, each as of one moment, and the keys beside them."""

import argparse
import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from tis.setting_types import SettingsError
from tis.settings import Settings

DESCRIPTION = """Copy the recorded streams (SESSIONS_DB_PATH), the marketplace (DATABASE_URL, if it is SQLite) and the
stored responses (RESPONSES_URL, if it is).

The server may run: each copy has everything that was committed when it began. To restore, stop the server, delete these
files with their -wal and -shm, copy these in their places, and start it. For PostgreSQL use pg_dump."""
_BUSY_SECONDS = 60.0


class BackupFailed(Exception):
    """The message says which file, and why."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where the copies go; made if it is not there")


def run(parsed: argparse.Namespace) -> None:
    try:
        settings = Settings.from_env()
        folder: Path = parsed.folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        sources = [path for path in _sqlite_files(settings) if path.exists()]
        for source in sources:
            copy_database(source, folder / source.name)
            print(f"{source}: {(folder / source.name).stat().st_size} bytes")  # noqa: T201
            for key in _keys_beside(source):
                _copy_key(key, folder / key.name)
                print(f"{key}: a secret, readable for you alone")  # noqa: T201
    except (SettingsError, BackupFailed, OSError) as error:
        sys.exit(f"Cannot back up: {error}")
    if not sources:
        sys.exit("Cannot back up: there is no SQLite file at SESSIONS_DB_PATH, DATABASE_URL or RESPONSES_URL.")


def copy_database(source: Path, target: Path) -> None:
    """A copy that is not whole never has the name `target`."""
    if target.exists():
        raise BackupFailed(f"{target} is there already")
    partial = target.with_name(target.name + ".partial")
    partial.unlink(missing_ok=True)
    try:
        with (
            closing(sqlite3.connect(source, timeout=_BUSY_SECONDS)) as origin,
            closing(sqlite3.connect(partial)) as copy,
        ):
            partial.chmod(0o600)
            # All pages in one step: one read transaction, which writers in WAL mode do not wait for.
            origin.backup(copy, pages=-1)
            copy.execute("PRAGMA journal_mode=DELETE")
            [[verdict]] = copy.execute("PRAGMA quick_check(1)").fetchall()
    except sqlite3.Error as error:
        raise BackupFailed(f"{source}: {error}") from error
    if verdict != "ok":
        raise BackupFailed(f"{source} is damaged: {verdict}")
    os.replace(partial, target)


def _sqlite_files(settings: Settings) -> Iterator[Path]:
    from tis.database.database import Database

    yield Path(settings.sessions_db_path)
    for url in (settings.database_url, settings.responses_url):
        if url is None:
            continue
        database = Database(url.get_secret_value())
        if path := database.sqlite_path:
            yield path
        database.close()


def _keys_beside(database: Path) -> list[Path]:
    """What signs links of streams, and tokens of the marketplace: without it these are invalid after a restore."""
    names = (f"{database.name}.key", "marketplace.key")
    return [path for path in map(database.with_name, names) if path.exists()]


def _copy_key(key: Path, target: Path) -> None:
    if target.exists() and target.read_bytes() == key.read_bytes():
        return  # the databases lie in one folder
    with open(target, "xb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file, key.open("rb") as source:
        shutil.copyfileobj(source, file)
