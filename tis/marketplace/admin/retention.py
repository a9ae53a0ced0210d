"""Deletes rows that are older than their retention, a few at a time, so that no other writer waits long.

Several servers may do this at once: each deletes the rows that it has locked.
"""

from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, select, text, tuple_, update
from sqlalchemy.orm import Session

from tis.marketplace.columns import now
from tis.marketplace.tables import (
    AuditEntry,
    ChatUsage,
    Conversation,
    IdempotentRequest,
    Reservation,
    StockMovement,
)

_MAX_AT_ONCE = 500
_MAX_CONVERSATIONS_AT_ONCE = 50  # each with up to 500 messages
_USAGE_DAYS = 30
_MAX_BATCHES = 100  # of each table in an hour
_CARRIED = "carried"
NOT_CARRIED = text("kind <> 'carried'")  # as text: the index on `at` is of these rows only
OpenWriting = Callable[[], AbstractContextManager[Session]]


@dataclass(frozen=True)
class RetentionRules:
    """0 keeps for ever."""

    audit_days: int = 0
    movement_days: int = 0
    reservation_days: int = 0
    chat_days: int = 0


def delete_old_rows(writing: OpenWriting, retention: RetentionRules) -> None:
    _in_batches(writing, now(), _delete_answers)
    _in_batches(writing, now() - timedelta(days=_USAGE_DAYS), _delete_usage)
    if retention.chat_days:
        unused_since = now() - timedelta(days=retention.chat_days)
        _in_batches(writing, unused_since, _delete_conversations, _MAX_CONVERSATIONS_AT_ONCE)
    for days, delete_batch in (
        (retention.audit_days, _delete_audit),
        (retention.movement_days, _carry_movements),
        (retention.reservation_days, _delete_reservations),
    ):
        if days:
            _in_batches(writing, now() - timedelta(days=days), delete_batch)


def _in_batches(
    writing: OpenWriting,
    before: datetime,
    delete_batch: Callable[[Session, datetime], int],
    max_at_once: int = _MAX_AT_ONCE,
) -> None:
    for _ in range(_MAX_BATCHES):
        with writing() as session:
            if delete_batch(session, before) < max_at_once:
                return


def _delete_audit(session: Session, before: datetime) -> int:
    old = select(AuditEntry.id).where(AuditEntry.at < before).limit(_MAX_AT_ONCE)
    ids = session.scalars(old.with_for_update(skip_locked=True)).all()
    session.execute(delete(AuditEntry).where(AuditEntry.id.in_(ids)))
    return len(ids)


def _delete_reservations(session: Session, before: datetime) -> int:
    old = select(Reservation.id).where(Reservation.ended_at < before, Reservation.status != "held").limit(_MAX_AT_ONCE)
    ids = session.scalars(old.with_for_update(skip_locked=True)).all()
    session.execute(delete(Reservation).where(Reservation.id.in_(ids)))
    return len(ids)


def _delete_answers(session: Session, before: datetime) -> int:
    columns = IdempotentRequest.actor, IdempotentRequest.key
    old = select(*columns).where(IdempotentRequest.expires_at < before).limit(_MAX_AT_ONCE)
    keys = [tuple(row) for row in session.execute(old.with_for_update(skip_locked=True))]
    session.execute(delete(IdempotentRequest).where(tuple_(*columns).in_(keys)))
    return len(keys)


def _delete_conversations(session: Session, before: datetime) -> int:
    """With their messages."""
    old = select(Conversation.id).where(Conversation.updated_at < before).limit(_MAX_CONVERSATIONS_AT_ONCE)
    ids = session.scalars(old.with_for_update(skip_locked=True)).all()
    session.execute(delete(Conversation).where(Conversation.id.in_(ids)))
    return len(ids)


def _delete_usage(session: Session, before: datetime) -> int:
    columns = ChatUsage.user_id, ChatUsage.day
    old = select(*columns).where(ChatUsage.day < before.date()).limit(_MAX_AT_ONCE)
    keys = [tuple(row) for row in session.execute(old.with_for_update(skip_locked=True))]
    session.execute(delete(ChatUsage).where(tuple_(*columns).in_(keys)))
    return len(keys)


def _carry_movements(session: Session, before: datetime) -> int:
    """Replaces the old movements of a product by one with their sum, so that `on_hand` stays the sum of the deltas."""
    columns = StockMovement.id, StockMovement.product_id, StockMovement.delta
    old = select(*columns).where(StockMovement.at < before, NOT_CARRIED).limit(_MAX_AT_ONCE)
    rows = session.execute(old.with_for_update(skip_locked=True)).all()
    products = {row.product_id for row in rows}
    carried = select(*columns).where(StockMovement.product_id.in_(products), StockMovement.kind == _CARRIED)
    by_product: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for row in [*rows, *session.execute(carried.with_for_update(skip_locked=True))]:
        by_product[row.product_id].append((row.id, row.delta))
    for movements in by_product.values():
        newest = max(number for number, _ in movements)  # becomes the sum: lists are in the order of ids
        older = [number for number, _ in movements if number != newest]
        if older:
            session.execute(delete(StockMovement).where(StockMovement.id.in_(older)))
        total = sum(delta for _, delta in movements)
        nameless = {"kind": _CARRIED, "delta": total, "actor": None, "reservation_id": None}
        session.execute(update(StockMovement).where(StockMovement.id == newest).values(**nameless))
    return len(rows)
