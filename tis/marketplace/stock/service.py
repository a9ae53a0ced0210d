"""Reservations: units of a product held for one account until they are sold, released, or expired.

Every function locks accounts before reservations, these before reviews, and products before the search, so that no
two transactions deadlock.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import timedelta
from typing import cast
from uuid import uuid4

from sqlalchemy import ColumnElement, Row, and_, exists, func, or_, select, update
from sqlalchemy.orm import Session

from tis.errors import Conflict, Forbidden, NotFound
from tis.marketplace.columns import now
from tis.marketplace.context import ServiceRules
from tis.marketplace.kit.news import News
from tis.marketplace.kit.notice_outbox import notify
from tis.marketplace.kit.paging import MAX_COUNTED
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.promoted_prices import units_left
from tis.marketplace.kit.promotion_clock import apply_due, promotion_for_hold
from tis.marketplace.policy import require_holder, require_seller, require_somebody
from tis.marketplace.products.service import supplier_for_member
from tis.marketplace.reviews.service import count_verified, lock_buyer, verify_review
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.stock.caps import MAX_HOLD, require_within_caps
from tis.marketplace.stock.counters import (
    available_of,
    execute_update,
    release_units,
    require_on_sale,
    reserve_units,
    sell_units,
)
from tis.marketplace.stock.schemas import MovementKind, ReservationStatus, ReservationView
from tis.marketplace.tables import Product, Promotion, Reservation, StockMovement, Supplier

_DEFAULT_RULES = ServiceRules()
_SHOWN = (
    "id",
    "product_id",
    "quantity",
    "unit_price",
    "created_at",
    "accepted_at",
    "expires_at",
    "ended_at",
    "refusal_reason",
)
MAX_EXPIRED_AT_ONCE = 500  # per transaction, so that other writers get their turn


_HeldRow = Row[str, int, int, int, str | None]
_HELD = (
    Reservation.id,
    Reservation.product_id,
    Reservation.quantity,
    Reservation.supplier_id,
    Reservation.actor,
)
_NEWS: dict[ReservationStatus, str] = {
    "committed": "hold.sold",
    "released": "hold.released",
    "refused": "hold.refused",
    "expired": "hold.expired",
}


def reserve(
    session: Session,
    principal: Principal,
    search: ProductSearch,
    product_id: int,
    quantity: int,
    seconds: float,
    rules: ServiceRules = _DEFAULT_RULES,
) -> ReservationView:
    require_somebody(principal)
    left = require_on_sale(session, product_id)
    require_within_caps(session, principal, rules, product_id, quantity)
    of_product = Reservation.product_id == product_id
    if left < quantity:
        # Reservations that are due may hold the missing units. This waits for a sweep that is running.
        expire_due(session, search, of_product)
    promotion, changed = _promotion_for(session, search, product_id, quantity)
    available = reserve_units(session, search, product_id, quantity, refreshes=False)
    if available is None and left >= quantity:
        # Another transaction took the units. PostgreSQL has locked the product by now, so skip locked reservations:
        # waiting for them could deadlock.
        expire_due(session, search, of_product, skip_locked=True)
        available = reserve_units(session, search, product_id, quantity, refreshes=False)
    if available is None:
        raise Conflict(f"Only {require_on_sale(session, product_id)} left", code="insufficient_stock")
    moment = now()
    reservation = Reservation(
        id=str(uuid4()),
        product_id=product_id,
        promotion_id=promotion.id if promotion else None,
        actor=principal.account,
        quantity=quantity,
        status="held",
        created_at=moment,
        expires_at=moment + min(timedelta(seconds=seconds), MAX_HOLD),
    )
    session.add(reservation)
    session.flush()
    if promotion and promotion.max_units:
        changed += apply_due(session, [product_id])  # it was the last one
    if available == 0 or changed:
        search.refresh(session, [product_id])
    tell(session, "hold.made", [reservation])
    return reservation_view(reservation, available)


def _promotion_for(
    session: Session, search: ProductSearch, product_id: int, quantity: int
) -> tuple[Promotion | None, list[int]]:
    """The promotion that is in force, and the product if its price has changed: the search must know."""
    promotion, changed = promotion_for_hold(session, product_id)
    left = units_left(session, promotion) if promotion else None
    if promotion and left is not None and left < quantity:
        # The product is locked by now: see `reserve`.
        expire_due(session, search, Reservation.promotion_id == promotion.id, skip_locked=True)
        left = units_left(session, promotion) or 0
        if left < quantity:
            raise Conflict(f"Only {left} units are left at the price of the promotion.", code="promotion_units")
    return promotion, changed


def commit(session: Session, principal: Principal, search: ProductSearch, reservation_id: str) -> ReservationView:
    """Sells the units, unless the returned status says that it was too late."""
    reservation = find_reservation(session, principal, reservation_id)
    require_holder(principal, reservation.actor, reservation.supplier_id)
    require_seller(principal, reservation.supplier_id)
    require_not_suspended(session, principal, reservation.supplier_id)
    lock_buyer(session, reservation.actor)
    if end_reservation(session, search, reservation, "committed"):
        review = verify_review(session, reservation.actor, reservation.product_id)
        left = sell_units(session, reservation.product_id, reservation.quantity)
        session.add(
            StockMovement(
                product_id=reservation.product_id,
                supplier_id=reservation.supplier_id,
                delta=-reservation.quantity,
                kind="sold",
                on_hand=left,
                reservation_id=reservation.id,
                actor=principal.account,
            )
        )
        if review:
            count_verified(session, search, review)
    return current_reservation(session, reservation)


def require_not_suspended(session: Session, principal: Principal, supplier_id: int) -> None:
    """A suspended supplier sells nothing, and does not learn how to reach buyers, whichever member asks."""
    if principal.is_open or principal.is_admin:
        return
    if session.scalar(select(Supplier.status).where(Supplier.id == supplier_id)) == "suspended":
        raise Forbidden("This supplier is suspended: it may refuse reservations, not accept or sell them.")


def release(session: Session, principal: Principal, search: ProductSearch, reservation_id: str) -> ReservationView:
    """Makes the units available again, unless the returned status says that they were sold."""
    reservation = find_reservation(session, principal, reservation_id)
    require_holder(principal, reservation.actor, reservation.supplier_id)
    if end_reservation(session, search, reservation, "released"):
        release_units(session, search, {reservation.product_id: reservation.quantity})
    return current_reservation(session, reservation)


def get_reservation(session: Session, principal: Principal, reservation_id: str) -> ReservationView:
    reservation = find_reservation(session, principal, reservation_id)
    require_holder(principal, reservation.actor, reservation.supplier_id)
    return current_reservation(session, reservation)


def list_reservations(
    session: Session, principal: Principal, status: ReservationStatus | None, before: str | None, limit: int
) -> tuple[list[ReservationView], int]:
    """Reservations of the caller, newest first, and their total number, counted no further than needed."""
    require_somebody(principal)
    own = Reservation.actor == principal.account if principal.account else Reservation.actor.is_(None)
    rows, total = read_reservations(session, own, status, before, limit)
    return [reservation_view(reservation, available) for reservation, available, _ in rows], total


def read_reservations(
    session: Session, own: ColumnElement[bool], status: ReservationStatus | None, before: str | None, limit: int
) -> tuple[Sequence[Row[Reservation, int, str]], int]:
    """Newest first, each with the available units and the name of its product. Counts up to `MAX_COUNTED + 1`."""
    wanted = [own, _has_status(status)] if status else [own]
    earlier = [] if before is None else [_is_before(session, before, own)]
    rows = (
        select(Reservation, Product.on_hand - Product.reserved, Product.name)
        .join(Product, Product.id == Reservation.product_id)
        .where(*wanted, *earlier)
        .order_by(Reservation.created_at.desc(), Reservation.id.desc())
        .limit(limit)
    )
    counted = select(Reservation.id).where(*wanted).limit(MAX_COUNTED + 1).subquery()
    return session.execute(rows).all(), session.scalar(select(func.count()).select_from(counted)) or 0


def list_movements(
    session: Session,
    principal: Principal,
    supplier_id: int,
    product_id: int | None,
    kind: MovementKind | None,
    before: int | None,
    limit: int,
) -> Sequence[Row[StockMovement, str]]:
    """Newest first, each with the name of its product."""
    supplier_for_member(session, principal, supplier_id)
    movements = (
        select(StockMovement, Product.name)
        .join(Product, Product.id == StockMovement.product_id)
        .where(StockMovement.supplier_id == supplier_id)
        .order_by(StockMovement.id.desc())
        .limit(limit)
    )
    if product_id is not None:
        movements = movements.where(StockMovement.product_id == product_id)
    if kind is not None:
        movements = movements.where(StockMovement.kind == kind)
    if before is not None:
        movements = movements.where(StockMovement.id < before)
    return session.execute(movements).all()


def _is_before(session: Session, reservation_id: str, own: ColumnElement[bool]) -> ColumnElement[bool]:
    created_at = session.scalar(select(Reservation.created_at).where(Reservation.id == reservation_id, own))
    if created_at is None:
        raise NotFound("Reservation not found")
    same_time = and_(Reservation.created_at == created_at, Reservation.id < reservation_id)
    return or_(Reservation.created_at < created_at, same_time)


def has_due(session: Session) -> bool:
    return bool(session.scalar(select(exists().where(_is_due()))))


def expire_due(
    session: Session, search: ProductSearch, wanted: ColumnElement[bool], *, skip_locked: bool = False
) -> int:
    """Returns how many it ended. A concurrent call ends other reservations, or none."""
    due = session.execute(
        select(*_HELD)
        .where(_is_due(), wanted)
        .order_by(Reservation.expires_at, Reservation.id)
        .limit(MAX_EXPIRED_AT_ONCE)
        # A caller that has locked a product already must skip reservations that another transaction is ending.
        .with_for_update(skip_locked=skip_locked)
    ).all()
    _end_locked(session, search, due, "expired")
    return len(due)


def release_all(
    session: Session, search: ProductSearch, accounts: Collection[str], before_products: Callable[[], None]
) -> None:
    """Releases what accounts that are being deleted hold. Locks in the same order as `expire_due`.

    `before_products` locks what comes between reservations and products.
    """
    held = session.execute(
        select(*_HELD)
        .where(Reservation.actor.in_(accounts), Reservation.status == "held")
        .order_by(Reservation.expires_at, Reservation.id)
        .with_for_update()
    ).all()
    _end_locked(session, search, held, "released", before_products)


def _end_locked(
    session: Session,
    search: ProductSearch,
    rows: Sequence[_HeldRow],
    status: ReservationStatus,
    before_products: Callable[[], None] = lambda: None,
) -> None:
    for first in range(0, len(rows), MAX_EXPIRED_AT_ONCE):  # databases limit the parameters of a statement
        ids = [row.id for row in rows[first : first + MAX_EXPIRED_AT_ONCE]]
        execute_update(
            session, update(Reservation).where(Reservation.id.in_(ids)).values(status=status, ended_at=now())
        )
    returned: Counter[int] = Counter()
    for row in rows:
        returned[row.product_id] += row.quantity
    before_products()
    release_units(session, search, returned)
    tell(session, _NEWS[status], rows)


def tell(session: Session, news: str, held: Iterable[Reservation | _HeldRow]) -> None:
    """Buyers and shops hear of it when the transaction is committed."""
    notify(session, [_news(news, one) for one in held])


def _news(kind: str, held: Reservation | _HeldRow) -> News:
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
    accepted = {"accepted_at": func.coalesce(Reservation.accepted_at, moment)} if status == "committed" else {}
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


def find_reservation(session: Session, principal: Principal, reservation_id: str) -> Reservation:
    require_somebody(principal)
    reservation = session.get(Reservation, reservation_id)
    if reservation is None:
        raise NotFound("Reservation not found")
    return reservation


def current_reservation(session: Session, reservation: Reservation) -> ReservationView:
    session.refresh(reservation)
    return reservation_view(reservation, available_of(session, reservation.product_id))


def reservation_view(reservation: Reservation, available: int) -> ReservationView:
    shown = {name: getattr(reservation, name) for name in _SHOWN}
    return ReservationView(**shown, status=status_of(reservation), available_quantity=available)


def _is_due() -> ColumnElement[bool]:
    return and_(Reservation.status == "held", Reservation.expires_at <= now())


def _has_status(status: ReservationStatus) -> ColumnElement[bool]:
    if status == "held":
        # With the bare column, SQLite would read the held reservations of everybody, in the order in which they expire.
        expires_at = func.coalesce(Reservation.expires_at, now())
        return and_(Reservation.status == "held", expires_at > now())
    return or_(Reservation.status == status, _is_due()) if status == "expired" else Reservation.status == status


def status_of(reservation: Reservation) -> ReservationStatus:
    is_due = reservation.status == "held" and reservation.expires_at <= now()
    return cast(ReservationStatus, "expired" if is_due else reservation.status)
