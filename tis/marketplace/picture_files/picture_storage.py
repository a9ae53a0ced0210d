"""`PictureStorage` keeps the files of pictures and their rows in step, whenever a server is killed.

A row is written before its files and deleted after them, so each file has a row, and what no product has is found by
the rows alone. Reasons: docs/decisions/0133-pictures.md.
"""

import logging
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from sqlalchemy import case, exists, literal, or_, select
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.orm import Session

from tis.marketplace.columns import UTCDateTime, now
from tis.marketplace.kit.picture_links import PictureSize
from tis.marketplace.picture_files.folder_store import FolderStore
from tis.marketplace.picture_files.picture_rendering import RenderedPicture
from tis.marketplace.picture_files.picture_store import PictureStore
from tis.marketplace.picture_files.s3_store import s3_store_of
from tis.marketplace.tables import ProductPicture, ShopMessage, StoredPicture
from tis.setting_types import SettingsError

_log = logging.getLogger("tis.marketplace")
MAX_REMOVED_AT_ONCE = 200
OpenTransaction = Callable[[], AbstractContextManager[Session]]


def open_picture_store(url: str, environ: Mapping[str, str] | None = None) -> PictureStore:
    """Raises SettingsError for an address that is none. `environ` has the credentials of a bucket."""
    parts = urlsplit(url)
    if parts.scheme == "file" and parts.netloc in ("", "localhost") and parts.path and not parts.query:
        path = unquote(parts.path)
        return FolderStore(Path(path.removeprefix("/") if sys.platform == "win32" else path))  # file:///C:/pictures
    if parts.scheme == "s3" and parts.netloc:
        return s3_store_of(url, os.environ if environ is None else environ)
    raise SettingsError("PICTURES_URL must be file:///FOLDER or s3://BUCKET/PREFIX?endpoint=URL&region=NAME")


class PictureStorage:
    """Its methods block. `grace` is how long a picture stays that no product has."""

    def __init__(self, writing: OpenTransaction, store: PictureStore, grace: timedelta) -> None:
        self._writing, self._store, self._grace = writing, store, grace

    def keep(self, picture: RenderedPicture) -> None:
        """The picture is unused until `add_picture` gives it to a product, which has less time for that than `grace`.

        The files are written even if they should be there: their row may have outlived them.
        """
        with self._writing() as session:
            _claim(session, picture)
        for size, data in picture.files.items():
            self._store.put(picture.hash, size, data)

    def read(self, picture_id: str, size: PictureSize) -> bytes | None:
        return self._store.get(picture_id, size)

    def remove_unneeded(self, max_pictures: int = MAX_REMOVED_AT_ONCE) -> int:
        """Those that no product has had for `grace`. A transaction each, so that other writers have their turn."""
        self._store.tidy()
        for num_removed in range(max_pictures):
            with self._writing() as session:
                if not self._remove_one(session):
                    return num_removed
        return max_pictures

    def remove_all(self, session: Session) -> None:
        """The files of every row, before the tables are dropped."""
        for picture_id in session.scalars(select(StoredPicture.hash)):
            self._store.delete(picture_id)

    def close(self) -> None:
        self._store.close()

    def _remove_one(self, session: Session) -> bool:
        """The files go while the row is locked: who keeps the same picture waits, and writes them again."""
        old = (
            select(StoredPicture)
            .where(StoredPicture.unused_since < now() - self._grace)
            .order_by(StoredPicture.unused_since)
            .limit(1)
        )
        picture = session.scalar(old.with_for_update(skip_locked=True))
        if picture is None:
            return False
        of_product, of_talk = ProductPicture.hash == picture.hash, ShopMessage.picture_hash == picture.hash
        if session.scalar(select(or_(exists().where(of_product), exists().where(of_talk)))):
            picture.unused_since = None
            return True
        self._store.delete(picture.hash)
        session.delete(picture)
        _log.info("removed the picture %s, which no product has", picture.hash)
        return True


def _claim(session: Session, picture: RenderedPicture) -> None:
    """From now on nobody removes it for the time of grace.

    In one statement, as three uploads of one new picture would deadlock on MariaDB, were each to insert and then lock.
    """
    moment = now()
    row = {"hash": picture.hash, "width": picture.width, "height": picture.height}
    row |= {"created_at": moment, "unused_since": moment}
    # What a product has stays used.
    unused_since = case((StoredPicture.unused_since.is_(None), None), else_=literal(moment, UTCDateTime()))
    dialect = session.get_bind().dialect.name
    if dialect == "mysql":
        statement: Any = mysql.insert(StoredPicture).values(row)
        session.execute(statement.on_duplicate_key_update(unused_since=unused_since))
        return
    statement = (postgresql if dialect == "postgresql" else sqlite).insert(StoredPicture).values(row)
    session.execute(statement.on_conflict_do_update(index_elements=["hash"], set_={"unused_since": unused_since}))
