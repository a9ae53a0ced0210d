"""Rows of responses that run: who goes on with one says so again and again, and one that nobody holds is taken."""

from collections.abc import Sequence

from sqlalchemy import and_, delete, select, tuple_, update
from sqlalchemy.orm import Session as Transaction

from tis.streaming.archive.records import RECORD_VERSION, SessionRow
from tis.streaming.archive.rows import delete_contents, is_key, record_of
from tis.streaming.archive.tables import ATTACHMENTS, SESSIONS
from tis.streaming.stores.store import SessionKey

_RUNS = and_(SESSIONS.c.status == "running", ~SESSIONS.c.is_deleted, SESSIONS.c.record_version <= RECORD_VERSION)


def renew(transaction: Transaction, keys: Sequence[SessionKey], held_until: float) -> None:
    """Those of them that are here and run."""
    named = tuple_(SESSIONS.c.owner, SESSIONS.c.id).in_([tuple(key) for key in keys])
    transaction.execute(update(SESSIONS).where(_RUNS, named).values(held_until=held_until))


def find_unheld(transaction: Transaction, now: float, limit: int) -> Sequence[tuple[SessionKey, float]]:
    """With the time until which each was held, those first that have been left for the longest time."""
    columns = (SESSIONS.c.owner, SESSIONS.c.id, SESSIONS.c.held_until)
    left = select(*columns).where(_RUNS, SESSIONS.c.held_until < now).order_by(SESSIONS.c.held_until).limit(limit)
    return [(SessionKey(row.owner, row.id), float(row.held_until)) for row in transaction.execute(left)]


def find_begun(transaction: Transaction, key: SessionKey, now: float, store_now: float) -> SessionRow | None:
    """All that is needed to begin it anew."""
    found = transaction.execute(select(SESSIONS).where(is_key(key), _RUNS)).one_or_none()
    if found is None:
        return None
    session = record_of(key, found, now, store_now)
    [turn] = session.turns
    attached = select(ATTACHMENTS.c.name, ATTACHMENTS.c.data).where(ATTACHMENTS.c.session == found.number)
    turn.attachments = {str(name): bytes(data) for name, data in transaction.execute(attached)}
    turn.document, turn.request, turn.summary = found.document, found.request, found.summary
    return SessionRow(session, turn, turn.document, turn.attachments, held_until=found.held_until)


def claim(transaction: Transaction, key: SessionKey, seen: float, held_until: float, epoch: int) -> bool:
    """False if it has ended or another server was faster. `seen`: until when it was held."""
    taken = update(SESSIONS).where(is_key(key), _RUNS, SESSIONS.c.held_until == seen)
    number = transaction.scalar(taken.values(held_until=held_until, epoch=epoch).returning(SESSIONS.c.number))
    return number is not None


def discard(transaction: Transaction, key: SessionKey, seen: float) -> None:
    """One whose client was told that it is not stored."""
    is_same = and_(is_key(key), _RUNS, SESSIONS.c.held_until == seen)
    number = transaction.scalar(select(SESSIONS.c.number).where(is_same).with_for_update())
    if number is not None:
        delete_contents(transaction, [number])
        transaction.execute(delete(SESSIONS).where(SESSIONS.c.number == number))
