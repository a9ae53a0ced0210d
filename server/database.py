"""One database: its pool, its transactions, its migrations. Knows no table."""

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, DisconnectionError, TimeoutError
from sqlalchemy.orm import Session
from sqlalchemy.pool import QueuePool

from server.database_faults import is_gone, reason_of, took_too_long
from server.errors import DatabaseUnavailable

_log = logging.getLogger("tis.database")
_LONGEST_WAIT_SECONDS = 10
_LONGEST_SQLITE_READ_SECONDS = 5.0
_SQLITE_STEPS_BETWEEN_LOOKS = 50_000  # about a millisecond: a look at the clock costs nothing beside it
_MIGRATION_LOCK = 7_415_001  # any number that nobody else takes in this PostgreSQL database
_migrating = threading.Lock()  # Alembic keeps the migration under way in globals: one at a time, of all databases


class DatabaseUrlError(Exception):
    """Says what is wrong without the URL itself: it may hold a password."""


class Database:
    """Opens nothing before the first transaction, so that a server starts while its database is away."""

    def __init__(self, url: str) -> None:
        try:
            self._url = make_url(url)
            self._engine = _engine_of(url)
        except (ArgumentError, ImportError) as error:
            reason = "nothing here reads it" if isinstance(error, ArgumentError) else f"its driver is missing: {error}"
            raise DatabaseUrlError(f"DATABASE_URL cannot be used, {reason}") from None
        self._writers = self._engine.execution_options(writes=True)
        self._writing = threading.Lock()
        self.answers = True  # as far as the latest transaction knows

    @property
    def dialect(self) -> str:
        return self._engine.dialect.name

    @property
    def name(self) -> str:
        """For people to read."""
        return self._url.render_as_string(hide_password=True)

    @property
    def folder(self) -> Path | None:
        """Where the file lies, for what must lie beside it; None for a server."""
        is_file = self.dialect == "sqlite" and self._url.database not in (None, "", ":memory:")
        return Path(str(self._url.database)).absolute().parent if is_file else None

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """What one moment of the database looks like. Nothing is kept."""
        with self._told_when_gone(), Session(self._engine) as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """One transaction, kept whole at the end of the block or not at all. Closed here and nowhere else."""
        with self._turn(), self._told_when_gone(), Session(self._writers) as session, session.begin():
            yield session

    def migrate(self, folder: Path, target: str = "head") -> None:
        """To `target`, upwards or (`base`, `-1`) downwards; several processes may ask at once."""
        from alembic import command

        with (
            _migrating,
            self._turn(),
            self._told_when_gone(),
            self._writers.connect() as connection,
            connection.begin(),
        ):
            if self.dialect == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _MIGRATION_LOCK})
            config = _alembic_config(folder, connection)
            if target == "base" or target.startswith("-"):
                command.downgrade(config, target)
            else:
                command.upgrade(config, target)

    def is_migrated(self, folder: Path) -> bool:
        from alembic.migration import MigrationContext
        from alembic.script import ScriptDirectory

        with self._told_when_gone(), self._engine.connect() as connection:
            heads = ScriptDirectory.from_config(_alembic_config(folder, connection)).get_heads()
            return set(MigrationContext.configure(connection).get_current_heads()) == set(heads)

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """SQLite lets one writer in at a time and makes the others poll; threads of this process queue instead."""
        if self.dialect != "sqlite":
            yield
        elif self._writing.acquire(timeout=_LONGEST_WAIT_SECONDS):
            try:
                yield
            finally:
                self._writing.release()
        else:
            raise _unavailable()

    @contextmanager
    def _told_when_gone(self) -> Iterator[None]:
        """What a database refuses for reasons of its own is a 503; what it refuses because of us is a fault of ours."""
        try:
            yield
        except (DBAPIError, TimeoutError) as error:
            if not is_gone(error):
                raise
            if took_too_long(error):
                _log.warning("the database was told to give up on what takes too long")
                raise DatabaseUnavailable("This takes the database too long.", retry_after=2) from error
            if self.answers:
                _log.warning("the database does not answer: %s", reason_of(error))
            self.answers = False
            raise _unavailable() from error
        if not self.answers:
            _log.warning("the database answers again")
        self.answers = True


def _engine_of(url: str) -> Engine:
    dialect = make_url(url).get_backend_name()
    if dialect == "sqlite":
        engine = _sqlite_engine(url)
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "checkout", _require_same_file)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    arguments: dict[str, Any] = {}
    if dialect == "postgresql":
        # Times are stored and shown in UTC, whatever the server is set to.
        limit = _LONGEST_WAIT_SECONDS * 1000
        arguments = {"connect_timeout": 5, "options": f"-c statement_timeout={limit} -c timezone=UTC"}
    return create_engine(url, connect_args=arguments, pool_pre_ping=True, pool_size=16, max_overflow=32, pool_timeout=5)


def _sqlite_engine(url: str) -> Engine:
    waiting = {"timeout": _LONGEST_WAIT_SECONDS}
    if make_url(url).database in (None, "", ":memory:"):
        # Each connection would have a memory of its own: there is one, and everybody waits for it.
        one = {"poolclass": QueuePool, "pool_size": 1, "max_overflow": 0, "pool_timeout": _LONGEST_WAIT_SECONDS}
        return create_engine(url, connect_args={**waiting, "check_same_thread": False}, **one)
    return create_engine(url, connect_args=waiting, pool_size=16, max_overflow=32)


def _prepare_sqlite(connection: Any, record: Any) -> None:
    # Without this sqlite3 begins transactions by itself, and never with IMMEDIATE.
    connection.isolation_level = None
    for pragma in (
        "foreign_keys=ON",
        "journal_mode=WAL",
        "synchronous=NORMAL",
        "temp_store=MEMORY",
        "cache_size=-32768",
        "mmap_size=1073741824",
    ):
        _patiently(connection, f"PRAGMA {pragma}")
    record.info["file"] = _file_of(connection)


def _patiently(connection: Any, pragma: str) -> None:
    """Who turns a new file to WAL locks out the others without the usual waiting."""
    end = time.monotonic() + _LONGEST_WAIT_SECONDS
    while True:
        try:
            connection.execute(pragma)
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
        time.sleep(0.01)


def _file_of(connection: Any) -> tuple[str, tuple[int, int] | None]:
    """What it is called, and which it is."""
    name = str(connection.execute("PRAGMA database_list").fetchone()[2])
    return name, _identity(name)


def _identity(name: str) -> tuple[int, int] | None:
    try:
        found = os.stat(name)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _require_same_file(connection: Any, record: Any, proxy: object) -> None:
    # An open file goes on working after it was deleted or replaced, and takes everything written with it.
    name, identity = record.info["file"]
    if name and _identity(name) != identity:
        raise DisconnectionError("the file is not there any more")


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that reads first and writes later cannot wait for another writer: SQLite refuses it at once.
    writes = connection.get_execution_options().get("writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
    # What only reads has others waiting for its thread; what writes is bounded by what a request may bring.
    deadline = None if writes else time.monotonic() + _LONGEST_SQLITE_READ_SECONDS
    _interrupt_after(connection.connection.dbapi_connection, deadline)


def _interrupt_after(connection: Any, deadline: float | None) -> None:
    look = None if deadline is None else lambda: time.monotonic() > deadline
    connection.set_progress_handler(look, _SQLITE_STEPS_BETWEEN_LOOKS)


def _alembic_config(folder: Path, connection: Connection) -> Any:
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    return config


def _unavailable() -> DatabaseUnavailable:
    return DatabaseUnavailable("The database does not answer. Try again shortly.", retry_after=2)
