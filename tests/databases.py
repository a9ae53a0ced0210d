"""SQLite files with the tables of the market for tests: copies of one that was migrated, which takes 0.3 s."""

import shutil
import tempfile
from functools import cache
from pathlib import Path

from tis.database.database import Database
from tis.marketplace.market import migrate


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
