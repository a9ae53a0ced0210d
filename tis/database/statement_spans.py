"""A span for each SQL statement of a request: its template, without values."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Engine, event

from tis.observability.spans import Attributes, current_span

_MAX_STATEMENT_CHARS = 2000
_MAX_SUMMARY_CHARS = 100
_TABLE = re.compile(r"\b(?:FROM|INTO|UPDATE)\s+\"?(\w+)", re.IGNORECASE)
_NUMBERS = re.compile(r"\(\s*\d+(?:\s*,\s*\d+)*\s*,?\s*\)?")  # a list of ids, which may be cut


def span_statements(engine: Engine) -> None:
    """Of what SQLAlchemy executes."""
    system = engine.dialect.name

    def before(connection: Any, cursor: Any, statement: str, parameters: Any, context: Any, is_many: bool) -> None:
        if context is not None:
            context.span_began_at = time.monotonic()

    def after(connection: Any, cursor: Any, statement: str, parameters: Any, context: Any, is_many: bool) -> None:
        began_at = getattr(context, "span_began_at", None)
        _make_span(system, statement, began_at, len(parameters) if is_many else None)

    def failed(fault: Any) -> None:
        if fault.statement:
            began_at = getattr(fault.execution_context, "span_began_at", None)
            _make_span(system, fault.statement, began_at, error=type(fault.original_exception).__name__)

    event.listen(engine, "before_cursor_execute", before)
    event.listen(engine, "after_cursor_execute", after)
    event.listen(engine, "handle_error", failed)


@contextmanager
def statement_span(connection: Connection, statement: str, num_rows: int | None = None) -> Iterator[None]:
    """Around what the driver executes directly."""
    began_at = time.monotonic()
    try:
        yield
    except BaseException as fault:
        _make_span(connection.dialect.name, statement, began_at, num_rows, type(fault).__name__)
        raise
    _make_span(connection.dialect.name, statement, began_at, num_rows)


def _make_span(
    system: str, statement: str, began_at: float | None, num_rows: int | None = None, error: str | None = None
) -> None:
    parent = current_span()
    if began_at is None or not parent.is_recorded:
        return
    name, text = _described(statement[: 2 * _MAX_STATEMENT_CHARS])
    attributes: Attributes = {
        "db.system.name": system,
        "db.operation.name": name.partition(" ")[0],
        "db.query.summary": name,
        "db.query.text": text,
        "db.operation.batch.size": num_rows,
    }
    parent.child(name, attributes, kind="client", began_at=began_at).end(error)


@lru_cache(maxsize=256)
def _described(statement: str) -> tuple[str, str]:
    """Its verb with its first table, and its text."""
    text = _NUMBERS.sub("(...)", " ".join(statement.split()))
    verb = text.partition(" ")[0].upper()
    table = _TABLE.search(text)
    return (f"{verb} {table[1]}" if table else verb)[:_MAX_SUMMARY_CHARS], text[:_MAX_STATEMENT_CHARS]
