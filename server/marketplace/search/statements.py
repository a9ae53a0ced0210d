"""SQL straight to the driver: building a statement would cost more than many a search."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy.orm import Session

Values = Mapping[str, Any]
_NAME = re.compile(r":([a-z]\w*)")


def run(session: Session, sql: str, values: Values | None = None) -> Sequence[tuple[Any, ...]]:
    """Rows of a statement whose values are written `:name`."""
    connection = session.connection()
    answer = connection.exec_driver_sql(_as_driver_writes(sql, connection.dialect.paramstyle), dict(values or {}))
    return answer.fetchall() if answer.returns_rows else ()


def run_many(session: Session, sql: str, rows: Sequence[Values]) -> None:
    if rows:
        connection = session.connection()
        connection.exec_driver_sql(_as_driver_writes(sql, connection.dialect.paramstyle), [dict(row) for row in rows])


def listed(name: str, things: Sequence[object]) -> tuple[str, dict[str, object]]:
    """`(:name0, :name1)` and its values."""
    values = {f"{name}{number}": thing for number, thing in enumerate(things)}
    return "(" + ", ".join(f":{key}" for key in values) + ")", values


def ids_in(ids: Sequence[int]) -> str:
    """Numbers of our own, written out."""
    return "(" + ",".join(str(int(one)) for one in ids) + ")"


@lru_cache(maxsize=1024)
def _as_driver_writes(sql: str, style: str) -> str:
    return _NAME.sub(r"%(\1)s", sql) if style in ("pyformat", "format") else sql
