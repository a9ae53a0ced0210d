"""What only the shop does: it accepts an order or a part of it, sends it, and takes goods back."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from tis.errors import Conflict, Forbidden, Unprocessable
from tis.marketplace.columns import now
from tis.marketplace.context import ServiceRules
from tis.marketplace.kit import audit
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.versions import IfMatch
from tis.marketplace.orders.money import add_up
from tis.marketplace.orders.moving import FreedUnits, lock_order, move_order, tell_of
from tis.marketplace.orders.reading import find_order, moves_of, roles_in
from tis.marketplace.orders.schemas import LineQuantity, ReturnedLine, ShippingForm
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.tables import Order, OrderLine

_RETURNABLE = ("handed_over", "shipped", "received")


def accept_order(
    session: Session,
    principal: Principal,
    search: ProductSearch,
    order_id: str,
    given: Sequence[LineQuantity],
    rules: ServiceRules,
    if_match: IfMatch,
) -> Order:
    """Units that the shop leaves out are available again, and cost nothing."""

    def lower(order: Order, lines: Sequence[OrderLine]) -> FreedUnits:
        quantities, freed = _by_position([(one.position, one.quantity) for one in given], lines), {}
        for line in lines:
            quantity = quantities.get(line.position, line.quantity)
            if quantity > line.ordered:
                raise Unprocessable(f"Line {line.position}: only {line.ordered} were ordered.")
            freed[line.position] = line.quantity - quantity
            line.quantity = quantity
        if not any(line.quantity for line in lines):
            raise Unprocessable("Nothing is left: refuse the order instead.")
        add_up(order, lines)
        return freed

    return move_order(session, search, principal, order_id, "accepted", rules, if_match=if_match, change=lower)


def ship_order(
    session: Session,
    principal: Principal,
    search: ProductSearch,
    order_id: str,
    form: ShippingForm,
    rules: ServiceRules,
    if_match: IfMatch,
) -> Order:
    def send(order: Order, lines: Sequence[OrderLine]) -> FreedUnits:
        order.carrier, order.tracking = form.carrier, form.tracking
        return {}

    return move_order(session, search, principal, order_id, "shipped", rules, if_match=if_match, change=send)


def return_goods(
    session: Session,
    principal: Principal,
    search: ProductSearch,
    order_id: str,
    returned: Sequence[ReturnedLine],
    reason: str,
    rules: ServiceRules,
    if_match: IfMatch,
) -> Order:
    """Once for an order: all lines that come back. The shop owes what they cost, not what bringing them did."""

    def take_back(order: Order, lines: Sequence[OrderLine]) -> FreedUnits:
        if order.return_asked_at is None and now() > return_end(session, order):
            raise Conflict(f"The {order.return_days} days for returns are over.", code="return_too_late")
        quantities = _by_position([(one.position, one.quantity) for one in returned], lines)
        for line in lines:
            line.returned = quantities.get(line.position, 0)
            if line.returned > line.quantity:
                raise Unprocessable(f"Line {line.position}: only {line.quantity} were sold.")
        return {one.position: one.quantity for one in returned if one.restock}

    return move_order(
        session, search, principal, order_id, "returned", rules, reason=reason, if_match=if_match, change=take_back
    )


def ask_return(
    session: Session,
    principal: Principal,
    search: ProductSearch,
    order_id: str,
    reason: str,
    rules: ServiceRules,
    if_match: IfMatch,
) -> Order:
    """The buyer asks once; the shop answers by the move or by a refusal."""
    order = _locked_for(session, principal, search, order_id, "buyer", rules)
    if order.return_asked_at is not None:
        return order
    if_match.check(order.version)
    if order.state not in _RETURNABLE:
        raise Conflict(f"This order is {order.state}: there is nothing to return.", code=f"order_{order.state}")
    if now() > return_end(session, order):
        raise Conflict(f"The {order.return_days} days for returns are over.", code="return_too_late")
    order.return_asked_at, order.return_reason = now(), reason
    return _noted(session, principal, order, "return_asked")


def refuse_return(
    session: Session,
    principal: Principal,
    search: ProductSearch,
    order_id: str,
    reason: str,
    rules: ServiceRules,
    if_match: IfMatch,
) -> Order:
    order = _locked_for(session, principal, search, order_id, "shop", rules)
    if order.return_refused_at is not None:
        return order
    if_match.check(order.version)
    if order.return_asked_at is None or order.state not in _RETURNABLE:
        raise Conflict("Nobody asks to return anything of this order.", code="no_return_asked")
    order.return_refused_at, order.return_refusal = now(), reason
    return _noted(session, principal, order, "return_refused")


def return_end(session: Session, order: Order) -> datetime:
    """Counted from when it was received, or else handed over or sent."""
    times = [move.at for move in moves_of(session, order.id) if move.state in _RETURNABLE]
    return max(times, default=order.created_at) + timedelta(days=order.return_days)


def _locked_for(
    session: Session, principal: Principal, search: ProductSearch, order_id: str, role: str, rules: ServiceRules
) -> Order:
    found = find_order(session, principal, order_id)
    if role not in roles_in(principal, found):
        raise Forbidden(f"Only the {role} may do that.")
    return lock_order(session, search, found, None, rules)


def _noted(session: Session, principal: Principal, order: Order, what: str) -> Order:
    order.version += 1
    session.flush()
    tell_of(session, order, what)
    audit.note(session, principal, f"order.{what}", "order", order.id)
    return order


def _by_position(pairs: Sequence[tuple[int, int]], lines: Sequence[OrderLine]) -> dict[int, int]:
    quantities = dict(pairs)
    if len(quantities) < len(pairs):
        raise Unprocessable("A line is named twice.")
    if unknown := quantities.keys() - {line.position for line in lines}:
        raise Unprocessable(f"This order has no line {min(unknown)}.")
    return quantities
