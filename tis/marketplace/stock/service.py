"""Reservations: units of a product held for one account until they are sold, released, or expired.

Every function locks accounts before reservations, these before reviews, and products before the search, so that no
two transactions deadlock.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
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
    give_back_units,
    release_units,
    require_on_sale,
    sell_units,
    take_units,
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
    require_within_caps(session, principal, rules, {product_id: quantity})
    [held] = hold_units(session, principal, search, {product_id: quantity}, seconds)
    tell(session, "hold.made", [held])
    return reservation_view(held, available_of(session, product_id))


def hold_units(
    session: Session,
    principal: Principal,
    search: ProductSearch,
    quantities: Mapping[int, int],
    seconds: float,
    status: ReservationStatus = "held",
    *,
    waits: bool = True,
) -> list[Reservation]:
    """Units by product: of all or of none. In the order of the products; nobody is told. See `require_within_caps`.

    A caller that has locked reservations already does not wait for a sweep.
    """
    left = {product_id: require_on_sale(session, product_id) for product_id in sorted(quantities)}
    short = [product_id for product_id, quantity in quantities.items() if left[product_id] < quantity]
    # Reservations that are due may hold the missing units. This waits for a sweep that is running.
    is_short = Reservation.product_id.in_(short)
    returned = _end_due(session, is_short, skip_locked=not waits) if short else Counter[int]()
    changed: list[int] = []
    promotions: dict[int, Promotion] = {}
    for product_id, quantity in sorted(quantities.items()):
        changed += give_back_units(session, {product_id: returned[product_id]}) if product_id in returned else []
        promotion, moved = _promotion_for(session, product_id, quantity)
        changed += moved
        if promotion:
            promotions[product_id] = promotion
        available = take_units(session, product_id, quantity)
        if available is None and left[product_id] >= quantity:
            # Another transaction took the units. PostgreSQL has locked the product by now, so skip locked
            # reservations: waiting for them could deadlock.
            due = _end_due(session, Reservation.product_id == product_id, skip_locked=True)
            changed += give_back_units(session, due)
            available = take_units(session, product_id, quantity)
        if available is None:
            named = f" of product {product_id}" if len(quantities) > 1 else ""
            raise Conflict(f"Only {require_on_sale(session, product_id)} left{named}", code="insufficient_stock")
        changed += [] if available else [product_id]
    moment = now()
    held = [
        Reservation(
            id=str(uuid4()),
            product_id=product_id,
            promotion_id=promotions[product_id].id if product_id in promotions else None,
            actor=principal.account,
            quantity=quantity,
            status=status,
            created_at=moment,
            expires_at=moment + min(timedelta(seconds=seconds), MAX_HOLD),
            ended_at=None if status == "held" else moment,
        )
        for product_id, quantity in sorted(quantities.items())
    ]
    session.add_all(held)
    session.flush()
    # It may have been the last unit of a promotion.
    changed += apply_due(session, sorted(number for number, one in promotions.items() if one.max_units))
    search.refresh(session, sorted(set(changed)))
    return held


def _promotion_for(session: Session, product_id: int, quantity: int) -> tuple[Promotion | None, list[int]]:
    """The promotion that is in force, and the product if its price or stock has changed: the search must know."""
    promotion, changed = promotion_for_hold(session, product_id)
    left = units_left(session, promotion) if promotion else None
    if promotion and left is not None and left < quantity:
        # The product is locked by now: see `hold_units`.
        due = _end_due(session, Reservation.promotion_id == promotion.id, skip_locked=True)
        changed = [*changed, *give_back_units(session, due)]
        left = units_left(session, promotion) or 0
        if left < quantity:
            raise Conflict(f"Only {left} units are left at the price of the promotion.", code="promotion_units")
    return promotion, list(changed)


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
    due = _lock_due(session, wanted, skip_locked=skip_locked)
    release_units(session, search, _end_locked(session, due, "expired"))
    return len(due)


def _end_due(session: Session, wanted: ColumnElement[bool], *, skip_locked: bool = False) -> Counter[int]:
    """Returns the units by product, which the caller gives back."""
    return _end_locked(session, _lock_due(session, wanted, skip_locked=skip_locked), "expired")


def _lock_due(session: Session, wanted: ColumnElement[bool], *, skip_locked: bool) -> Sequence[_HeldRow]:
    """A caller that has locked a product already must skip reservations that another transaction is ending."""
    due = select(*_HELD).where(_is_due(), wanted).order_by(Reservation.expires_at, Reservation.id)
    return session.execute(due.limit(MAX_EXPIRED_AT_ONCE).with_for_update(skip_locked=skip_locked)).all()


def release_all(
    session: Session,
    search: ProductSearch,
    accounts: Collection[str],
    before_products: Callable[[], Mapping[int, int]],
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


def _end_locked(session: Session, rows: Sequence[_HeldRow], status: ReservationStatus) -> Counter[int]:
    """Returns the units by product."""
    for first in range(0, len(rows), MAX_EXPIRED_AT_ONCE):  # databases limit the parameters of a statement
        ids = [row.id for row in rows[first : first + MAX_EXPIRED_AT_ONCE]]
        execute_update(
            session, update(Reservation).where(Reservation.id.in_(ids)).values(status=status, ended_at=now())
        )
    returned: Counter[int] = Counter()
    for row in rows:
        returned[row.product_id] += row.quantity
    tell(session, _NEWS[status], rows)
    return returned


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
