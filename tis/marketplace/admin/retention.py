"""Deletes rows that are older than their retention, a few at a time, so that no other writer waits long.

Several servers may do this at once: each deletes the rows that it has locked.
"""

from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, not_, or_, select, text, tuple_, update
from sqlalchemy.orm import InstrumentedAttribute, Session

from tis.marketplace.columns import now
from tis.marketplace.kit.talk_erasure import delete_old_talks
from tis.marketplace.tables import (
    AuditEntry,
    ChatUsage,
    Conversation,
    DataRequest,
    IdempotentRequest,
    Notice,
    NoticeDelivery,
    Order,
    OrderAddress,
    PaymentCallback,
    Promotion,
    Reservation,
    StockMovement,
    Supplier,
    SupplierVerification,
)

_MAX_AT_ONCE = 500
_MAX_CONVERSATIONS_AT_ONCE = 50  # each with up to 500 messages
_USAGE_DAYS, _NOTICE_DAYS, _CALLBACK_DAYS = 30, 7, 30
_DEBT_DAYS = 3650  # an order of which the shop owes money is kept so long, at most
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
    order_days: int = 0
    order_address_days: int = 0
    message_days: int = 0
    delivery_days: int = 0


def delete_old_rows(writing: OpenWriting, retention: RetentionRules) -> None:
    moment = now()
    before = {name: moment - timedelta(days=days) for name, days in vars(retention).items() if days}
    _delete(writing, (IdempotentRequest.actor, IdempotentRequest.key), IdempotentRequest.expires_at < moment)
    last_day = (moment - timedelta(days=_USAGE_DAYS)).date()
    _delete(writing, (ChatUsage.user_id, ChatUsage.day), ChatUsage.day < last_day)
    _delete(writing, (Notice.account, Notice.number), Notice.created_at < moment - timedelta(days=_NOTICE_DAYS))
    heard = moment - timedelta(days=_CALLBACK_DAYS)
    _delete(writing, (PaymentCallback.payment_id, PaymentCallback.digest), PaymentCallback.seen_at < heard)
    if given_up := before.get("delivery_days"):
        _delete(writing, (NoticeDelivery.id,), NoticeDelivery.give_up_at < given_up)
    if used := before.get("chat_days"):  # with their messages
        _delete(writing, (Conversation.id,), Conversation.updated_at < used, _MAX_CONVERSATIONS_AT_ONCE)
    if last := before.get("message_days"):
        delete_some = partial(delete_old_talks, before=last, max_at_once=_MAX_CONVERSATIONS_AT_ONCE)
        _in_batches(writing, delete_some, _MAX_CONVERSATIONS_AT_ONCE)
    if at := before.get("audit_days"):
        _delete(writing, (AuditEntry.id,), AuditEntry.at < at)
        _delete(writing, (DataRequest.id,), DataRequest.ended_at < at)
        erased = select(Supplier.id).where(Supplier.email_key.not_like("%@%"), Supplier.deleted_at < at)
        _delete(writing, (SupplierVerification.supplier_id,), SupplierVerification.supplier_id.in_(erased))
    if at := before.get("movement_days"):
        _in_batches(writing, partial(_carry_movements, before=at), _MAX_AT_ONCE)
    if ended := before.get("reservation_days"):
        open_promotions = select(Promotion.id).where(Promotion.state != "ended")  # which count their units
        is_counted = and_(Reservation.promotion_id.is_not(None), Reservation.promotion_id.in_(open_promotions))
        has_ended = and_(Reservation.ended_at < ended, Reservation.status != "held", not_(is_counted))
        _delete(writing, (Reservation.id,), has_ended)
    if ended := before.get("order_address_days"):
        old = select(Order.id).where(Order.ended_at < ended)
        _delete(writing, (OrderAddress.order_id,), OrderAddress.order_id.in_(old))
        _in_batches(writing, partial(_forget_notes, before=ended), _MAX_AT_ONCE)
    if ended := before.get("order_days"):  # with their lines and moves
        is_settled = or_(Order.refund_due == 0, Order.ended_at < moment - timedelta(days=_DEBT_DAYS))
        _delete(writing, (Order.id,), and_(Order.ended_at < ended, is_settled))


def _delete(
    writing: OpenWriting,
    key: tuple[InstrumentedAttribute[Any], ...],
    is_old: ColumnElement[bool],
    max_at_once: int = _MAX_AT_ONCE,
) -> None:
    """`key` is the primary key of the table."""

    def delete_batch(session: Session) -> int:
        old = select(*key).where(is_old).limit(max_at_once)
        rows = [tuple(row) for row in session.execute(old.with_for_update(skip_locked=True))]
        is_found = tuple_(*key).in_(rows) if len(key) > 1 else key[0].in_([number for (number,) in rows])
        session.execute(delete(key[0].class_).where(is_found))
        return len(rows)

    _in_batches(writing, delete_batch, max_at_once)


def _in_batches(writing: OpenWriting, end_batch: Callable[[Session], int], max_at_once: int) -> None:
    for _ in range(_MAX_BATCHES):
        with writing() as session:
            if end_batch(session) < max_at_once:
                return


def _forget_notes(session: Session, before: datetime) -> int:
    """What buyers wrote on orders that ended long ago."""
    old = select(Order.id).where(Order.ended_at < before, Order.note.is_not(None)).limit(_MAX_AT_ONCE)
    ids = session.scalars(old.with_for_update(skip_locked=True)).all()
    session.execute(update(Order).where(Order.id.in_(ids)).values(note=None))
    return len(ids)


def _carry_movements(session: Session, before: datetime) -> int:
    """Replaces the old movements of a product at a place by one with their sum: they add up to what lies there."""
    columns = StockMovement.id, StockMovement.product_id, StockMovement.branch_id, StockMovement.delta
    old = select(*columns).where(StockMovement.at < before, NOT_CARRIED).limit(_MAX_AT_ONCE)
    rows = session.execute(old.with_for_update(skip_locked=True)).all()
    products = {row.product_id for row in rows}
    carried = select(*columns).where(StockMovement.product_id.in_(products), StockMovement.kind == _CARRIED)
    by_place: defaultdict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for row in [*rows, *session.execute(carried.with_for_update(skip_locked=True))]:
        by_place[row.product_id, row.branch_id].append((row.id, row.delta))
    for movements in by_place.values():
        newest = max(number for number, _ in movements)  # becomes the sum: lists are in the order of ids
        older = [number for number, _ in movements if number != newest]
        if older:
            session.execute(delete(StockMovement).where(StockMovement.id.in_(older)))
        total = sum(delta for _, delta in movements)
        nameless = {"kind": _CARRIED, "delta": total, "actor": None, "reservation_id": None, "reason": None}
        session.execute(update(StockMovement).where(StockMovement.id == newest).values(**nameless))
    return len(rows)
