"""A database: connection pool, transactions and migrations. It knows nothing of the tables."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, TimeoutError
from sqlalchemy.orm import Session
from sqlalchemy.pool import QueuePool

from tis.database.engines import make_engine
from tis.database.error_codes import is_busy, is_unavailable, short_message
from tis.database.errors import DatabaseUnavailable, DatabaseUrlError
from tis.database.sqlite_file import DatabaseFile, DatabaseFileGone
from tis.database.statement_spans import span_statements

_log = logging.getLogger("tis.database")
_MIGRATION_LOCK_ID = 7_415_001  # of an advisory lock: any number that no other program uses in this database
_NO_ANSWER = "The database does not answer."
_FILE_GONE = "The database file was moved, deleted or replaced: put the same file back, or restart the server."
READ_MEMO = "read"  # in `info` of a session that only reads: what readers have read and need not ask again
_UNKNOWN_TABLES = "Another version of the server made the tables: start that one, or name another database."
_migration_lock = threading.Lock()  # Alembic has global state: one migration at a time in this process


class Database:
    """Connects at the first transaction, so the server starts even while its database is unavailable."""

    def __init__(
        self,
        url: str,
        *,
        wait_seconds: float = 10,
        read_seconds: float = 5,
        pool_size: int | None = None,
        with_spans: bool = False,
        variable: str = "DATABASE_URL",
    ) -> None:
        """`wait_seconds` limits waits for locks and statements; `read_seconds` a read transaction on SQLite.

        `pool_size`: at most so many connections. `variable`: the setting that has the URL, for messages.
        """
        self._wait_seconds = wait_seconds
        self._file = DatabaseFile()
        try:
            self._url = make_url(url)
            self._engine = make_engine(
                url, wait_seconds=wait_seconds, read_seconds=read_seconds, file=self._file, pool_size=pool_size
            )
        except (ArgumentError, ImportError) as error:
            reason = (
                "its URL is not valid for SQLAlchemy"
                if isinstance(error, ArgumentError)
                else f"its driver is missing ({error})"
            )
            raise DatabaseUrlError(f"{variable} cannot be used: {reason}") from None
        if with_spans:
            span_statements(self._engine)
        self._write_engine = self._engine.execution_options(writes=True)
        self._write_lock = threading.Lock()
        self._num_failures = 0
        self.failure: str | None = None  # as of the latest transaction, without addresses and paths

    @property
    def dialect(self) -> str:
        return self._engine.dialect.name

    @property
    def name(self) -> str:
        """The URL without its password, for messages."""
        return self._url.render_as_string(hide_password=True)

    @property
    def pool_use(self) -> tuple[int, int]:
        """Connections in use, and how many there may be at once."""
        pool = self._engine.pool
        assert isinstance(pool, QueuePool)
        return pool.checkedout(), pool.size() + max(0, pool._max_overflow)

    @property
    def folder(self) -> Path | None:
        """The folder of the SQLite file; None for a database server or a database in memory."""
        is_file = self.dialect == "sqlite" and self._url.database not in (None, "", ":memory:")
        return Path(str(self._url.database)).absolute().parent if is_file else None

    @property
    def sqlite_path(self) -> Path | None:
        folder = self.folder
        return folder / Path(str(self._url.database)).name if folder else None

    @property
    def is_available(self) -> bool:
        return self.failure is None

    @property
    def created_file(self) -> Path | None:
        """The SQLite file, if there was none before the first connection."""
        return self._file.created

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A transaction that reads one snapshot of the database and is never committed."""
        with self._translate_errors(), Session(self._engine, info={READ_MEMO: {}}) as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """A transaction: committed at the end of the block, rolled back if the block raises. Nothing else commits."""
        with self._single_writer(), self._translate_errors(), Session(self._write_engine) as session, session.begin():
            yield session

    def migrate(self, folder: Path, target: str = "head", *, may_be_later: bool = False) -> None:
        """Migrates up to `target`, or down to it (`base`, `-1`). Several processes may call this at the same time.

        `may_be_later`: tables that a later version of the server has made are used as they are.
        """
        from alembic import command
        from alembic.script.revision import ResolutionError
        from alembic.util import CommandError

        with (
            _migration_lock,
            self._single_writer(),
            self._translate_errors(),
            self._write_engine.connect() as connection,
            connection.begin(),
            self._migration_turn(connection),
        ):
            config = _alembic_config(folder, connection)
            try:
                if target == "base" or target.startswith("-"):
                    command.downgrade(config, target)
                else:
                    command.upgrade(config, target)
            except CommandError as error:
                if not isinstance(error.__cause__, ResolutionError):
                    raise
                if may_be_later:
                    _log.info("a later version of the server has made the tables: they are used as they are")
                    return
                if self.is_available:
                    _log.warning("%s (%s)", _UNKNOWN_TABLES, error)
                self.failure = _UNKNOWN_TABLES
                raise DatabaseUnavailable(_UNKNOWN_TABLES) from error

    @contextmanager
    def _migration_turn(self, connection: Connection) -> Iterator[None]:
        """One process at a time. SQLite's transactions that write take turns anyway."""
        if self.dialect == "postgresql":
            # Altering a large table may take long, and so may waiting for another process that migrates.
            connection.execute(text("SET LOCAL statement_timeout = 0"))
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _MIGRATION_LOCK_ID})
        if self.dialect != "mysql":
            yield
            return
        # Every change of a table commits there, so no lock of a transaction would last. It is the connection's.
        connection.execute(text("SELECT GET_LOCK(:lock, 3600)"), {"lock": _mysql_lock(connection)})
        try:
            yield
        finally:
            if not connection.invalidated:
                connection.execute(text("SELECT RELEASE_LOCK(:lock)"), {"lock": _mysql_lock(connection)})

    def is_migrated(self, folder: Path) -> bool:
        from alembic.migration import MigrationContext
        from alembic.script import ScriptDirectory

        with self._translate_errors(), self._engine.connect() as connection:
            heads = ScriptDirectory.from_config(_alembic_config(folder, connection)).get_heads()
            return set(MigrationContext.configure(connection).get_current_heads()) == set(heads)

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def _single_writer(self) -> Iterator[None]:
        """SQLite has one writer at a time and lets others poll; the threads of this process wait on a lock instead."""
        if self.dialect != "sqlite":
            yield
        elif self._write_lock.acquire(timeout=self._wait_seconds):
            try:
                yield
            finally:
                self._write_lock.release()
        else:
            raise _unavailable()

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Raises DatabaseUnavailable (503) if the database caused the error; errors in our SQL pass through."""
        began_after = self._num_failures
        try:
            yield
        except (DBAPIError, TimeoutError) as error:
            if not is_unavailable(error):
                raise
            if is_busy(error):
                _log.warning("the database stopped a statement at a deadline or a lock: %s", short_message(error))
                raise DatabaseUnavailable("The database took too long. Retry later.", retry_after=2) from error
            if self.is_available:
                _log.warning("the database does not answer: %s", short_message(error))
            self._num_failures += 1
            self.failure = _FILE_GONE if isinstance(getattr(error, "orig", None), DatabaseFileGone) else _NO_ANSWER
            raise _unavailable() from error
        if self._num_failures != began_after:
            return  # it failed for somebody who began later
        if not self.is_available:
            _log.warning("the database answers again")
        self.failure = None


def _mysql_lock(connection: Connection) -> str:
    """Of this database: other than in PostgreSQL, such locks are the whole server's."""
    return f"tis-{_MIGRATION_LOCK_ID}-{connection.scalar(text('SELECT DATABASE()'))}"[:64]


def _alembic_config(folder: Path, connection: Connection) -> Any:
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    return config


def _unavailable() -> DatabaseUnavailable:
    return DatabaseUnavailable("The database does not answer. Try again shortly.", retry_after=2)
