"""Reservations of stock, and the stock ledger of a supplier."""

from typing import Annotated, TypeVar
from uuid import UUID

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from tis.errors import Conflict
from tis.marketplace.context import ContextDep
from tis.marketplace.kit.fields import MAX_ID, Id
from tis.marketplace.kit.idempotency import IdempotencyKeyDep
from tis.marketplace.kit.paging import BEFORE_DESCRIPTION, Before, Limit, page_response
from tis.marketplace.kit.responses import json_response
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.products.service import correct_stock
from tis.marketplace.rates import limited
from tis.marketplace.stock import sales, service
from tis.marketplace.stock.schemas import (
    ACCEPT_RESPONSES,
    COMMIT_RESPONSES,
    CORRECTION_RESPONSES,
    MOVEMENTS_RESPONSES,
    REFUSE_RESPONSES,
    RELEASE_RESPONSES,
    RESERVATION_RESPONSES,
    RESERVATIONS_RESPONSES,
    SHOP_RESERVATIONS_RESPONSES,
    MovementKind,
    ReservationRefusal,
    ReservationRequest,
    ReservationStatus,
    ReservationView,
    ShopReservationView,
    StockCorrection,
    StockMovementView,
    StockView,
)
from tis.marketplace.tables import StockMovement

router = APIRouter(tags=["stock"], route_class=CheckedRoute)
View = TypeVar("View", ReservationView, ShopReservationView)


_ENDED = {
    "expired": "has expired",
    "released": "was released",
    "refused": "was refused",
    "committed": "was committed",
    "ordered": "became an order",
}


@router.post(
    "/products/{product_id}/reservations",
    response_model=ReservationView,
    responses=RESERVATION_RESPONSES,
    dependencies=[limited("reservations")],
)
def reserve(
    product_id: Id, body: ReservationRequest, context: ContextDep, idempotency_key: IdempotencyKeyDep
) -> JSONResponse:
    """Reserve units for a while at the price of this moment, never more than the stock: a 409 says how many are left.

    Where the shop accepts, it sees the name, e-mail and phone of the caller.
    """
    search, rules = context.market.search, context.market.rules
    seconds = body.seconds or rules.reservation_seconds
    with context.writing() as (session, principal):

        def reserve() -> JSONResponse:
            held = service.reserve(session, principal, search, product_id, body.quantity, seconds, rules, body.wish)
            return json_response(held)

        return idempotency_key.answer(session, principal, reserve)


@router.post("/reservations/{reservation_id}/commit", responses=COMMIT_RESPONSES)
def commit(reservation_id: UUID, context: ContextDep) -> ReservationView:
    """Sell reserved units, for the shop. Idempotent; 409 after an expiry or a release."""
    with context.writing() as (session, principal):
        view = service.commit(session, principal, context.market.search, str(reservation_id))
    return _require_status(view, "committed")


@router.post("/reservations/{reservation_id}/release", responses=RELEASE_RESPONSES)
def release(reservation_id: UUID, context: ContextDep) -> ReservationView:
    """Release reserved units. Idempotent, also after an expiry; 409 after the sale."""
    with context.writing() as (session, principal):
        view = service.release(session, principal, context.market.search, str(reservation_id))
    return _require_status(view, "released", "refused", "expired")


@router.post("/reservations/{reservation_id}/accept", responses=ACCEPT_RESPONSES)
def accept(reservation_id: UUID, context: ContextDep) -> ShopReservationView:
    """Accept a reservation, for the shop, which sees how to reach the buyer then.

    The units are held for another RESERVATION_SECONDS, an hour at most in all. Idempotent.
    """
    market = context.market
    with context.writing() as (session, principal):
        seconds = market.rules.reservation_seconds
        view = sales.accept(session, principal, market.search, str(reservation_id), seconds)
    return _require_status(view, "held", "committed")


@router.post("/reservations/{reservation_id}/refuse", responses=REFUSE_RESPONSES)
def refuse(reservation_id: UUID, context: ContextDep, body: ReservationRefusal | None = None) -> ShopReservationView:
    """Refuse a reservation, for the shop: its units are available again. Idempotent; 409 after the sale."""
    reason = body.reason if body else None
    with context.writing() as (session, principal):
        view = sales.refuse(session, principal, context.market.search, str(reservation_id), reason)
    return _require_status(view, "refused", "released", "expired")


