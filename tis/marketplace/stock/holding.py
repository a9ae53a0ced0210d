"""Takes units for one account: of several products, all or none, at the price of the moment."""

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from uuid import uuid4

from sqlalchemy.orm import Session

from tis.errors import Conflict
from tis.marketplace.columns import now
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.promoted_prices import units_left
from tis.marketplace.kit.promotion_clock import apply_due, promotion_for_hold
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.stock.caps import MAX_HOLD
from tis.marketplace.stock.counters import (
    give_back_units,
    require_on_sale,
    take_units,
)
from tis.marketplace.stock.ending import end_due
from tis.marketplace.stock.schemas import ReservationStatus
from tis.marketplace.tables import Promotion, Reservation


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
    returned = end_due(session, is_short, skip_locked=not waits) if short else Counter[int]()
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
            due = end_due(session, Reservation.product_id == product_id, skip_locked=True)
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
        due = end_due(session, Reservation.promotion_id == promotion.id, skip_locked=True)
        changed = [*changed, *give_back_units(session, due)]
        left = units_left(session, promotion) or 0
        if left < quantity:
            raise Conflict(f"Only {left} units are left at the price of the promotion.", code="promotion_units")
    return promotion, list(changed)
