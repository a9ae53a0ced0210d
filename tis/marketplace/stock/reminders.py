"""Tells buyers, once for each end, that a reservation ends soon. Several servers may do this at once."""

from datetime import timedelta

from sqlalchemy import ColumnElement, and_, exists, select, update
from sqlalchemy.orm import Session

from tis.marketplace.columns import now
from tis.marketplace.stock.counters import execute_update
from tis.marketplace.stock.ending import tell
from tis.marketplace.tables import Reservation

MAX_REMINDED_AT_ONCE = 500  # per transaction, so that other writers get their turn


def ends_soon(session: Session, before_end: timedelta) -> bool:
    return bool(session.scalar(select(exists().where(_is_near(before_end)))))


def tell_ends_soon(session: Session, before_end: timedelta) -> int:
    """Returns how many it looked at. Of short reservations, which were made just now, nobody is told."""
    near = session.scalars(
        select(Reservation)
        .where(_is_near(before_end))
        .order_by(Reservation.expires_at, Reservation.id)
        .limit(MAX_REMINDED_AT_ONCE)
        .with_for_update(skip_locked=True)
    ).all()
    if near:
        ids = [one.id for one in near]
        execute_update(session, update(Reservation).where(Reservation.id.in_(ids)).values(reminded_at=now()))
        tell(session, "hold.ends_soon", [one for one in near if one.expires_at - one.created_at >= 2 * before_end])
    return len(near)


def _is_near(before_end: timedelta) -> ColumnElement[bool]:
    moment = now()
    return and_(
        Reservation.status == "held",
        Reservation.expires_at > moment,
        Reservation.expires_at <= moment + before_end,
        Reservation.reminded_at.is_(None),
    )
