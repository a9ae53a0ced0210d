"""Moves of orders: by who may, as the table says, each with its stock, news and history in one transaction.

Locks: buyer, order, review, products, search. Two movers at once: the second one finds the state of the first.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import cast

from sqlalchemy import select
from sqlalchemy.orm import Session

from tis.errors import Conflict, Forbidden, NotFound, Unprocessable
from tis.marketplace.columns import now
from tis.marketplace.context import ServiceRules
from tis.marketplace.kit import audit
from tis.marketplace.kit.news import News
from tis.marketplace.kit.notice_outbox import notify
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.versions import IfMatch
from tis.marketplace.orders.money import settle, still_to_pay
from tis.marketplace.orders.order_stock import (
    count_purchases,
    mark_purchases,
    put_back_lines,
    release_lines,
    sell_lines,
)
from tis.marketplace.orders.reading import find_order, lines_of, roles_in
from tis.marketplace.orders.rules import rules_of
from tis.marketplace.orders.states import (
    CLOCK_TARGET,
    ENDS,
    MOVES,
    NOT_WHILE_SUSPENDED,
    Move,
    Mover,
    OrderState,
    find_move,
)
from tis.marketplace.reviews.service import lock_buyer
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.stock.service import require_not_suspended
from tis.marketplace.tables import Order, OrderLine, OrderMove

FreedUnits = Mapping[int, int]  # by position of a line
Change = Callable[[Order, Sequence[OrderLine]], FreedUnits]
_WITH_GOODS = ("handed_over", "shipped", "received")  # who moves there or from there may make reviews count
_NONE_FREED: FreedUnits = MappingProxyType({})
_DEFAULT_RULES, _ANY_VERSION = ServiceRules(), IfMatch()


def move_order(
    session: Session,
    search: ProductSearch,
    principal: Principal,
    order_id: str,
    target: OrderState,
    rules: ServiceRules = _DEFAULT_RULES,
    *,
    reason: str | None = None,
    if_match: IfMatch = _ANY_VERSION,
    change: Change | None = None,
) -> Order:
    """`change` is done to the locked order and its lines before the move, and returns the units that it frees.

    Idempotent: an order that the same mover has moved there stays as it is.
    """
    found = find_order(session, principal, order_id)
    movers = [mover for mover in ("buyer", "shop") if mover in roles_in(principal, found)]
    may_ever = [mover for mover in movers if any(move.target == target and mover in move.movers for move in MOVES)]
    if not may_ever:
        who = " or ".join(
            sorted({mover for move in MOVES if move.target == target for mover in move.movers} - {"clock", "payment"})
        )
        raise Forbidden(f"Only the {who} may do that.")
    if "shop" in may_ever and target in NOT_WHILE_SUSPENDED:
        require_not_suspended(session, principal, found.supplier_id)
    order = lock_order(session, search, found, target, rules)
    if order.state == target and last_mover(session, order) in may_ever:
        return order
    if_match.check(order.version)
    for mover in cast(list[Mover], may_ever):
        is_late = order.overdue_at is not None
        if move := find_move(order.state, target, mover, order.payment_method, is_late=is_late):
            if mover == "shop" and move.needs_reason and reason is None:
                raise Unprocessable("Say why: `reason`.")
            lines = lines_of(session, [order.id])
            freed = change(order, lines) if change else {}
            make_move(session, search, order, lines, move, mover, principal.account, rules, reason, freed)
            audit.note(session, principal, f"order.{target}", "order", order.id, state=[move.source, target])
            return order
    raise late(order)


def mark_paid(
    session: Session,
    search: ProductSearch,
    order_id: str,
    rules: ServiceRules = _DEFAULT_RULES,
    *,
    note: str | None = None,
) -> OrderState:
    """For a provider that says that money came. Anything but `paid` is the state for which it came too late."""
    found = session.get(Order, order_id)
    if found is None:
        raise NotFound("Order not found")
    order = lock_order(session, search, found, "paid", rules)
    if move := find_move(order.state, "paid", "payment", order.payment_method):
        make_move(session, search, order, lines_of(session, [order.id]), move, "payment", None, rules, note)
    return cast(OrderState, order.state)


def lock_order(
    session: Session, search: ProductSearch, found: Order, target: OrderState | None, rules: ServiceRules
) -> Order:
    """As it is now. What is due moves first."""
    if target in _WITH_GOODS or found.state in _WITH_GOODS:
        lock_buyer(session, found.buyer)
    locked = select(Order).where(Order.id == found.id).with_for_update(key_share=True)
    order = session.scalars(locked.execution_options(populate_existing=True)).one()
    move_if_due(session, search, order, rules)
    return order


def move_if_due(session: Session, search: ProductSearch, order: Order, rules: ServiceRules) -> bool:
    """The clock's move of a locked order; or it says that the shop is late."""
    if order.due_at is None or order.due_at > now():
        return False
    if order.state == "paid":
        order.overdue_at, order.due_at = order.due_at, None  # as reads say already: the version stays
        session.flush()
        tell_of(session, order, "overdue")
        return True
    if order.state not in CLOCK_TARGET:
        return False
    move = find_move(order.state, CLOCK_TARGET[order.state], "clock", order.payment_method)
    assert move is not None
    make_move(session, search, order, lines_of(session, [order.id]), move, "clock", None, rules)
    return True


