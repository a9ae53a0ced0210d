"""One database: its pool, its transactions, its migrations. Knows no table."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError, TimeoutError
from sqlalchemy.orm import Session
from sqlalchemy.pool import QueuePool

from server.errors import DatabaseUnavailable

_LONGEST_WAIT_SECONDS = 10
_MIGRATION_LOCK = 7_415_001  # any number that nobody else takes in this PostgreSQL database
_migrating = threading.Lock()  # Alembic keeps the migration under way in globals: one at a time, of all databases


class Database:
    """Opens nothing before the first transaction, so that a server starts while its database is away."""

    def __init__(self, url: str) -> None:
        self._url = make_url(url)
        self._engine = _engine_of(url)
        self._writers = self._engine.execution_options(writes=True)
        # SQLite lets one writer in at a time and makes the others poll; threads of this process queue instead.
        self._turn = threading.Lock() if self.dialect == "sqlite" else nullcontext()

    @property
    def dialect(self) -> str:
        return self._engine.dialect.name

    @property
    def folder(self) -> Path | None:
        """Where the file lies, for what must lie beside it; None for a server."""
        is_file = self.dialect == "sqlite" and self._url.database not in (None, "", ":memory:")
        return Path(str(self._url.database)).absolute().parent if is_file else None

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """What one moment of the database looks like. Nothing is kept."""
        with _told_when_gone(), Session(self._engine) as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """One transaction, kept whole at the end of the block or not at all. Closed here and nowhere else."""
        with self._turn, _told_when_gone(), Session(self._writers) as session, session.begin():
            yield session

    def migrate(self, folder: Path, target: str = "head") -> None:
        """To `target`, upwards or (`base`, `-1`) downwards; several processes may ask at once."""
        from alembic import command

        with _migrating, self._turn, _told_when_gone(), self._writers.connect() as connection, connection.begin():
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

        with _told_when_gone(), self._engine.connect() as connection:
            heads = ScriptDirectory.from_config(_alembic_config(folder, connection)).get_heads()
            return set(MigrationContext.configure(connection).get_current_heads()) == set(heads)

    def close(self) -> None:
        self._engine.dispose()


def _engine_of(url: str) -> Engine:
    dialect = make_url(url).get_backend_name()
    if dialect == "sqlite":
        engine = _sqlite_engine(url)
        event.listen(engine, "connect", _prepare_sqlite)
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


def _prepare_sqlite(connection: Any, record: object) -> None:
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
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that reads first and writes later cannot wait for another writer: SQLite refuses it at once.
    writes = connection.get_execution_options().get("writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _alembic_config(folder: Path, connection: Connection) -> Any:
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    return config


@contextmanager
def _told_when_gone() -> Iterator[None]:
    """What a database refuses for reasons of its own is a 503; what it refuses because of the data is not."""
    try:
        yield
    except (DBAPIError, TimeoutError) as error:
        if isinstance(error, IntegrityError) or not _is_gone(error):
            raise
        raise DatabaseUnavailable("The database does not answer. Try again shortly.", retry_after=2) from error


def _is_gone(error: SQLAlchemyError) -> bool:
    # The driver's own names for "not now": no connection, locked, full, timed out. A missing table is one, too.
    return isinstance(error, TimeoutError) or type(error).__name__ in ("OperationalError", "InterfaceError")
