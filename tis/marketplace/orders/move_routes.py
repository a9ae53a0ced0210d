"""The moves of an order, a route for each: idempotent for who made it, a 409 for who comes too late."""

from collections.abc import Callable
from uuid import UUID

from fastapi import APIRouter, Response
from sqlalchemy.orm import Session

from tis.marketplace.context import ContextDep, RequestContext
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.kit.versions import IfMatch, IfMatchDep, set_etag
from tis.marketplace.orders import shop_moves
from tis.marketplace.orders.drafting import place_order
from tis.marketplace.orders.examples import BUYER_MOVE_RESPONSES, PLACE_RESPONSES, SHOP_MOVE_RESPONSES
from tis.marketplace.orders.moving import move_order
from tis.marketplace.orders.reading import describe
from tis.marketplace.orders.schemas import (
    AcceptanceForm,
    MoveForm,
    OrderDetail,
    PlacingForm,
    ReasonedMoveForm,
    RequiredReasonForm,
    ReturnForm,
    ShippingForm,
)
from tis.marketplace.orders.states import OrderState
from tis.marketplace.tables import Order

router = APIRouter(tags=["orders"], route_class=CheckedRoute)
_Deed = Callable[[Session, Principal], Order]


@router.post("/orders/{order_id}/place", responses=PLACE_RESPONSES)
def place(
    order_id: UUID, body: PlacingForm, context: ContextDep, if_match: IfMatchDep, response: Response
) -> OrderDetail:
    """Place a draft, for its buyer: prices, fees and taxes are frozen, and the shop is asked.

    Cash is paid at a pick-up or to the shop's courier. A 422 says why the shop does not deliver so.
    """
    market, tag = context.market, if_match.with_body_version(body.version)
    return _done(
        context,
        response,
        lambda session, who: place_order(session, who, market.search, str(order_id), body, market.rules, tag),
    )


@router.post("/orders/{order_id}/accept", responses=SHOP_MOVE_RESPONSES)
def accept_order(
    order_id: UUID,
    context: ContextDep,
    if_match: IfMatchDep,
    response: Response,
    body: AcceptanceForm | None = None,
) -> OrderDetail:
    """Accept an order, for the shop, or a part of it: units that it leaves out are available again.

    From now on it sees the address of the buyer, and has to be paid within its `pay_hours`.
    """
    market, form = context.market, body or AcceptanceForm()
    tag = if_match.with_body_version(form.version)
    return _done(
        context,
        response,
        lambda session, who: shop_moves.accept_order(
            session, who, market.search, str(order_id), form.lines, market.rules, tag
        ),
    )


@router.post("/orders/{order_id}/refuse", responses=SHOP_MOVE_RESPONSES)
def refuse_order(
    order_id: UUID, body: RequiredReasonForm, context: ContextDep, if_match: IfMatchDep, response: Response
) -> OrderDetail:
    """Refuse an order, for the shop, with a reason that the buyer reads."""
    return _moved(context, response, order_id, "refused", if_match, body, body.reason)


@router.post("/orders/{order_id}/cancel", responses=BUYER_MOVE_RESPONSES)
def cancel(
    order_id: UUID,
    context: ContextDep,
    if_match: IfMatchDep,
    response: Response,
    body: ReasonedMoveForm | None = None,
) -> OrderDetail:
    """Cancel an order: its buyer until it is paid or the shop is late, the shop until it is sent, with a reason.

    Of an order that was paid, `refund_due` says what the shop owes.
    """
    form = body or ReasonedMoveForm()
    return _moved(context, response, order_id, "cancelled", if_match, form, form.reason)


@router.post("/orders/{order_id}/paid", responses=SHOP_MOVE_RESPONSES)
def note_payment(
    order_id: UUID, context: ContextDep, if_match: IfMatchDep, response: Response, body: MoveForm | None = None
) -> OrderDetail:
    """Say that the money came, for the shop. Cash is paid when the goods are handed over."""
    return _moved(context, response, order_id, "paid", if_match, body or MoveForm(), None)


