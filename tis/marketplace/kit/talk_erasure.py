"""Ends talks of accounts that are deleted, and old ones. Their pictures go with them."""

from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, delete, or_, select, update
from sqlalchemy.orm import Session

from tis.marketplace.columns import now
from tis.marketplace.tables import ShopMessage, ShopTalk, StoredPicture

_MAX_AT_ONCE = 500  # databases limit the parameters of a statement


def erase_talks(session: Session, accounts: Collection[str], supplier_ids: Collection[int]) -> None:
    """Of buyers and shops. What a member wrote for a shop that goes on stays, without who wrote it."""
    _delete(session, or_(ShopTalk.buyer.in_(accounts), ShopTalk.supplier_id.in_(supplier_ids)))
    session.execute(update(ShopMessage).where(ShopMessage.author.in_(accounts)).values(author=None))


def delete_old_talks(session: Session, before: datetime, max_at_once: int) -> int:
    """Those without a message since then; a few at a time. Returns how many."""
    old = select(ShopTalk.id).where(ShopTalk.last_at < before).order_by(ShopTalk.id).limit(max_at_once)
    ids = session.scalars(old.with_for_update(skip_locked=True)).all()
    _delete_ids(session, ids)
    return len(ids)


def _delete(session: Session, wanted: ColumnElement[bool]) -> None:
    ids = session.scalars(select(ShopTalk.id).where(wanted).order_by(ShopTalk.id).with_for_update()).all()
    for first in range(0, len(ids), _MAX_AT_ONCE):
        _delete_ids(session, ids[first : first + _MAX_AT_ONCE])


def _delete_ids(session: Session, ids: Sequence[int]) -> None:
    shown = select(ShopMessage.picture_hash).where(ShopMessage.talk_id.in_(ids), ShopMessage.picture_hash.is_not(None))
    hashes = sorted({one for one in session.scalars(shown) if one})
    session.execute(delete(ShopTalk).where(ShopTalk.id.in_(ids)))  # their messages go with them
    for first in range(0, len(hashes), _MAX_AT_ONCE):
        some = StoredPicture.hash.in_(hashes[first : first + _MAX_AT_ONCE])
        session.execute(update(StoredPicture).where(some).values(unused_since=now()))
