"""Pictures that a sheet names by their URLs. They are fetched after its rows are imported, in the background.

The transaction that imports a row queues its URLs (`PictureFetch`), so a kill loses none. A fetch is taken by moving
its time ahead, as no transaction may be open while a server far away is waited for.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from tis.errors import NotFound, QueueFull, ServiceError, Unavailable
from tis.marketplace.columns import now
from tis.marketplace.kit.picture_links import hash_in_url
from tis.marketplace.kit.principal import Principal
from tis.marketplace.picture_files.picture_desk import PictureDesk
from tis.marketplace.pictures.service import NewPicture, lock_own_product, replace_pictures
from tis.marketplace.tables import PictureFetch, ProductPicture, SheetImport

OpenTransaction = Callable[[], AbstractContextManager[Session]]
# The rights that an account has now, for a request id; None if it is closed or suspended.
FindPrincipal = Callable[[Session, str | None, str], Principal | None]
# Called when the pictures of a row are there, or are not to be had: with (row, message) of what went wrong.
EndRow = Callable[[Session, SheetImport, Sequence[tuple[int, str]]], None]
_LEASE = timedelta(minutes=15)  # longer than eight pictures may take
_RETRY = timedelta(minutes=1)
_MAX_TRIES = 5
_MAX_SHOWN_CHARS = 100
_NOT_FETCHED = "The pictures of this row could not be fetched."
_FORGOTTEN = "The account that sent this sheet is closed or suspended."


@dataclass(frozen=True)
class SheetPictures:
    """What a row of a sheet names, for a product."""

    product_id: int
    row_number: int
    urls: Sequence[str]


@dataclass(frozen=True)
class _Taken:
    id: int
    num_tries: int
    urls: Sequence[str]
    row_number: int


def source_digest(url: str) -> str:
    return hashlib.sha256(url.encode()).hexdigest()


def sources_of(session: Session, product_ids: Collection[int]) -> Mapping[int, Sequence[tuple[str, str | None]]]:
    """Of each product: the hashes of its pictures in their order, and of what URL a sheet had named."""
    links = (
        select(ProductPicture.product_id, ProductPicture.hash, ProductPicture.source_digest)
        .where(ProductPicture.product_id.in_(product_ids))
        .order_by(ProductPicture.product_id, ProductPicture.position)
    )
    found: defaultdict[int, list[tuple[str, str | None]]] = defaultdict(list)
    for product_id, picture_id, digest in session.execute(links):
        found[product_id].append((picture_id, digest))
    return found


def are_same_pictures(urls: Sequence[str], sources: Sequence[tuple[str, str | None]], public_url: str) -> bool:
    """Whether a product has what these URLs name already: an export that is imported again changes nothing."""
    return len(urls) == len(sources) and all(
        hash_in_url(url, public_url) == picture_id or source_digest(url) == digest
        for url, (picture_id, digest) in zip(urls, sources, strict=True)
    )


def queue_pictures(session: Session, import_id: str, pictures: Sequence[SheetPictures]) -> None:
    session.add_all(
        PictureFetch(import_id=import_id, product_id=one.product_id, row_number=one.row_number, urls=list(one.urls))
        for one in pictures
    )
    session.flush()


class PictureFetcher:
    """The step of a job. `end_row` notes in the import what went wrong, and ends it with its last row."""

    def __init__(
        self,
        reading: OpenTransaction,
        writing: OpenTransaction,
        desk: PictureDesk,
        find_principal: FindPrincipal,
        end_row: EndRow,
        public_url: str,
    ) -> None:
        self._reading, self._writing, self._desk = reading, writing, desk
        self._find_principal, self._end_row, self._public_url = find_principal, end_row, public_url

    def step(self) -> bool:
        """The pictures of one row; False if none is due."""
        with self._reading() as session:
            if session.scalar(_due().limit(1)) is None:
                return False
        with self._writing() as session:
            taken = _take(session)
        if taken is None:
            return False
        pictures: list[NewPicture] = []
        problems: list[tuple[int, str]] = []
        try:
            if taken.num_tries > _MAX_TRIES:  # a server that took it has ended each time
                raise Unavailable(_NOT_FETCHED)
            for url in taken.urls:
                try:
                    pictures.append(self._picture(url))
                except (Unavailable, QueueFull):
                    raise
                except ServiceError as error:
                    problems.append((taken.row_number, f"{url[:_MAX_SHOWN_CHARS]}: {error.message}"))
        except (Unavailable, QueueFull) as error:  # of this server, or its store: not the fault of the sheet
            if taken.num_tries < _MAX_TRIES:
                self._retry_later(taken)
                raise  # the job waits a little
            problems.append((taken.row_number, error.message))
        with self._writing() as session:
            self._end(session, taken, pictures, problems)
        return True

    def _picture(self, url: str) -> NewPicture:
        if own := hash_in_url(url, self._public_url):
            return NewPicture(own)
        rendered = self._desk.fetched(url)
        self._desk.storage.keep(rendered)
        return NewPicture(rendered.hash, source_digest(url))

    def _retry_later(self, taken: _Taken) -> None:
        with self._writing() as session:
            if fetch := _lock(session, taken):
                fetch.due_at = now() + _RETRY

    def _end(
        self, session: Session, taken: _Taken, pictures: Sequence[NewPicture], problems: list[tuple[int, str]]
    ) -> None:
        """All pictures of a row, or none: what the product has stays where one of them is not to be had."""
        fetch = _lock(session, taken)
        if fetch is None:  # another server has taken it since, or the import is gone
            return
        job = session.get_one(SheetImport, fetch.import_id, with_for_update=True)
        principal = self._find_principal(session, job.actor, job.request_id or "-")
        if not problems:
            try:
                if principal is None:
                    raise NotFound(_FORGOTTEN)
                with session.begin_nested():
                    product = lock_own_product(session, principal, fetch.product_id)
                    replace_pictures(session, principal, product, pictures)
            except ServiceError as error:
                problems.append((taken.row_number, error.message))
        session.delete(fetch)
        session.flush()
        self._end_row(session, job, problems)


def has_fetches(session: Session, import_id: str) -> bool:
    return bool(session.scalar(select(exists().where(PictureFetch.import_id == import_id))))


def _due() -> Any:
    return select(PictureFetch).where(PictureFetch.due_at <= now()).order_by(PictureFetch.due_at)


def _take(session: Session) -> _Taken | None:
    fetch = session.scalar(_due().limit(1).with_for_update(skip_locked=True))
    if fetch is None:
        return None
    fetch.due_at, fetch.num_tries = now() + _LEASE, fetch.num_tries + 1
    return _Taken(fetch.id, fetch.num_tries, tuple(fetch.urls), fetch.row_number)


def _lock(session: Session, taken: _Taken) -> PictureFetch | None:
    fetch = session.get(PictureFetch, taken.id, with_for_update=True)
    return fetch if fetch and fetch.num_tries == taken.num_tries else None
