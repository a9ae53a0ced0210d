"""Databases for tests: SQLite files are copies of a migrated one, which takes 0.3 s; servers keep theirs in memory."""

import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from tis.database.database import Database
from tis.marketplace.market import migrate

_MEMORY = "/dev/shm"
_NEEDED = 6 * 2**30  # PostgreSQL takes 9 MB for each database, 1 GB in all; two processes of tests have a server each


def place_of_servers() -> str:
    """In memory where there is such a folder, and enough of it: a new database on a disk takes six times as long."""
    has_room = os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free >= _NEEDED
    return _MEMORY if has_room else "/tmp"


def new_sqlite(folder: Path, name: str = "market.db") -> str:
    """The URL of a migrated file."""
    shutil.copy(Path(_folder().name) / "market.db", folder / name)
    return f"sqlite:///{folder}/{name}"


@cache
def _folder() -> "tempfile.TemporaryDirectory[str]":
    """Once in each process of the tests."""
    folder = tempfile.TemporaryDirectory(prefix="tis-tests-")
    database = Database(f"sqlite:///{folder.name}/market.db")
    migrate(database)
    database.close()
    return folder
