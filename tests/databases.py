"""Databases of the marketplace with their tables made: copies of one that was migrated once in this process."""

import shutil
import sqlite3
import tempfile
from contextlib import closing
from functools import cache
from pathlib import Path

from tis.database.database import Database
from tis.marketplace.market import migrate


def new_sqlite_market(path: Path) -> str:
    shutil.copyfile(_template(), path)
    path.chmod(0o600)
    return f"sqlite:///{path}"


@cache
def _template() -> Path:
    path = Path(_folder().name) / "template.db"
    database = Database(f"sqlite:///{path}")
    migrate(database)
    database.close()
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


@cache
def _folder() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="tis-template-")
