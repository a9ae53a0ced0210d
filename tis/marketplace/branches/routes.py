"""Places of a shop, for its owners to keep; and its units by place, for its members."""

from typing import cast

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse

from tis.marketplace.branches import service
from tis.marketplace.branches.schemas import (
    BRANCH_CHANGED,
    BRANCH_MADE,
    BRANCHES_LISTED,
    STOCK_BY_PLACE,
    TRANSFERRED,
    BranchChange,
    BranchForm,
    BranchView,
    StockByPlace,
    TransferForm,
)
from tis.marketplace.columns import now
from tis.marketplace.context import ContextDep
from tis.marketplace.kit.fields import Id
from tis.marketplace.kit.idempotency import IdempotencyKeyDep
from tis.marketplace.kit.opening_hours import TimeZone, hours_in_order, is_open_now, zone_of
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.responses import json_response
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.kit.versions import IfMatchDep, set_etag
from tis.marketplace.policy import sees_supplier
from tis.marketplace.tables import Branch

router = APIRouter(tags=["branches"], route_class=CheckedRoute)
_SHOWN = BranchView.model_fields.keys() - {"opening_hours", "time_zone", "open_now"}


@router.get("/suppliers/{supplier_id}/branches", responses=BRANCHES_LISTED)
def list_branches(supplier_id: Id, context: ContextDep) -> list[BranchView]:
    """List the places that a supplier has beside its own address, oldest first. Its members see closed ones, too."""
    with context.reading() as (session, principal):
        return [_view(branch, principal) for branch in service.list_branches(session, principal, supplier_id)]


@router.post("/suppliers/{supplier_id}/branches", response_model=BranchView, responses=BRANCH_MADE)
def add_branch(
    supplier_id: Id, body: BranchForm, context: ContextDep, idempotency_key: IdempotencyKeyDep
) -> JSONResponse:
    """Add a place to a supplier, for its owners. Units come there by a transfer or a correction of the stock."""
    market = context.market
    with context.writing() as (session, principal):

        def add() -> JSONResponse:
            most = market.rules.max_branches_per_supplier
            branch = service.add_branch(session, principal, market.search, supplier_id, body, most)
            response = json_response(_view(branch, principal))
            set_etag(response, branch.version)
            return response

        return idempotency_key.answer(session, principal, add)


@router.put("/suppliers/{supplier_id}/branches/{branch_id}", responses=BRANCH_CHANGED)
def change_branch(
    supplier_id: Id,
    branch_id: Id,
    body: BranchChange,
    context: ContextDep,
    if_match: IfMatchDep,
    response: Response,
) -> BranchView:
    """Change the fields that are sent, for the owners; `is_active` closes a place and opens it again.

    A place with units, held or not, is not closed: a 409 says how many.
    """
    with context.writing() as (session, principal):
        version = if_match.with_body_version(body.version)
        search = context.market.search
        branch = service.change_branch(session, principal, search, supplier_id, branch_id, body.changes(), version)
        set_etag(response, branch.version)
        return _view(branch, principal)


@router.get("/products/{product_id}/stock", responses=STOCK_BY_PLACE)
def look_at_stock(product_id: Id, context: ContextDep) -> StockByPlace:
    """Read the units of a product by place, for members of the shop."""
    with context.reading() as (session, principal):
        return service.stock_by_place(session, principal, product_id)


@router.post("/products/{product_id}/stock-transfers", response_model=StockByPlace, responses=TRANSFERRED)
def transfer(
    product_id: Id, body: TransferForm, context: ContextDep, idempotency_key: IdempotencyKeyDep
) -> JSONResponse:
    """Move units from one place of the shop to another, for its members. What is reserved stays where it is."""
    search = context.market.search
    with context.writing() as (session, principal):
        return idempotency_key.answer(
            session,
            principal,
            lambda: json_response(service.transfer_units(session, principal, search, product_id, body)),
        )


def _view(branch: Branch, principal: Principal) -> BranchView:
    shown = {name: getattr(branch, name) for name in _SHOWN}
    if not sees_supplier(principal, branch.supplier_id):
        shown |= {"address": None, "latitude": None, "longitude": None}
        if branch.shows_place:
            shown |= {"latitude": branch.public_latitude, "longitude": branch.public_longitude}
    zone = cast(TimeZone | None, branch.time_zone) or zone_of(branch.public_longitude)
    return BranchView(
        **shown,
        opening_hours=hours_in_order(branch.opening_hours),
        time_zone=zone,
        open_now=is_open_now(branch.opening_hours, zone, now()),
    )
