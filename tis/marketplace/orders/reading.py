"""Orders as their buyer and their shop see them: one, and lists, newest first."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, cast

from sqlalchemy import ColumnElement, and_, func, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from tis.errors import NotFound
from tis.marketplace.columns import moment_value, now
from tis.marketplace.kit.paging import MAX_COUNTED
from tis.marketplace.kit.principal import Principal
from tis.marketplace.orders.handover import handover_of
from tis.marketplace.orders.schemas import (
    AddressView,
    OrderDetail,
    OrderLineView,
    OrderMoveView,
    OrderView,
)
from tis.marketplace.orders.states import CLOCK_TARGET, DEEDS, ENDS, MOVES, OrderState, find_move
from tis.marketplace.policy import SCOPE_OF_ROUTE, OrderRole, order_roles, require_somebody, sees_order_contact
from tis.marketplace.products.service import supplier_for_member
from tis.marketplace.stock.sales import describe_buyers
from tis.marketplace.tables import Order, OrderAddress, OrderLine, OrderMove

_REFUND_DAYS = 7  # in which a shop that owes money sees how to reach the buyer, if returns would end sooner
_OF_ORDER = (set(OrderView.model_fields) & set(Order.__table__.columns.keys())) - {
    "state",
    "buyer",
    "note",
    "due_at",
    "overdue_at",
}
_OF_CLOCK = tuple(CLOCK_TARGET)


def roles_in(principal: Principal, order: Order) -> set[OrderRole]:
    """A 404 for everybody but the buyer, the shop and admins."""
    return order_roles(principal, order.buyer, order.supplier_id, is_placed=order.placed_at is not None)


def find_order(session: Session, principal: Principal, order_id: str) -> Order:
    require_somebody(principal)
    order = session.get(Order, order_id)
    if order is None:
        raise NotFound("Order not found")
    roles_in(principal, order)
    return order


def lines_of(session: Session, order_ids: Iterable[str]) -> Sequence[OrderLine]:
    lines = select(OrderLine).where(OrderLine.order_id.in_(list(order_ids)))
    found = session.scalars(lines.execution_options(populate_existing=True))
    return sorted(found, key=lambda line: (line.order_id, line.position))


def moves_of(session: Session, order_id: str) -> Sequence[OrderMove]:
    return session.scalars(select(OrderMove).where(OrderMove.order_id == order_id).order_by(OrderMove.number)).all()


def state_of(order: Order) -> OrderState:
    """What is due has moved, whether somebody swept or not."""
    state = cast(OrderState, order.state)
    return CLOCK_TARGET.get(state, state) if order.due_at is not None and order.due_at <= now() else state


def overdue_since(order: Order) -> datetime | None:
    """Since when the shop is late with a paid order, whether somebody swept or not."""
    return order.due_at if order.state == "paid" and order.due_at and order.due_at <= now() else order.overdue_at


def describe(session: Session, principal: Principal, order: Order) -> OrderDetail:
    [view] = _views(session, principal, [order])
    address = session.get(OrderAddress, order.id, populate_existing=True)
    is_shown = address is not None and _sees_where_it_goes(principal, order)
    return OrderDetail(
        **dict(view),
        handover=handover_of(session, order, is_exact=_knows_shop(principal, order) or _may_come(order)),
        address=AddressView.model_validate(address, from_attributes=True) if is_shown else None,
        moves=[OrderMoveView.model_validate(move, from_attributes=True) for move in moves_of(session, order.id)],
    )


def list_own(
    session: Session, principal: Principal, state: OrderState | None, before: str | None, limit: int
) -> tuple[list[OrderView], int]:
    """Of the caller as a buyer, and their number, counted up to `MAX_COUNTED + 1`."""
    require_somebody(principal)
    own = Order.buyer == principal.account if principal.account else Order.buyer.is_(None)
    return _list(session, principal, own, Order.created_at, state, before, limit)


def list_for_shop(
    session: Session, principal: Principal, supplier_id: int, state: OrderState | None, before: str | None, limit: int
) -> tuple[list[OrderView], int]:
    """By the time at which they were placed; drafts are none of the shop's business."""
    supplier_for_member(session, principal, supplier_id)
    own = and_(Order.supplier_id == supplier_id, Order.placed_at.is_not(None))
    return _list(session, principal, own, Order.placed_at, state, before, limit)


