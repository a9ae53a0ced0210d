"""What all tables share: names of constraints, keys, and indexes on some rows."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, MetaData, text
from sqlalchemy.orm import DeclarativeBase, MappedColumn, mapped_column

from tis.marketplace.columns import Json, UTCDateTime

UNRATED = 3.5  # the rating by which products without a rating are sorted
MAX_RUPIAH = 10_000_000_000_000  # below 2**53, so JavaScript reads it exactly
_NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


def where_rows(condition: str) -> dict[str, Any]:
    """Of an index on some rows, which MariaDB does not have: see the migration."""
    return {"sqlite_where": text(condition), "postgresql_where": text(condition)}


def key_of(table: str, *, index: bool = False) -> MappedColumn[Any]:
    """A primary key, or a part of one, that is the id of a row in another table and goes with it."""
    parent = ForeignKey(f"{table}.id", ondelete="CASCADE")
    return mapped_column(parent, primary_key=True, autoincrement=False, index=index or None)


class Table(DeclarativeBase):
    metadata = MetaData(naming_convention=_NAMES)
    type_annotation_map = {datetime: UTCDateTime(), dict[str, Any]: Json}
