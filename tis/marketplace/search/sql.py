"""Runs SQL on the driver directly: SQLAlchemy would take longer to build a statement than many searches take."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from tis.database.database import READ_MEMO
from tis.database.statement_spans import statement_span

SqlValues = Mapping[str, Any]
MAX_PRODUCT_ID = "SELECT max(product_id) FROM product_search"
_PLACEHOLDER = re.compile(r":([a-z]\w*)")


def run(session: Session, sql: str, values: SqlValues | None = None) -> Sequence[tuple[Any, ...]]:
    """Executes a statement with placeholders `:name` and returns its rows."""
    return _execute(session.connection(), sql, values or {}, is_many=False)


def run_once(session: Session, sql: str, values: SqlValues | None = None) -> Sequence[tuple[Any, ...]]:
    """Like `run`, but a transaction that only reads sends the same statement once. For few rows."""
    memo = read_memo(session)
    key = (sql, *(values or {}).items())
    if key not in memo:
        memo[key] = run(session, sql, values)
    rows: Sequence[tuple[Any, ...]] = memo[key]
    return rows


def read_memo(session: Session) -> dict[Any, Any]:
    """Lives as long as a transaction that only reads; a new one for each call in a transaction that writes."""
    memo: dict[Any, Any] = session.info.get(READ_MEMO, {})
    return memo


def run_many(session: Session, sql: str, rows: Sequence[SqlValues]) -> None:
    if rows:
        _execute(session.connection(), sql, rows, is_many=True)


def _execute(connection: Connection, sql: str, values: Any, *, is_many: bool) -> Sequence[tuple[Any, ...]]:
    driver: Any = connection.dialect.loaded_dbapi
    statement = _in_driver_style(sql, connection.dialect.paramstyle)
    cursor = connection.connection.cursor()
    try:
        with statement_span(connection, sql, len(values) if is_many else None):
            (cursor.executemany if is_many else cursor.execute)(statement, values)
        return cursor.fetchall() if cursor.description and not is_many else ()
    except driver.Error as error:
        # Converted as SQLAlchemy does: `Database` classifies these errors, and the pool must discard a lost connection.
        is_lost = connection.dialect.is_disconnect(error, connection.connection, cursor)
        if is_lost:
            connection.invalidate(error)
        raise DBAPIError.instance(
            sql, None, error, driver.Error, hide_parameters=True, connection_invalidated=is_lost
        ) from error
    finally:
        cursor.close()


def placeholders(name: str, values: Sequence[object]) -> tuple[str, dict[str, object]]:
    """`(:name0, :name1)` and its values."""
    named = {f"{name}{number}": value for number, value in enumerate(values)}
    return "(" + ", ".join(f":{key}" for key in named) + ")", named


def quoted(column: str) -> str:
    """`condition` is a word of MySQL's own; all connections take double quotes."""
    return f'"{column}"'


def id_list(ids: Sequence[int]) -> str:
    """`(1,2,3)`: ids are integers, so they need no placeholders."""
    return "(" + ",".join(str(int(one)) for one in ids) + ")"


@lru_cache(maxsize=256)
def _in_driver_style(sql: str, style: str) -> str:
    return _PLACEHOLDER.sub(r"%(\1)s", sql) if style in ("pyformat", "format") else sql