@router.get("/reservations/{reservation_id}", responses=RESERVATION_RESPONSES)
def look_at(reservation_id: UUID, context: ContextDep) -> ReservationView:
    """Read a reservation, for its buyer and for the supplier of the product."""
    with context.reading() as (session, principal):
        return service.get_reservation(session, principal, str(reservation_id))


@router.get("/reservations", response_model=list[ReservationView], responses=RESERVATIONS_RESPONSES)
def list_own(
    request: Request,
    context: ContextDep,
    status: ReservationStatus | None = None,
    before: Annotated[UUID | None, Query(description=BEFORE_DESCRIPTION)] = None,
    limit: Limit = 50,
) -> JSONResponse:
    """List the caller's reservations, newest first; `X-Total-Count` has the total, `Link` the next page."""
    with context.reading() as (session, principal):
        before_id = None if before is None else str(before)
        reservations, total = service.list_reservations(session, principal, status, before_id, limit + 1)
        return page_response(request, reservations, limit, _as_it_is, _id_of, total)


@router.get(
    "/suppliers/{supplier_id}/reservations",
    response_model=list[ShopReservationView],
    responses=SHOP_RESERVATIONS_RESPONSES,
)
def list_for_shop(
    request: Request,
    supplier_id: Id,
    context: ContextDep,
    status: ReservationStatus | None = None,
    before: Annotated[UUID | None, Query(description=BEFORE_DESCRIPTION)] = None,
    limit: Limit = 50,
) -> JSONResponse:
    """List the reservations of a supplier's products, newest first, for its members; `Link` has the next page."""
    with context.reading() as (session, principal):
        before_id = None if before is None else str(before)
        rows, total = sales.list_for_shop(session, principal, supplier_id, status, before_id, limit + 1)
        return page_response(request, rows, limit, _as_it_is, _id_of, total)


@router.get(
    "/suppliers/{supplier_id}/stock-movements", response_model=list[StockMovementView], responses=MOVEMENTS_RESPONSES
)
def list_movements(
    request: Request,
    supplier_id: Id,
    context: ContextDep,
    product_id: Annotated[int | None, Query(ge=1, le=MAX_ID)] = None,
    kind: MovementKind | None = None,
    before: Before = None,
    limit: Limit = 50,
) -> JSONResponse:
    """List the stock ledger of a supplier, newest first, for its members; `Link` has the next page."""
    with context.reading() as (session, principal):
        rows = service.list_movements(session, principal, supplier_id, product_id, kind, before, limit + 1)
        return page_response(request, rows, limit, _movement_view, lambda row: row[0].id)


@router.post("/products/{product_id}/stock-corrections", response_model=StockView, responses=CORRECTION_RESPONSES)
def correct(
    product_id: Id, body: StockCorrection, context: ContextDep, idempotency_key: IdempotencyKeyDep
) -> JSONResponse:
    """Add to the stock on hand, or take from it, with a reason, for members of the shop.

    Two corrections at once both count. Units that are reserved cannot be taken.
    """
    search = context.market.search
    with context.writing() as (session, principal):

        def correct() -> JSONResponse:
            product = correct_stock(session, search, principal, product_id, body.delta, body.reason, body.branch_id)
            shown = {"product_id": product.id, "on_hand": product.on_hand, "reserved": product.reserved}
            available = product.on_hand - product.reserved
            return json_response(StockView(**shown, available_quantity=available, version=product.version))

        return idempotency_key.answer(session, principal, correct)


def _as_it_is(view: View) -> View:
    return view


def _id_of(view: ReservationView) -> str:
    return view.id


def _movement_view(row: tuple[StockMovement, str]) -> StockMovementView:
    movement, product_name = row
    columns = {name: getattr(movement, name) for name in StockMovementView.model_fields if name != "product_name"}
    return StockMovementView(**columns, product_name=product_name)


def _require_status(view: View, *wanted: ReservationStatus) -> View:
    """Call it outside the transaction, so that an expiry is committed although the request is refused."""
    if view.status not in wanted:
        raise Conflict(f"This reservation {_ENDED[view.status]}.", code=f"reservation_{view.status}")
    return view
