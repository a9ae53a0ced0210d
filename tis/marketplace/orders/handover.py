"""Where a shop with several places hands an order over."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from tis.marketplace.kit.branch_places import ShopPlace, places_of
from tis.marketplace.kit.branch_shares import OWN_ADDRESS
from tis.marketplace.kit.opening_hours import hours_in_order
from tis.marketplace.orders.schemas import HandoverPlace
from tis.marketplace.tables import Branch, Order


def handover_of(session: Session, order: Order, *, is_exact: bool) -> HandoverPlace | None:
    """A shop that hides its places shows the one where goods wait to who may come for them: exact, then."""
    if order.delivery != "pickup" or not _has_branches(session, order.supplier_id):
        return None
    places = places_of(session, order.supplier_id, [order.branch_id])
    place = places.get(order.branch_id, places[OWN_ADDRESS])
    return _view(place, is_exact=is_exact)


def _has_branches(session: Session, supplier_id: int) -> bool:
    return session.scalar(select(Branch.id).where(Branch.supplier_id == supplier_id).limit(1)) is not None


def _view(place: ShopPlace, *, is_exact: bool) -> HandoverPlace:
    shown = (place.latitude, place.longitude) if is_exact else (None, None)
    if not is_exact and place.shows_place:
        shown = place.public_latitude, place.public_longitude
    return HandoverPlace(
        branch_id=place.branch_id,
        name=place.name,
        city=place.city,
        address=place.address if is_exact else None,
        latitude=shown[0],
        longitude=shown[1],
        opening_hours=hours_in_order(place.opening_hours),
        time_zone=place.zone,
    )
