"""The file of a SQLite database: the first connection opens or creates it, later ones open the same file or none.

A file that is made anew where the database was would be an empty market that nobody asked for.
"""

import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.exc import DisconnectionError

Identity = tuple[int, int]  # device and inode


class DatabaseFileGone(sqlite3.OperationalError):
    """The file was moved, deleted or replaced while the server ran."""


class DatabaseFile:
    def __init__(self) -> None:
        self._identity: Identity | None = None  # since the first connection
        self._missing: Path | None = None  # before it

    @property
    def created(self) -> Path | None:
        return self._missing if self._identity else None

    def watch(self, engine: Engine) -> None:
        event.listen(engine, "do_connect", self._connect)
        event.listen(engine, "connect", self._remember)
        event.listen(engine, "checkout", self._require_same)

    def _connect(self, dialect: Dialect, record: Any, arguments: list[Any], options: dict[str, Any]) -> Any:
        path = str(arguments[0])
        if path.startswith("file:"):
            return None
        if self._identity is None:
            self._missing = None if os.path.exists(path) else Path(path)
            if self._missing:
                _create_private(path)
            return None
        self._require(path)
        # Another process may take the file away at this moment: `rw` never creates one.
        return dialect.connect(f"{Path(path).as_uri()}?mode=rw", **options, uri=True)

    def _remember(self, connection: Any, record: Any) -> None:
        path = str(connection.execute("PRAGMA database_list").fetchone()[2])
        if path and self._identity is None:
            self._identity = _identity_of(path)
        record.info["path"] = path
        if path:
            self._require(path)

    def _require_same(self, connection: Any, record: Any, proxy: object) -> None:
        # A file that was deleted or replaced still works for open connections, but what they write is lost.
        path = record.info["path"]
        if path and _identity_of(path) != self._identity:
            raise DisconnectionError("the database file was moved, deleted or replaced")

    def _require(self, path: str) -> None:
        if _identity_of(path) != self._identity:
            raise DatabaseFileGone(f"{path} is gone or another file: put the same file back, or restart the server")


def _create_private(path: str) -> None:
    """It has hashes of passwords, e-mails and phones. SQLite gives the files beside it the same permissions."""
    with suppress(OSError):  # SQLite reports it
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))


def _identity_of(path: str) -> Identity | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