def _list(
    session: Session,
    principal: Principal,
    own: ColumnElement[bool],
    time: InstrumentedAttribute[Any],
    state: OrderState | None,
    before: str | None,
    limit: int,
) -> tuple[list[OrderView], int]:
    wanted = [own, _has_state(state)] if state else [own]
    earlier = []
    if before is not None:
        last = session.scalar(select(time).where(Order.id == before, own))
        if last is None:
            raise NotFound("Order not found")
        earlier = [or_(time < last, and_(time == last, Order.id < before))]
    rows = select(Order).where(*wanted, *earlier).order_by(time.desc(), Order.id.desc()).limit(limit)
    counted = select(Order.id).where(*wanted).limit(MAX_COUNTED + 1).subquery()
    total = session.scalar(select(func.count()).select_from(counted)) or 0
    return _views(session, principal, session.scalars(rows).all()), total


def _has_state(state: OrderState) -> ColumnElement[bool]:
    # With the bare column, SQLite would read what is due of everybody.
    due_at = func.coalesce(Order.due_at, moment_value(datetime.max.replace(tzinfo=now().tzinfo)))
    moved_here = [source for source, target in CLOCK_TARGET.items() if target == state]
    if state in CLOCK_TARGET:
        return and_(Order.state == state, due_at > now())
    if moved_here:
        return or_(Order.state == state, and_(Order.state.in_(moved_here), due_at <= now()))
    return Order.state == state


def _views(session: Session, principal: Principal, orders: Sequence[Order]) -> list[OrderView]:
    lines: dict[str, list[OrderLineView]] = {order.id: [] for order in orders}
    for line in lines_of(session, lines):
        lines[line.order_id].append(OrderLineView.model_validate(line, from_attributes=True))
    for_shop = [order for order in orders if "shop" in roles_in(principal, order) or principal.is_admin]
    buyers = describe_buyers(session, {one.id: (one.buyer, _sees_contact(principal, one)) for one in for_shop})
    return [
        OrderView(
            **{name: getattr(order, name) for name in _OF_ORDER},
            state=state_of(order),
            may_become=_may_become(principal, order),
            lines=lines[order.id],
            due_at=None if order.state == "paid" and overdue_since(order) else order.due_at,
            overdue_at=overdue_since(order),
            note=order.note if _sees_where_it_goes(principal, order) else None,
            buyer=buyers.get(order.id),
        )
        for order in orders
    ]


def _may_become(principal: Principal, order: Order) -> list[OrderState]:
    state, is_late = state_of(order), overdue_since(order) is not None
    roles = roles_in(principal, order)
    targets = [one for one in dict.fromkeys(move.target for move in MOVES) if one in DEEDS]
    return [
        target
        for target in targets
        if _may_call(principal, f"POST /orders/{{order_id}}/{DEEDS[target]}")
        and any(find_move(state, target, role, order.payment_method, is_late=is_late) for role in roles)
    ]


def _may_call(principal: Principal, route: str) -> bool:
    """A program, with the scopes of its token."""
    return not principal.is_program or SCOPE_OF_ROUTE.get(route) in principal.scopes


def _sees_where_it_goes(principal: Principal, order: Order) -> bool:
    """The address, and the note, which often has a part of it."""
    return "buyer" in roles_in(principal, order) or _sees_contact(principal, order)


def _knows_shop(principal: Principal, order: Order) -> bool:
    return "shop" in roles_in(principal, order) or principal.is_admin


def _may_come(order: Order) -> bool:
    """For the goods, or to bring them back: not who has cancelled."""
    until = needed_until(order)
    return order.accepted_at is not None and (until is None or now() < until)


def _sees_contact(principal: Principal, order: Order) -> bool:
    return sees_order_contact(principal, order.supplier_id, order.accepted_at, needed_until(order))


def needed_until(order: Order) -> datetime | None:
    """Until when the shop needs to reach the buyer. Not at all where nothing was sold and nothing is owed."""
    ended_at = order.ended_at or (order.due_at if state_of(order) != order.state else None)
    if ended_at is None:
        return None
    if state_of(order) in ENDS - {"returned"} and not order.refund_due:
        return ended_at
    return ended_at + timedelta(days=max(order.return_days, _REFUND_DAYS if order.refund_due else 0))
