"""Makes SQLAlchemy engines for SQLite, PostgreSQL and others, with time limits for every wait."""

import math
import sqlite3
import time
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.pool import QueuePool

from tis.database.sqlite_file import DatabaseFile

_POOL: dict[str, Any] = {"pool_size": 16, "max_overflow": 32}  # together more than the threads that serve requests
# Without keepalives, a client waits for hours for a server whose machine has vanished.
_KEEPALIVES = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
# The tables fit into memory, so random reads cost little more than sequential ones; JIT takes longer than it saves.
_PLANNER_OPTIONS = "-c random_page_cost=1.1 -c jit=off"
# MariaDB alone reads what is behind /*M!: an UPDATE computes all its values from the old row, as everywhere else.
_MYSQL_MODE = "'ANSI_QUOTES,STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION' /*M!100305 , ',SIMULTANEOUS_ASSIGNMENT' */"
_STEPS_PER_DEADLINE_CHECK = 50_000  # of SQLite's virtual machine: about a millisecond
# No mmap_size: if another process truncates a mapped file, this one dies of SIGBUS; a read would raise an error.
_PRAGMAS = (
    "foreign_keys=ON",
    "journal_mode=WAL",
    "synchronous=NORMAL",
    "temp_store=MEMORY",
    "cache_size=-32768",
)


def make_engine(
    url: str, *, wait_seconds: float, read_seconds: float, file: DatabaseFile, pool_size: int | None = None
) -> Engine:
    """A transaction that writes needs the execution option `writes`: on SQLite it begins with BEGIN IMMEDIATE."""
    pool = _POOL if pool_size is None else {"pool_size": pool_size, "max_overflow": 0}
    dialect = make_url(url).get_backend_name()
    if dialect == "sqlite":
        return _sqlite_engine(url, wait_seconds, read_seconds, file, pool)
    arguments: dict[str, Any] = {}
    if dialect == "mysql":
        return _mysql_engine(url, wait_seconds, pool)
    if dialect == "postgresql":
        # Times are stored and returned in UTC, whatever the time zone of the server.
        limits = f"-c statement_timeout={round(wait_seconds * 1000)} -c timezone=UTC"
        arguments = {"connect_timeout": 5, "options": f"{limits} {_PLANNER_OPTIONS}", **_KEEPALIVES}
    return create_engine(url, connect_args=arguments, pool_pre_ping=True, pool_timeout=wait_seconds / 2, **pool)


def _mysql_engine(url: str, wait_seconds: float, pool: dict[str, Any]) -> Engine:
    # Names in double quotes, as other databases have them; values that do not fit are errors; words of the catalogue
    # and e-mail addresses are compared byte by byte.
    settings = (
        f"sql_mode = CONCAT({_MYSQL_MODE}), time_zone = '+00:00', collation_connection = 'utf8mb4_bin',"
        f" innodb_lock_wait_timeout = {max(1, round(wait_seconds))}"
    )
    arguments = {"charset": "utf8mb4", "connect_timeout": 5, "init_command": f"SET {settings}"}
    return create_engine(
        url,
        connect_args=arguments,
        # The default, REPEATABLE READ, locks gaps between rows and shows a waiting writer what was there before.
        isolation_level="READ COMMITTED",
        pool_pre_ping=True,
        pool_timeout=wait_seconds / 2,
        **pool,
    )


def _sqlite_engine(
    url: str, wait_seconds: float, read_seconds: float, file: DatabaseFile, pool: dict[str, Any]
) -> Engine:
    arguments: dict[str, Any] = {"timeout": wait_seconds}
    pool = {"pool_timeout": wait_seconds / 2, **pool}
    if make_url(url).database in (None, "", ":memory:"):
        # Each connection would have its own database in memory, so there is only one connection.
        arguments["check_same_thread"] = False
        pool |= {"poolclass": QueuePool, "pool_size": 1, "max_overflow": 0, "pool_timeout": wait_seconds}
    engine = create_engine(url, connect_args=arguments, **pool)

    def prepare(connection: Any, record: Any) -> None:
        # Otherwise sqlite3 begins transactions itself, and never with IMMEDIATE.
        connection.isolation_level = None
        for pragma in _PRAGMAS:
            _execute_pragma(connection, f"PRAGMA {pragma}", wait_seconds)
        add_math_functions(connection)

    def begin(connection: Connection) -> None:
        # IMMEDIATE: SQLite fails a transaction that first reads and then writes, instead of waiting for other writers.
        writes = connection.get_execution_options().get("writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
        # A search may take arbitrarily long, depending on its words; writes are bounded by the size of a request.
        _interrupt_at(connection.connection.dbapi_connection, None if writes else time.monotonic() + read_seconds)

    event.listen(engine, "connect", prepare)
    file.watch(engine)
    event.listen(engine, "begin", begin)
    return engine


def add_math_functions(connection: Any) -> None:
    """Some builds of SQLite lack the math functions that distances need."""
    try:
        connection.execute("SELECT asin(sqrt(power(sin(radians(1)), 2))), cos(1)")
    except sqlite3.OperationalError:
        for function in (math.sin, math.cos, math.asin, math.sqrt, math.radians):
            connection.create_function(function.__name__, 1, function, deterministic=True)
        connection.create_function("power", 2, math.pow, deterministic=True)


def _execute_pragma(connection: Any, pragma: str, wait_seconds: float) -> None:
    """Retries while the file is locked: switching a new file to WAL ignores the busy timeout."""
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            connection.execute(pragma)
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        time.sleep(0.01)


def _interrupt_at(connection: Any, deadline: float | None) -> None:
    is_late = None if deadline is None else lambda: time.monotonic() > deadline
    connection.set_progress_handler(is_late, _STEPS_PER_DEADLINE_CHECK)
