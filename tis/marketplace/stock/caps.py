"""How much one account may hold at a time, so that nobody empties a shop without buying."""

from datetime import timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from tis.errors import Conflict
from tis.http.errors import RateLimitExceeded
from tis.marketplace.auth.accounts import lock_account
from tis.marketplace.columns import now
from tis.marketplace.context import ServiceRules
from tis.marketplace.kit.principal import Principal
from tis.marketplace.tables import Product, Reservation

_DAY = timedelta(days=1)
_MOST = 1000  # reservations of one account and product that are looked at
MAX_HOLD = timedelta(hours=1)  # from the reservation to its end, whoever accepts it meanwhile


def require_within_caps(
    session: Session, principal: Principal, rules: ServiceRules, product_id: int, quantity: int
) -> None:
    """The shop of the product has no caps, nor has a caller without an account (open mode).

    Locks the account: two reservations at once would both find room for one, and an account that is being deleted
    would hold what nobody releases.
    """
    if principal.account is None:
        return
    lock_account(session, principal.account)
    if _works_for_shop_of(session, principal, product_id):
        return
    held = select(Reservation.product_id, func.count(), func.sum(Reservation.quantity)).where(
        Reservation.actor == principal.account, Reservation.status == "held", Reservation.expires_at > now()
    )
    rows = [tuple(row) for row in session.execute(held.group_by(Reservation.product_id))]
    if sum(count for _, count, _ in rows) >= rules.max_reservations_per_account:
        raise Conflict(
            f"You hold {rules.max_reservations_per_account} reservations already: release one, or wait until one ends.",
            code="too_many_reservations",
        )
    units = sum(int(units) for product, _, units in rows if product == product_id)
    if units + quantity > rules.max_reserved_units_per_product:
        raise Conflict(
            f"An account holds at most {rules.max_reserved_units_per_product} units of a product at a time; "
            f"you hold {units}.",
            code="too_many_units",
        )
    _require_cooled_down(session, principal.account, rules, product_id)


def _require_cooled_down(session: Session, account: str, rules: ServiceRules, product_id: int) -> None:
    """Who held a product again and again without buying waits, so that nobody keeps the stock of a rival off sale."""
    if not rules.max_unsold_hold_minutes:
        return
    moment, allowed = now(), timedelta(minutes=rules.max_unsold_hold_minutes)
    unsold = select(Reservation.created_at, Reservation.ended_at).where(
        Reservation.actor == account,
        Reservation.status.in_(("released", "expired")),
        Reservation.created_at > moment - _DAY,
        Reservation.product_id == product_id,
    )
    rows = session.execute(unsold.order_by(Reservation.created_at).limit(_MOST))
    held = [(begun, (ended or moment) - begun) for begun, ended in rows]
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


def _works_for_shop_of(session: Session, principal: Principal, product_id: int) -> bool:
    if not principal.supplier_ids:
        return False
    return session.scalar(select(Product.supplier_id).where(Product.id == product_id)) in principal.supplier_ids
