"""Reservations of stock, and the stock ledger of a supplier."""

from typing import Annotated
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
from tis.marketplace.rates import limited
from tis.marketplace.stock import service
from tis.marketplace.stock.schemas import (
    COMMIT_RESPONSES,
    MOVEMENTS_RESPONSES,
    RELEASE_RESPONSES,
    RESERVATION_RESPONSES,
    RESERVATIONS_RESPONSES,
    ReservationRequest,
    ReservationView,
    StockMovementView,
)
from tis.marketplace.stock.service import CurrentReservation, ReservationStatus
from tis.marketplace.tables import StockMovement

router = APIRouter(tags=["stock"], route_class=CheckedRoute)


_ENDED = {"expired": "has expired", "released": "was released", "committed": "was committed"}


@router.post(
    "/products/{product_id}/reservations",
    response_model=ReservationView,
    responses=RESERVATION_RESPONSES,
    dependencies=[limited("reservations")],
)
def reserve(
    product_id: Id, body: ReservationRequest, context: ContextDep, idempotency_key: IdempotencyKeyDep
) -> JSONResponse:
    """Reserve units for a while, never more than the stock: a 409 says how many are left."""
    seconds = body.seconds or context.market.rules.reservation_seconds
    with context.writing() as (session, principal):

        def reserve() -> JSONResponse:
            search = context.market.search
            view = _view(service.reserve(session, principal, search, product_id, body.quantity, seconds))
            return json_response(view)

        return idempotency_key.answer(session, principal, reserve)


@router.post("/reservations/{reservation_id}/commit", responses=COMMIT_RESPONSES)
def commit(reservation_id: UUID, context: ContextDep) -> ReservationView:
    """Sell reserved units, for the shop. Idempotent; 409 after an expiry or a release."""
    with context.writing() as (session, principal):
        view = _view(service.commit(session, principal, context.market.search, str(reservation_id)))
    # Outside the transaction, so that an expiry is committed although the request is refused.
    if view.status != "committed":
        raise Conflict(f"This reservation {_ENDED[view.status]}.", code=f"reservation_{view.status}")
    return view


@router.post("/reservations/{reservation_id}/release", responses=RELEASE_RESPONSES)
def release(reservation_id: UUID, context: ContextDep) -> ReservationView:
    """Release reserved units. Idempotent, also after an expiry; 409 after the sale."""
    with context.writing() as (session, principal):
        view = _view(service.release(session, principal, context.market.search, str(reservation_id)))
    if view.status == "committed":
        raise Conflict(f"This reservation {_ENDED[view.status]}.", code="reservation_committed")
    return view


@router.get("/reservations/{reservation_id}", responses=RESERVATION_RESPONSES)
def look_at(reservation_id: UUID, context: ContextDep) -> ReservationView:
    """Read a reservation, for its buyer and for the supplier of the product."""
    with context.reading() as (session, principal):
        return _view(service.get_reservation(session, principal, str(reservation_id)))


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
        return page_response(request, reservations, limit, _view, lambda current: current.reservation.id, total)


@router.get(
    "/suppliers/{supplier_id}/stock-movements", response_model=list[StockMovementView], responses=MOVEMENTS_RESPONSES
)
def list_movements(
    request: Request,
    supplier_id: Id,
    context: ContextDep,
    product_id: Annotated[int | None, Query(ge=1, le=MAX_ID)] = None,
    before: Before = None,
    limit: Limit = 50,
) -> JSONResponse:
    """List the stock ledger of a supplier, newest first, for its members; `Link` has the next page."""
    with context.reading() as (session, principal):
        movements = service.list_movements(session, principal, supplier_id, product_id, before, limit + 1)
        return page_response(request, movements, limit, _movement_view, lambda movement: movement.id)


def _movement_view(movement: StockMovement) -> StockMovementView:
    return StockMovementView.model_validate(movement, from_attributes=True)


def _view(current: CurrentReservation) -> ReservationView:
    reservation = current.reservation
    return ReservationView(
        id=reservation.id,
        product_id=reservation.product_id,
        quantity=reservation.quantity,
        status=current.status,
        expires_at=reservation.expires_at,
        available_quantity=current.available,
    )
