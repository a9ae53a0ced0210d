"""The shop's side of reservations: list them, accept or refuse them, and learn how to reach a buyer it accepted."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from tis.marketplace.auth.accounts import split_account
from tis.marketplace.columns import now
from tis.marketplace.kit import audit
from tis.marketplace.kit.branch_shares import UnitsAt
from tis.marketplace.kit.fields import abbreviated_name
from tis.marketplace.kit.principal import Principal
from tis.marketplace.policy import require_holder, require_seller, sees_buyer
from tis.marketplace.products.service import supplier_for_member
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.stock.caps import MAX_HOLD
from tis.marketplace.stock.counters import execute_update, release_units
from tis.marketplace.stock.ending import end_reservation, expire_due, status_of, tell
from tis.marketplace.stock.schemas import (
    SHOP_DECIDES,
    BuyerView,
    ReservationStatus,
    ReservationView,
    ShopReservationView,
)
from tis.marketplace.stock.service import (
    current_reservation,
    find_reservation,
    read_reservations,
    require_not_suspended,
    reservation_view,
)
from tis.marketplace.tables import Product, Reservation, Supplier, User


def accept(
    session: Session, principal: Principal, search: ProductSearch, reservation_id: str, seconds: float
) -> ShopReservationView:
    """Holds the units for `seconds` from now if that is longer, within the hour. Too late if the status is not held."""
    reservation = _find_own(session, principal, reservation_id)
    require_not_suspended(session, principal, reservation.supplier_id)
    moment = now()
    until = min(moment + timedelta(seconds=seconds), reservation.created_at + MAX_HOLD)
    later = {"expires_at": until, "reminded_at": None} if until > reservation.expires_at else {}
    accepted = execute_update(
        session,
        update(Reservation)
        .where(
            Reservation.id == reservation_id,
            Reservation.status == "held",
            Reservation.expires_at > moment,
            Reservation.accepted_at.is_(None),
        )
        .values(accepted_at=moment, **later),
    )
    if accepted:
        audit.note(session, principal, "reservation.accept", "reservation", reservation_id)
        tell(session, "hold.accepted", [reservation])
    else:
        expire_due(session, search, Reservation.id == reservation_id)
    return _described(session, principal, reservation)


def refuse(
    session: Session, principal: Principal, search: ProductSearch, reservation_id: str, reason: str | None = None
) -> ShopReservationView:
    """Makes the units available again, unless the returned status says that they were sold. The buyer reads why."""
    reservation = _find_own(session, principal, reservation_id)
    if end_reservation(session, search, reservation, "refused", reason):
        release_units(session, search, {UnitsAt(reservation.product_id, reservation.branch_id): reservation.quantity})
        audit.note(session, principal, "reservation.refuse", "reservation", reservation_id)
    return _described(session, principal, reservation)


def list_for_shop(
    session: Session,
    principal: Principal,
    supplier_id: int,
    status: ReservationStatus | None,
    before: str | None,
    limit: int,
) -> tuple[list[ShopReservationView], int]:
    """Newest first, and their number, counted up to `MAX_COUNTED + 1`."""
    supplier_for_member(session, principal, supplier_id)
    rows, total = read_reservations(session, Reservation.supplier_id == supplier_id, status, before, limit)
    buyers = _buyers(session, principal, [reservation for reservation, _, _ in rows])
    return [
        _view(reservation_view(reservation, available), name, buyers.get(reservation.id))
        for reservation, available, name in rows
    ], total


def _find_own(session: Session, principal: Principal, reservation_id: str) -> Reservation:
    reservation = find_reservation(session, principal, reservation_id)
    require_holder(principal, reservation.actor, reservation.supplier_id)
    require_seller(principal, reservation.supplier_id, reservation.actor, SHOP_DECIDES)
    return reservation


def _described(session: Session, principal: Principal, reservation: Reservation) -> ShopReservationView:
    current = current_reservation(session, reservation)
    name = session.scalar(select(Product.name).where(Product.id == reservation.product_id)) or ""
    return _view(current, name, _buyers(session, principal, [reservation]).get(reservation.id))


def _view(current: ReservationView, product_name: str, buyer: BuyerView | None) -> ShopReservationView:
    return ShopReservationView(**dict(current), product_name=product_name, buyer=buyer)


def _buyers(session: Session, principal: Principal, reservations: Sequence[Reservation]) -> dict[str, BuyerView]:
    """By id of the reservation. Contact data only of those that the shop accepted."""
    shown = {one.id: (one.actor, sees_buyer(principal, one.accepted_at, status_of(one))) for one in reservations}
    return describe_buyers(session, shown)


def describe_buyers(session: Session, shown: Mapping[str, tuple[str | None, bool]]) -> dict[str, BuyerView]:
    """By any name: an account, and whether its contact data may be seen."""
    accounts = {account for account, _ in shown.values() if account}
    people: dict[str, User | Supplier] = {}
    for kind, table in (("user", User), ("supplier", Supplier)):
        ids = _ids_of(kind, accounts)
        rows: Iterable[User | Supplier] = session.scalars(select(table).where(table.id.in_(ids))) if ids else ()
        people |= {f"{kind}:{row.id}": row for row in rows}
    return {
        name: _buyer(people[account], shows_contact=shows_contact)
        for name, (account, shows_contact) in shown.items()
        if account in people
    }


def _ids_of(kind: str, accounts: Iterable[str]) -> list[int]:
    return [number for name, number in map(split_account, accounts) if name == kind]


def _buyer(account: User | Supplier, *, shows_contact: bool) -> BuyerView:
    if isinstance(account, Supplier):
        name = account.business_name
    elif account.deleted_at is not None:
        name = "Deleted user"
    else:
        name = account.name if shows_contact else abbreviated_name(account.name)
    if account.deleted_at is not None or not shows_contact:
        return BuyerView(name=name, email=None, phone=None)
    return BuyerView(name=name, email=account.email, phone=account.phone)
