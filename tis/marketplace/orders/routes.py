"""Orders: make one, read it, list them. The moves have routes of their own."""

from typing import Annotated, get_args
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse

from tis.marketplace.context import ContextDep
from tis.marketplace.kit.fields import Id
from tis.marketplace.kit.idempotency import IdempotencyKeyDep
from tis.marketplace.kit.paging import BEFORE_DESCRIPTION, Limit, page_response
from tis.marketplace.kit.responses import json_response
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.kit.versions import set_etag
from tis.marketplace.orders import reading
from tis.marketplace.orders.drafting import draft_order
from tis.marketplace.orders.examples import (
    NEW_ORDER_RESPONSES,
    ORDER_RESPONSES,
    ORDERS_RESPONSES,
    SHOP_ORDERS_RESPONSES,
    STATES_RESPONSES,
)
from tis.marketplace.orders.schemas import MoveView, OrderDetail, OrderForm, OrderView, StatesView
from tis.marketplace.orders.states import ENDS, HOLDS_UNITS, MOVES, OrderState
from tis.marketplace.rates import count_in_thread, limited

router = APIRouter(tags=["orders"], route_class=CheckedRoute)
_STATES: tuple[OrderState, ...] = get_args(OrderState)


@router.post("/orders", response_model=OrderDetail, responses=NEW_ORDER_RESPONSES, dependencies=[limited("orders")])
def make_order(
    request: Request, body: OrderForm, context: ContextDep, idempotency_key: IdempotencyKeyDep
) -> JSONResponse:
    """Make an order of one shop, of held units or straight of goods: a draft, or placed at once with `place`.

    Its units are kept for it, as long as a hold lasts while it is a draft. Of goods that are not held yet, each line
    counts as a new reservation, in its rate and its caps.
    """
    for _ in body.items:
        count_in_thread(request, "reservations")
    with context.writing() as (session, principal):

        def make() -> JSONResponse:
            order = draft_order(session, principal, context.market.search, body, context.market.rules)
            response = json_response(reading.describe(session, principal, order))
            set_etag(response, order.version)
            return response

        return idempotency_key.answer(session, principal, make)


@router.get("/orders/states", responses=STATES_RESPONSES)
def list_states(context: ContextDep) -> StatesView:
    """List the states of an order and the moves between them: who makes each, and what becomes of the units."""
    moves = [
        MoveView(
            source=move.source,
            target=move.target,
            movers=sorted(move.movers),
            stock=move.stock,
            needs_reason=move.needs_reason,
            only=move.only,
        )
        for move in MOVES
    ]
    in_order = (state for state in _STATES)
    return StatesView(
        states=list(in_order),
        ends=[state for state in _STATES if state in ENDS],
        holds_units=[state for state in _STATES if state in HOLDS_UNITS],
        moves=moves,
    )


@router.get("/orders/{order_id}", responses=ORDER_RESPONSES)
def look_at_order(order_id: UUID, context: ContextDep, response: Response) -> OrderDetail:
    """Read an order, for its buyer and its shop. The shop sees the address while it needs it, its programs never."""
    with context.reading() as (session, principal):
        view = reading.describe(session, principal, reading.find_order(session, principal, str(order_id)))
    set_etag(response, view.version)
    response.headers["Cache-Control"] = "no-store"
    return view


@router.get("/orders", response_model=list[OrderView], responses=ORDERS_RESPONSES)
def list_own_orders(
    request: Request,
    context: ContextDep,
    state: OrderState | None = None,
    before: Annotated[UUID | None, Query(description=BEFORE_DESCRIPTION)] = None,
    limit: Limit = 50,
) -> JSONResponse:
    """List the caller's orders, newest first; `X-Total-Count` has the total, `Link` the next page."""
    with context.reading() as (session, principal):
        last = None if before is None else str(before)
        rows, total = reading.list_own(session, principal, state, last, limit + 1)
        return page_response(request, rows, limit, _as_it_is, _id_of, total)


@router.get("/suppliers/{supplier_id}/orders", response_model=list[OrderView], responses=SHOP_ORDERS_RESPONSES)
def list_orders_of_shop(
    request: Request,
    supplier_id: Id,
    context: ContextDep,
    state: OrderState | None = None,
    before: Annotated[UUID | None, Query(description=BEFORE_DESCRIPTION)] = None,
    limit: Limit = 50,
) -> JSONResponse:
    """List the orders of a supplier, those that were placed last first, for its members; `Link` has the next page."""
    with context.reading() as (session, principal):
        last = None if before is None else str(before)
        rows, total = reading.list_for_shop(session, principal, supplier_id, state, last, limit + 1)
        return page_response(request, rows, limit, _as_it_is, _id_of, total)


def _as_it_is(view: OrderView) -> OrderView:
    return view


def _id_of(view: OrderView) -> str:
    return view.id
