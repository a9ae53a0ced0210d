"""Full-text indexes, one per kind of database, and the choice among them."""

import logging
from collections.abc import Callable

from tis.database.database import Database
from tis.marketplace.search.backends.postgres import PostgresTextIndex
from tis.marketplace.search.backends.sqlite_fts import SqliteFtsIndex
from tis.marketplace.search.backends.text_index import TextIndex

_log = logging.getLogger("tis.marketplace")


def sqlite_has_fts5() -> bool:
    """Whether the SQLite library of this process has FTS5; the database file does not matter."""
    import sqlite3

    with sqlite3.connect(":memory:") as connection:
        return bool(connection.execute("SELECT 1 FROM pragma_module_list WHERE name = 'fts5'").fetchone())


def choose_backend(database: Database, has_fts5: Callable[[], bool] = sqlite_has_fts5) -> TextIndex:
    """`has_fts5` is a parameter for tests."""
    if database.dialect == "postgresql":
        return PostgresTextIndex()
    if database.dialect == "sqlite" and has_fts5():
        return SqliteFtsIndex("min")
    _log.warning("%s has no full-text index here: every search reads all products", database.dialect)
    return TextIndex(least_function="min" if database.dialect == "sqlite" else "least")