def make_move(
    session: Session,
    search: ProductSearch,
    order: Order,
    lines: Sequence[OrderLine],
    move: Move,
    mover: Mover,
    actor: str | None,
    rules: ServiceRules,
    reason: str | None = None,
    freed: FreedUnits = _NONE_FREED,
) -> None:
    """Of a locked order, and a move that the table has."""
    moment = now()
    _set_times(session, order, move, moment, rules)
    if mover == "shop" and _is_payment(move):
        order.paid_by_hand = still_to_pay(session, order)
    order.state = move.target
    order.version += 1
    note_move(session, order, mover, actor, reason, moment)
    if order.paid_at is not None and (move.target in ENDS or _is_payment(move)):
        settle(session, order)
    session.flush()
    reviews = mark_purchases(session, order, lines) if move.target in ("handed_over", "received") else []
    if move.stock == "sold":
        sell_lines(session, order, lines, actor)
    elif move.stock == "back":
        put_back_lines(session, search, order, lines, freed, actor)
    else:
        units = freed if move.stock == "stays" else {line.position: line.quantity for line in lines}
        release_lines(session, search, order, lines, units)
    count_purchases(session, search, reviews)


def note_move(
    session: Session, order: Order, mover: Mover, actor: str | None, reason: str | None, moment: datetime
) -> None:
    """In the history of the order, and to both sides. Its version numbers the move."""
    session.add(
        OrderMove(
            order_id=order.id,
            number=order.version,
            state=order.state,
            mover=mover,
            actor=actor,
            reason=reason,
            at=moment,
        )
    )
    tell_of(session, order, order.state)


def tell_of(session: Session, order: Order, what: str) -> None:
    """The shop hears nothing of a draft."""
    if what == "draft":
        return
    data: dict[str, str | int] = {"order_id": order.id, "number": order.number, "supplier_id": order.supplier_id}
    shop = order.supplier_id if order.placed_at else None
    notify(session, [News(f"order.{what}", data, order.buyer, shop)])


def last_mover(session: Session, order: Order) -> str | None:
    moves = select(OrderMove.mover).where(OrderMove.order_id == order.id, OrderMove.state == order.state)
    return session.scalar(moves.order_by(OrderMove.number.desc()).limit(1))


def late(order: Order) -> Conflict:
    return Conflict(
        f"This order is {order.state.replace('_', ' ')}: that move is not open.", code=f"order_{order.state}"
    )


def _set_times(session: Session, order: Order, move: Move, moment: datetime, rules: ServiceRules) -> None:
    terms = rules_of(session, order.supplier_id) if move.target in ("placed", "accepted", "paid") else None
    order.due_at = None
    if terms and move.target == "placed":
        order.placed_at, order.due_at = moment, moment + timedelta(hours=terms.accept_hours)
    elif terms and move.target == "paid":
        order.due_at = moment + timedelta(hours=terms.handover_hours)
    elif terms:
        order.accepted_at, order.due_at = moment, moment + timedelta(hours=terms.pay_hours)
    elif move.target in ("handed_over", "shipped"):
        order.due_at = moment + timedelta(days=rules.order_receipt_days)
    if _is_payment(move):
        order.paid_at = moment
    if move.target in ENDS or move.target == "received":
        order.ended_at = moment


def _is_payment(move: Move) -> bool:
    return move.target == "paid" or (move.target == "handed_over" and move.only == "cash")
