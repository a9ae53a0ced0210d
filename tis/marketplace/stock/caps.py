"""How much one account may hold at a time, so that nobody empties a shop without buying."""

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from sqlalchemy import and_, func, or_, select
from sqlalchemy.orm import Session

from tis.errors import Conflict
from tis.http.errors import RateLimitExceeded
from tis.marketplace.auth.accounts import lock_account
from tis.marketplace.columns import now
from tis.marketplace.context import ServiceRules
from tis.marketplace.kit.principal import Principal
from tis.marketplace.tables import Order, OrderLine, Product, Reservation

_DAY = timedelta(days=1)
_MOST = 1000  # reservations of one account and product that are looked at
MAX_HOLD = timedelta(hours=1)  # from the reservation to its end, whoever accepts it meanwhile


def require_within_caps(
    session: Session, principal: Principal, rules: ServiceRules, quantities: Mapping[int, int]
) -> None:
    """`quantities` by product. The shop of the products has no caps, nor has a caller without an account (open mode).

    Locks the account: two reservations at once would both find room for one, and an account that is being deleted
    would hold what nobody releases.
    """
    if principal.account is None:
        return
    lock_account(session, principal.account)
    if _works_for_shop_of(session, principal, min(quantities)):
        return
    number, units = _held_now(session, principal.account)
    if number + len(quantities) > rules.max_reservations_per_account:
        raise Conflict(
            f"An account holds at most {rules.max_reservations_per_account} reservations at a time, and you hold "
            f"{number}: release one, pay or cancel an order, or wait until one ends.",
            code="too_many_reservations",
        )
    for product_id, quantity in sorted(quantities.items()):
        if units[product_id] + quantity > rules.max_reserved_units_per_product:
            raise Conflict(
                f"An account holds at most {rules.max_reserved_units_per_product} units of a product at a time; "
                f"you hold {units[product_id]}.",
                code="too_many_units",
            )
        _require_cooled_down(session, principal.account, rules, product_id)


def _held_now(session: Session, account: str) -> tuple[int, Counter[int]]:
    """How many reservations, with the lines of orders that are not paid, and the units by product."""
    moment, units = now(), Counter[int]()
    held = select(Reservation.product_id, func.count(), func.sum(Reservation.quantity)).where(
        Reservation.actor == account, Reservation.status == "held", Reservation.expires_at > moment
    )
    number = 0
    for product_id, count, quantity in session.execute(held.group_by(Reservation.product_id)):
        number += count
        units[product_id] += int(quantity)
    ordered = select(OrderLine.product_id, OrderLine.quantity).join(Order, Order.id == OrderLine.order_id)
    # Accepted ones, too: of a shop that accepts everything, a buyer would have all goods for `pay_hours`.
    is_unpaid = Order.state.in_(("draft", "placed", "accepted")), Order.due_at > moment, OrderLine.quantity > 0
    for product_id, quantity in session.execute(ordered.where(Order.buyer == account, *is_unpaid)):
        number += 1
        units[product_id] += quantity
    return number, units


def _require_cooled_down(session: Session, account: str, rules: ServiceRules, product_id: int) -> None:
    """Who held a product again and again without buying waits, so that nobody keeps the stock of a rival off sale."""
    if not rules.max_unsold_hold_minutes:
        return
    moment, allowed = now(), timedelta(minutes=rules.max_unsold_hold_minutes)
    rows = [*_unsold_holds(session, account, product_id), *_unsold_orders(session, account, product_id)]
    held = sorted((begun, (ended or moment) - begun) for begun, ended in rows)
    total = sum((time for _, time in held), timedelta())
    for begun, time in held:
        if total < allowed:
            return
        total -= time
        if total < allowed:
            raise RateLimitExceeded(
                f"You have held this product for {rules.max_unsold_hold_minutes} minutes in a day without buying it. "
                "Try again later.",
                retry_after=max(1.0, (begun + _DAY - moment).total_seconds()),
            )


def _unsold_holds(session: Session, account: str, product_id: int) -> Iterator[tuple[datetime, datetime | None]]:
    """When each began and ended."""
    rows = select(Reservation.created_at, Reservation.ended_at).where(
        Reservation.actor == account,
        Reservation.status.in_(("released", "expired")),
        Reservation.created_at > now() - _DAY,
        Reservation.product_id == product_id,
    )
    yield from session.execute(rows.order_by(Reservation.created_at).limit(_MOST))


def _unsold_orders(session: Session, account: str, product_id: int) -> Iterator[tuple[datetime, datetime | None]]:
    """Orders that their buyer dropped before the shop accepted them, from the hold on."""
    rows = (
        select(Reservation.created_at, Order.ended_at)
        .join(OrderLine, OrderLine.reservation_id == Reservation.id)
        .join(Order, Order.id == OrderLine.order_id)
        .where(
            Reservation.actor == account,
            Reservation.status == "ordered",
            Reservation.created_at > now() - _DAY,
            Reservation.product_id == product_id,
            Order.accepted_at.is_(None),
            or_(Order.state == "cancelled", and_(Order.state == "expired", Order.placed_at.is_(None))),
        )
    )
    yield from session.execute(rows.order_by(Reservation.created_at).limit(_MOST))


def _works_for_shop_of(session: Session, principal: Principal, product_id: int) -> bool:
    if not principal.supplier_ids:
        return False
    return session.scalar(select(Product.supplier_id).where(Product.id == product_id)) in principal.supplier_ids
