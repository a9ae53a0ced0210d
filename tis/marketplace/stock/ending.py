"""How reservations end: they expire, are released with their account, become an order, or are ended one by one."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import cast

from sqlalchemy import ColumnElement, Row, and_, exists, func, select, update
from sqlalchemy.orm import Session

from tis.errors import Conflict, NotFound
from tis.marketplace.columns import moment_value, now
from tis.marketplace.kit.branch_shares import UnitsAt
from tis.marketplace.kit.news import News
from tis.marketplace.kit.notice_outbox import notify
from tis.marketplace.kit.principal import Principal
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.stock.counters import execute_update, release_units
from tis.marketplace.stock.schemas import ReservationStatus
from tis.marketplace.tables import Reservation

MAX_EXPIRED_AT_ONCE = 500  # per transaction, so that other writers get their turn
HeldRow = Row[str, int, int, int, str | None, int]
_HELD = (
    Reservation.id,
    Reservation.product_id,
    Reservation.quantity,
    Reservation.supplier_id,
    Reservation.actor,
    Reservation.branch_id,
)
_NEWS: dict[ReservationStatus, str] = {
    "committed": "hold.sold",
    "released": "hold.released",
    "refused": "hold.refused",
    "expired": "hold.expired",
}


def has_due(session: Session) -> bool:
    return bool(session.scalar(select(exists().where(is_due()))))


def expire_due(
    session: Session, search: ProductSearch, wanted: ColumnElement[bool], *, skip_locked: bool = False
) -> int:
    """Returns how many it ended. A concurrent call ends other reservations, or none."""
    due = _lock_due(session, wanted, skip_locked=skip_locked)
    release_units(session, search, _end_locked(session, due, "expired"))
    return len(due)


def end_due(session: Session, wanted: ColumnElement[bool], *, skip_locked: bool = False) -> Counter[UnitsAt]:
    """Returns the units by product and place, which the caller gives back."""
    return _end_locked(session, _lock_due(session, wanted, skip_locked=skip_locked), "expired")


def _lock_due(session: Session, wanted: ColumnElement[bool], *, skip_locked: bool) -> Sequence[HeldRow]:
    """A caller that has locked a product already must skip reservations that another transaction is ending."""
    due = select(*_HELD).where(is_due(), wanted).order_by(Reservation.expires_at, Reservation.id)
    return session.execute(due.limit(MAX_EXPIRED_AT_ONCE).with_for_update(skip_locked=skip_locked)).all()


def release_all(
    session: Session,
    search: ProductSearch,
    accounts: Collection[str],
    before_products: Callable[[], Mapping[UnitsAt, int]],
) -> None:
    """Releases what accounts that are being deleted hold. Locks in the same order as `expire_due`.

    `before_products` locks what comes between reservations and products, and returns more units to release.
    """
    held = session.execute(
        select(*_HELD)
        .where(Reservation.actor.in_(accounts), Reservation.status == "held")
        .order_by(Reservation.expires_at, Reservation.id)
        .with_for_update()
    ).all()
    returned = _end_locked(session, held, "released")
    returned.update(before_products())
    release_units(session, search, returned)


def take_for_order(session: Session, principal: Principal, reservation_ids: Collection[str]) -> Sequence[Reservation]:
    """Ends held reservations of the caller as `ordered`: from now on, their units are those of an order."""
    rows = (
        select(Reservation).where(Reservation.id.in_(reservation_ids)).order_by(Reservation.product_id, Reservation.id)
    )
    held = session.scalars(rows.with_for_update().execution_options(populate_existing=True)).all()
    is_own = [one.actor == principal.account for one in held]
    if len(held) < len(set(reservation_ids)) or not all(is_own):
        raise NotFound("Reservation not found")
    for one in held:
        if (status := status_of(one)) != "held":
            raise Conflict(f"Reservation {one.id} is {status}: it cannot be ordered.", code=f"reservation_{status}")
        one.status, one.ended_at = "ordered", now()
    session.flush()
    tell(session, "hold.ordered", held)
    return held


def _end_locked(session: Session, rows: Sequence[HeldRow], status: ReservationStatus) -> Counter[UnitsAt]:
    """Returns the units by product and place."""
    for first in range(0, len(rows), MAX_EXPIRED_AT_ONCE):  # databases limit the parameters of a statement
        ids = [row.id for row in rows[first : first + MAX_EXPIRED_AT_ONCE]]
        execute_update(
            session, update(Reservation).where(Reservation.id.in_(ids)).values(status=status, ended_at=now())
        )
    returned: Counter[UnitsAt] = Counter()
    for row in rows:
        returned[UnitsAt(row.product_id, row.branch_id)] += row.quantity
    tell(session, _NEWS[status], rows)
    return returned


def tell(session: Session, news: str, held: Iterable[Reservation | HeldRow]) -> None:
    """Buyers and shops hear of it when the transaction is committed."""
    notify(session, [_news(news, one) for one in held])


def _news(kind: str, held: Reservation | HeldRow) -> News:
    data = {"reservation_id": held.id, "product_id": held.product_id, "supplier_id": held.supplier_id}
    return News(kind, {**data, "quantity": held.quantity}, held.actor, held.supplier_id)


def end_reservation(
    session: Session,
    search: ProductSearch,
    reservation: Reservation,
    status: ReservationStatus,
    reason: str | None = None,
) -> bool:
    """True for the one transaction that ends the reservation. A reservation that is due ends as expired.

    A sale is an acceptance, too.
    """
    moment = now()
    accepted = (
        {"accepted_at": func.coalesce(Reservation.accepted_at, moment_value(moment))} if status == "committed" else {}
    )
    ended = execute_update(
        session,
        update(Reservation)
        .where(Reservation.id == reservation.id, Reservation.status == "held", Reservation.expires_at > moment)
        .values(status=status, ended_at=moment, refusal_reason=reason, **accepted),
    )
    if ended:
        tell(session, _NEWS[status], [reservation])
    else:
        expire_due(session, search, Reservation.id == reservation.id)
    return bool(ended)


def is_due() -> ColumnElement[bool]:
    return and_(Reservation.status == "held", Reservation.expires_at <= now())


def status_of(reservation: Reservation) -> ReservationStatus:
    has_ended = reservation.status == "held" and reservation.expires_at <= now()
    return cast(ReservationStatus, "expired" if has_ended else reservation.status)
