"""Reservations: units of a product held for one account until they are sold, released, or expired.

Every function locks accounts before reservations, these before reviews, and products before the search, so that no
two transactions deadlock.
"""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Row, and_, func, or_, select
from sqlalchemy.orm import Session

from tis.errors import Forbidden, NotFound
from tis.marketplace.columns import moment_value, now
from tis.marketplace.context import ServiceRules
from tis.marketplace.kit.branch_shares import ANYWHERE, PlaceWish, UnitsAt
from tis.marketplace.kit.paging import MAX_COUNTED
from tis.marketplace.kit.principal import Principal
from tis.marketplace.policy import require_holder, require_seller, require_somebody
from tis.marketplace.products.service import supplier_for_member
from tis.marketplace.reviews.service import count_verified, lock_buyer, verify_review
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.stock.caps import require_within_caps
from tis.marketplace.stock.counters import (
    available_of,
    release_units,
    sell_units,
)
from tis.marketplace.stock.ending import end_reservation, is_due, status_of, tell
from tis.marketplace.stock.holding import hold_units
from tis.marketplace.stock.schemas import MovementKind, ReservationStatus, ReservationView
from tis.marketplace.tables import Product, Reservation, StockMovement, Supplier

_DEFAULT_RULES = ServiceRules()
_SHOWN = (
    "id",
    "product_id",
    "quantity",
    "branch_id",
    "unit_price",
    "created_at",
    "accepted_at",
    "expires_at",
    "ended_at",
    "refusal_reason",
)


def reserve(
    session: Session,
    principal: Principal,
    search: ProductSearch,
    product_id: int,
    quantity: int,
    seconds: float,
    rules: ServiceRules = _DEFAULT_RULES,
    wish: PlaceWish = ANYWHERE,
) -> ReservationView:
    require_somebody(principal)
    require_within_caps(session, principal, rules, {product_id: quantity})
    [held] = hold_units(session, principal, search, {product_id: quantity}, seconds, wish=wish)
    tell(session, "hold.made", [held])
    return reservation_view(held, available_of(session, product_id))


def commit(session: Session, principal: Principal, search: ProductSearch, reservation_id: str) -> ReservationView:
    """Sells the units, unless the returned status says that it was too late."""
    reservation = find_reservation(session, principal, reservation_id)
    require_holder(principal, reservation.actor, reservation.supplier_id)
    require_seller(principal, reservation.supplier_id, reservation.actor)
    require_not_suspended(session, principal, reservation.supplier_id)
    lock_buyer(session, reservation.actor)
    if end_reservation(session, search, reservation, "committed"):
        review = verify_review(session, reservation.actor, reservation.product_id)
        units = UnitsAt(reservation.product_id, reservation.branch_id)
        left = sell_units(session, units, reservation.quantity)
        session.add(
            StockMovement(
                product_id=reservation.product_id,
                supplier_id=reservation.supplier_id,
                delta=-reservation.quantity,
                kind="sold",
                on_hand=left,
                reservation_id=reservation.id,
                branch_id=reservation.branch_id,
                actor=principal.account,
            )
        )
        if review:
            count_verified(session, search, [review])
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
        release_units(session, search, {UnitsAt(reservation.product_id, reservation.branch_id): reservation.quantity})
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


def _has_status(status: ReservationStatus) -> ColumnElement[bool]:
    if status == "held":
        # With the bare column, SQLite would read the held reservations of everybody, in the order in which they expire.
        expires_at = func.coalesce(Reservation.expires_at, moment_value(now()))
        return and_(Reservation.status == "held", expires_at > now())
    return or_(Reservation.status == status, is_due()) if status == "expired" else Reservation.status == status
