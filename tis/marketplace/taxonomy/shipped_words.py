"""Categories and synonyms that come with the server, and how they stay in step with a newer version.

A row that an admin has changed, deleted or added stays as the admin left it.
"""

import csv
import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from tis.marketplace.search.vocabulary_cache import expire_categories
from tis.marketplace.tables import Category, ShippedWord, Synonym

_Row = dict[str, Any]
_ALL = ("all", "")  # the key of the digest of both files
_TABLES: Mapping[str, Any] = {"category": Category, "synonym": Synonym}
_FILES = {"category": "categories.csv", "synonym": "synonyms.csv"}
_SYNONYM = ("term", "means", "category", "is_broader")
_KEYS = {"category": "slug", "synonym": "term"}


def words_are_loaded(session: Session) -> bool:
    loaded = session.get(ShippedWord, _ALL)
    return loaded is not None and loaded.digest == _digest([_rows(kind) for kind in _FILES])


def load_words(session: Session) -> None:
    """Puts the rows of the files into the tables, in one transaction."""
    expire_categories(session)  # locks a row, so that servers that start together take turns
    if words_are_loaded(session):
        return
    for kind in _FILES:
        _load(session, kind)
    session.merge(ShippedWord(kind=_ALL[0], key=_ALL[1], digest=_digest([_rows(kind) for kind in _FILES])))


def _load(session: Session, kind: str) -> None:
    table = _TABLES[kind]
    there: dict[str, Any] = {getattr(row, _KEYS[kind]): row for row in session.scalars(select(table))}
    shipped = {one.key: one for one in session.scalars(select(ShippedWord).where(ShippedWord.kind == kind))}
    categories = set(session.scalars(select(Category.slug)))
    if kind == "category":
        categories |= _rows(kind).keys() - shipped.keys()
    rows = {key: _suited(row, categories) for key, row in _rows(kind).items()}
    for key in shipped.keys() & there.keys() & rows.keys():
        present, before, digest = there[key], shipped[key], _digest(rows[key])
        if digest != before.digest == _digest(_values(present, rows[key])):
            for name, value in rows[key].items():
                setattr(present, name, value)
            before.digest = digest
    for key in shipped.keys() - rows.keys():
        # Products and admins' synonyms may be in a category, so it stays.
        if kind == "synonym" and key in there and _digest(_values(there[key], _SYNONYM)) == shipped[key].digest:
            session.delete(there[key])
        session.delete(shipped[key])
    session.flush()
    new = {key: row for key, row in rows.items() if key not in shipped}
    _insert(session, table, [row for key, row in new.items() if key not in there])
    _insert(session, ShippedWord, [{"kind": kind, "key": key, "digest": _digest(row)} for key, row in new.items()])


def _insert(session: Session, table: Any, rows: Sequence[_Row]) -> None:
    if rows:
        session.execute(insert(table.__table__), rows)


def _suited(row: _Row, categories: Collection[str]) -> _Row:
    """A category that an admin has deleted is no parent, and no meaning of a synonym."""
    name = "category" if "category" in row else "parent"
    return row if row[name] is None or row[name] in categories else {**row, name: None}


def _values(present: Category | Synonym, names: Iterable[str]) -> _Row:
    return {name: getattr(present, name) for name in names}


@cache
def _rows(kind: str) -> Mapping[str, _Row]:
    text = resources.files(__package__).joinpath(_FILES[kind]).read_text(encoding="utf-8")
    rows: list[_Row] = [
        {name: value or None for name, value in row.items()} for row in csv.DictReader(text.splitlines())
    ]
    for row in rows:
        if "is_broader" in row:
            row["is_broader"] = row["is_broader"] == "1"
    return {row[_KEYS[kind]]: row for row in rows}


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:16]
