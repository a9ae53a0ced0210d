"""Gives rows without a place code theirs, a few at a time, in the background: a later version knows more names.

Not by a migration: tables of places change with versions, migrations do not.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager

from sqlalchemy import or_, select, update
from sqlalchemy.orm import Session

from tis.marketplace.places.gazetteer import gazetteer
from tis.marketplace.tables import Supplier, User

OpenSession = Callable[[], AbstractContextManager[Session]]
_BATCH_ROWS = 500
_MAX_BATCHES = 40  # of each table in an hour: the thread has other work every few seconds


class PlaceCoder:
    """Walks over the rows without a code. Several servers may do so at once."""

    def __init__(self, reading: OpenSession, writing: OpenSession, batch_rows: int = _BATCH_ROWS) -> None:
        self._reading = reading
        self._writing = writing
        self._batch_rows = batch_rows
        self._last_ids: dict[type[Supplier] | type[User], int] = {Supplier: 0, User: 0}

    def code_some(self) -> int:
        """Goes on where the last call ended, and returns how many rows got a code."""
        num_coded = 0
        for table in self._last_ids:
            for _ in range(_MAX_BATCHES):
                num_coded += self._code_batch(table)
                if self._last_ids[table] == 0:
                    break
        return num_coded

    def _code_batch(self, table: type[Supplier] | type[User]) -> int:
        named = or_(table.city.is_not(None), table.province.is_not(None))
        rows = (
            select(table.id, table.city, table.province)
            .where(table.place_code.is_(None), named, table.id > self._last_ids[table])
            .order_by(table.id)
            .limit(self._batch_rows)
        )
        with self._reading() as session:
            found = session.execute(rows).all()
        codes = {row.id: (row, code) for row in found if (code := gazetteer().code_of(row.city, row.province))}
        num_coded = 0
        if codes:
            with self._writing() as session:
                # Never waits for a lock, so it is part of no deadlock: a locked row has its turn another time.
                free = select(table.id).where(table.id.in_(codes)).order_by(table.id)
                for row_id in session.scalars(free.with_for_update(skip_locked=True, key_share=True)).all():
                    row, code = codes[row_id]
                    unchanged = (table.city.is_not_distinct_from(row.city), table.place_code.is_(None))
                    coded = update(table).where(table.id == row_id, *unchanged)
                    coded = coded.where(table.province.is_not_distinct_from(row.province))
                    # No change by its owner: neither its version nor its time says so.
                    session.execute(coded.values(place_code=code, updated_at=table.updated_at))
                    num_coded += 1
        self._last_ids[table] = found[-1].id if len(found) == self._batch_rows else 0
        return num_coded
