"""The error codes of SQLite, PostgreSQL and MySQL that mean: the database is unavailable. Others mean wrong SQL."""

import sqlite3

from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError, TimeoutError

# Errors of disk, locks or deadlines. Not SQLITE_ERROR, such as a missing table: that is an error in our SQL.
_SQLITE_UNAVAILABLE = frozenset(
    {
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_NOTADB,
    }
)
# Connection, transaction rollback, no resources, operator intervention, system error; lock not available; read only.
_SQLSTATES_UNAVAILABLE = ("08", "40", "53", "57", "58", "55P03", "25006")
# Connections, locks, deadlocks, timeouts, disk. The driver's exception classes do not tell them from wrong statements.
_MYSQL_UNAVAILABLE = frozenset({1021, 1040, 1053, 1205, 1213, 1290, 1969, 2002, 2003, 2006, 2013, 3024, 3572})


def is_unavailable(error: SQLAlchemyError) -> bool:
    if not isinstance(error, DBAPIError):
        return isinstance(error, TimeoutError)  # the pool had no free connection in time
    if error.connection_invalidated:
        return True
    cause = error.orig
    if (code := getattr(cause, "sqlite_errorcode", None)) is not None:
        return code & 0xFF in _SQLITE_UNAVAILABLE
    if (state := getattr(cause, "sqlstate", None)) is not None:
        return str(state).startswith(_SQLSTATES_UNAVAILABLE)
    if cause is not None and cause.args and isinstance(cause.args[0], int):
        return cause.args[0] in _MYSQL_UNAVAILABLE
    # psycopg has no SQLSTATE for a connection that failed or broke; SQLite errors always have a code.
    return isinstance(error, OperationalError)


def is_busy(error: SQLAlchemyError) -> bool:
    """Among the unavailable: the database runs, but stopped this statement at a deadline, a lock or a deadlock."""
    cause = error.orig if isinstance(error, DBAPIError) else None
    if (code := getattr(cause, "sqlite_errorcode", None)) is not None:
        return code & 0xFF in (sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    if (state := getattr(cause, "sqlstate", None)) is not None:
        return str(state).startswith(("40", "55P03", "57014"))
    return cause is not None and bool(cause.args) and cause.args[0] in (1205, 1213, 1969, 3024, 3572)


def short_message(error: SQLAlchemyError) -> str:
    """The driver's message without the statement and its values, which may be private."""
    return str(error.orig if isinstance(error, DBAPIError) else error).strip().partition("\n")[0]