@router.post("/orders/{order_id}/hand-over", responses=SHOP_MOVE_RESPONSES)
def hand_over(
    order_id: UUID, context: ContextDep, if_match: IfMatchDep, response: Response, body: MoveForm | None = None
) -> OrderDetail:
    """Hand the goods over, for the shop, at the counter or by its courier: they are sold, and cash is paid."""
    return _moved(context, response, order_id, "handed_over", if_match, body or MoveForm(), None)


@router.post("/orders/{order_id}/ship", responses=SHOP_MOVE_RESPONSES)
def ship(
    order_id: UUID, context: ContextDep, if_match: IfMatchDep, response: Response, body: ShippingForm | None = None
) -> OrderDetail:
    """Send what was paid, for the shop, with the carrier and its tracking number: the units are sold."""
    market, form = context.market, body or ShippingForm()
    tag = if_match.with_body_version(form.version)
    return _done(
        context,
        response,
        lambda session, who: shop_moves.ship_order(session, who, market.search, str(order_id), form, market.rules, tag),
    )


@router.post("/orders/{order_id}/receive", responses=BUYER_MOVE_RESPONSES)
def receive(
    order_id: UUID, context: ContextDep, if_match: IfMatchDep, response: Response, body: MoveForm | None = None
) -> OrderDetail:
    """Say that the goods came, for the buyer. After ORDER_RECEIPT_DAYS they count as received."""
    return _moved(context, response, order_id, "received", if_match, body or MoveForm(), None)


@router.post("/orders/{order_id}/return", responses=SHOP_MOVE_RESPONSES)
def return_goods(
    order_id: UUID, body: ReturnForm, context: ContextDep, if_match: IfMatchDep, response: Response
) -> OrderDetail:
    """Take goods back, for the shop: once for an order, by line, for sale again or not. `refund_due` is their price."""
    market, tag = context.market, if_match.with_body_version(body.version)
    return _done(
        context,
        response,
        lambda session, who: shop_moves.return_goods(
            session, who, market.search, str(order_id), body.lines, body.reason, market.rules, tag
        ),
    )


@router.post("/orders/{order_id}/return-request", responses=BUYER_MOVE_RESPONSES)
def ask_return(
    order_id: UUID, body: RequiredReasonForm, context: ContextDep, if_match: IfMatchDep, response: Response
) -> OrderDetail:
    """Ask the shop to take goods back, for the buyer, within the `return_days` of the order, and once."""
    market, tag = context.market, if_match.with_body_version(body.version)
    return _done(
        context,
        response,
        lambda session, who: shop_moves.ask_return(
            session, who, market.search, str(order_id), body.reason, market.rules, tag
        ),
    )


@router.post("/orders/{order_id}/return-refusal", responses=SHOP_MOVE_RESPONSES)
def refuse_return(
    order_id: UUID, body: RequiredReasonForm, context: ContextDep, if_match: IfMatchDep, response: Response
) -> OrderDetail:
    """Refuse to take goods back, for the shop, with a reason that the buyer reads."""
    market, tag = context.market, if_match.with_body_version(body.version)
    return _done(
        context,
        response,
        lambda session, who: shop_moves.refuse_return(
            session, who, market.search, str(order_id), body.reason, market.rules, tag
        ),
    )


def _moved(
    context: RequestContext,
    response: Response,
    order_id: UUID,
    target: OrderState,
    if_match: IfMatch,
    form: MoveForm,
    reason: str | None,
) -> OrderDetail:
    market, tag = context.market, if_match.with_body_version(form.version)
    return _done(
        context,
        response,
        lambda session, who: move_order(
            session, market.search, who, str(order_id), target, market.rules, reason=reason, if_match=tag
        ),
    )


def _done(context: RequestContext, response: Response, deed: _Deed) -> OrderDetail:
    with context.writing() as (session, principal):
        view = describe(session, principal, deed(session, principal))
    set_etag(response, view.version)
    response.headers["Cache-Control"] = "no-store"
    return view
