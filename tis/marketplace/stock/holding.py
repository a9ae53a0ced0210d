"""Takes units for one account: of several products, all or none, at the price of the moment."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from uuid import uuid4

from sqlalchemy.orm import Session

from tis.errors import Conflict
from tis.marketplace.columns import now
from tis.marketplace.kit.branch_shares import ANYWHERE, PlaceWish, Share, UnitsAt, is_any_spread, shares_of
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
    wish: PlaceWish = ANYWHERE,
    waits: bool = True,
) -> list[Reservation]:
    """Units by product: of all or of none, and all at one place of the shop. In the order of the products; nobody is
    told. See `require_within_caps`.

    A caller that has locked reservations already does not wait for a sweep.
    """
    left = {product_id: require_on_sale(session, product_id) for product_id in sorted(quantities)}
    shares: Mapping[int, Sequence[Share]] = {}
    place: Share | None = None
    if wish.branch_id or is_any_spread(session, quantities):
        shares = shares_of(session, quantities)
        place = _place_of_all(wish, shares, quantities)
        wish = PlaceWish(place.branch_id) if place else wish
        left = {product_id: wish.max_at_one(shares[product_id]) for product_id in left}
    has_no_place = bool(shares) and len(quantities) > 1 and place is None
    short = [product_id for product_id, quantity in quantities.items() if has_no_place or left[product_id] < quantity]
    # Reservations that are due may hold the missing units. This waits for a sweep that is running.
    is_short = Reservation.product_id.in_(short)
    returned = end_due(session, is_short, skip_locked=not waits) if short else Counter[UnitsAt]()
    if returned and has_no_place and (place := _place_of_all(wish, _with(returned, shares), quantities)):
        wish = PlaceWish(place.branch_id)
    changed: list[int] = []
    promotions: dict[int, Promotion] = {}
    places: dict[int, int] = {}
    for product_id, quantity in sorted(quantities.items()):
        own = {units: count for units, count in returned.items() if units.product_id == product_id}
        changed += give_back_units(session, own)
        promotion, moved = _promotion_for(session, product_id, quantity)
        changed += moved
        if promotion:
            promotions[product_id] = promotion
        taken = take_units(session, product_id, quantity, wish)
        if taken is None and left[product_id] >= quantity:
            # Another transaction took the units. PostgreSQL has locked the product by now, so skip locked
            # reservations: waiting for them could deadlock.
            due = end_due(session, Reservation.product_id == product_id, skip_locked=True)
            changed += give_back_units(session, due)
            taken = take_units(session, product_id, quantity, wish)
        if taken is None:
            raise _too_few(session, product_id, quantity, wish, is_one_of_many=len(quantities) > 1)
        if len(quantities) > 1:
            wish = PlaceWish(taken.branch_id)
        places[product_id] = taken.branch_id
        changed += [product_id] if taken.is_emptied else []
    moment = now()
    held = [
        Reservation(
            id=str(uuid4()),
            product_id=product_id,
            promotion_id=promotions[product_id].id if product_id in promotions else None,
            actor=principal.account,
            quantity=quantity,
            branch_id=places[product_id],
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


def _place_of_all(
    wish: PlaceWish, shares: Mapping[int, Sequence[Share]], quantities: Mapping[int, int]
) -> Share | None:
    """Where several products are wanted, the place that has all of them: the first one has to be taken there, too."""
    if len(quantities) < 2:
        return None
    by_place: dict[int, list[Share]] = {}
    for product_id, quantity in quantities.items():
        for share in shares[product_id]:
            if share.available >= quantity:
                by_place.setdefault(share.branch_id, []).append(share)
    full = [found[0] for found in by_place.values() if len(found) == len(quantities)]
    return wish.first_of(full, 0)


def _with(returned: Mapping[UnitsAt, int], shares: Mapping[int, Sequence[Share]]) -> dict[int, list[Share]]:
    """As they are once these units are given back."""
    return {
        product_id: [
            share._replace(reserved=share.reserved - returned.get(UnitsAt(product_id, share.branch_id), 0))
            for share in own
        ]
        for product_id, own in shares.items()
    }


def _too_few(session: Session, product_id: int, quantity: int, wish: PlaceWish, *, is_one_of_many: bool) -> Conflict:
    named = f" of product {product_id}" if is_one_of_many else ""
    everywhere = require_on_sale(session, product_id)
    shares = shares_of(session, [product_id])[product_id]
    if not wish.branch_id and (len(shares) == 1 or (wish.branch_id is None and everywhere < quantity)):
        counted = {"product_id": product_id, "left": everywhere}
        return Conflict(f"Only {everywhere} left{named}", code="insufficient_stock", details=counted)
    left = wish.max_at_one(shares)
    where = "this place" if wish.branch_id is not None else "one place"
    return Conflict(
        f"Only {left} left{named} at {where}, and {everywhere} in all",
        code=f"insufficient_at_{where.replace(' ', '_')}",
        details={"product_id": product_id, "left": left, "in_all": everywhere},
    )


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
