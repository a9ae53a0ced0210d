"""Routes of alerts on products, and of saved searches, for users."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from tis.marketplace.alerts.product_alerts import add_alert, delete_alert, list_alerts
from tis.marketplace.alerts.saved_searches import change_search, delete_search, list_searches, save_search
from tis.marketplace.alerts.schemas import (
    ALERT_DELETED,
    ALERT_MADE,
    ALERTS_LISTED,
    SEARCH_CHANGED,
    SEARCH_SAVED,
    SEARCHES_LISTED,
    AlertForm,
    AlertView,
    SavedSearchChange,
    SavedSearchForm,
    SavedSearchView,
)
from tis.marketplace.context import ContextDep
from tis.marketplace.kit.fields import MAX_ID, Id
from tis.marketplace.kit.idempotency import IdempotencyKeyDep
from tis.marketplace.kit.paging import Before, Limit, page_response, parameters_without
from tis.marketplace.kit.responses import json_response
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.products.attribute_parameters import ATTRIBUTE_DOCS
from tis.marketplace.products.search_schemas import (
    FiltersDep,
    OptionalTextParameter,
    SortParameter,
    validate_sort,
    validate_text,
)
from tis.marketplace.rates import limited

router = APIRouter(tags=["alerts"], route_class=CheckedRoute)


@router.post(
    "/products/{product_id}/alerts",
    response_model=AlertView,
    responses=ALERT_MADE,
    dependencies=[limited("alerts")],
)
def create_alert(
    product_id: Id, form: AlertForm, context: ContextDep, idempotency_key: IdempotencyKeyDep
) -> JSONResponse:
    """Ask to be told of a product, in `GET /api/notices/stream`: `price.fell` or `stock.back`.

    What is told can be bought at that price at that moment. Another alert of the same kind takes its place.
    """
    rules = context.market.rules
    with context.writing() as (session, principal):
        return idempotency_key.answer(
            session, principal, lambda: json_response(add_alert(session, principal, product_id, form, rules))
        )


@router.get("/alerts", response_model=list[AlertView], responses=ALERTS_LISTED)
def list_own_alerts(
    request: Request,
    context: ContextDep,
    product_id: Annotated[int | None, Query(ge=1, le=MAX_ID)] = None,
    before: Before = None,
    limit: Limit = 50,
) -> JSONResponse:
    """List your alerts, newest first."""
    with context.reading() as (session, principal):
        found = list_alerts(session, principal, product_id, before, limit + 1)
        return page_response(request, found, limit, lambda view: view, lambda view: view.id)


@router.delete("/alerts/{alert_id}", responses=ALERT_DELETED)
def remove_alert(alert_id: Id, context: ContextDep) -> AlertView:
    """Delete an alert."""
    with context.writing() as (session, principal):
        return delete_alert(session, principal, alert_id)


@router.post(
    "/saved-searches",
    response_model=SavedSearchView,
    responses=SEARCH_SAVED,
    openapi_extra=ATTRIBUTE_DOCS,
    dependencies=[limited("alerts")],
)
def create_search(
    request: Request,
    form: SavedSearchForm,
    context: ContextDep,
    idempotency_key: IdempotencyKeyDep,
    filters: FiltersDep,
    q: OptionalTextParameter = None,
    sort: SortParameter = None,
) -> JSONResponse:
    """Save a search: the parameters are those of `GET /api/products/search`, in the address.

    With `tells`, what it finds anew is told as `search.match`: new goods, and goods whose price fell to `max_price` or
    below it. It tells of a product once.
    """
    asked = replace(filters, text=None if q is None else validate_text(q), sort=validate_sort(sort, filters))
    parameters, rules = parameters_without(request), context.market.rules
    with context.writing() as (session, principal):
        return idempotency_key.answer(
            session,
            principal,
            lambda: json_response(save_search(session, principal, asked, parameters, form, rules)),
        )


@router.get("/saved-searches", response_model=list[SavedSearchView], responses=SEARCHES_LISTED)
def list_own_searches(request: Request, context: ContextDep, before: Before = None, limit: Limit = 50) -> JSONResponse:
    """List your saved searches, newest first. The `path` of each runs it."""
    with context.reading() as (session, principal):
        found = list_searches(session, principal, before, limit + 1)
        return page_response(request, found, limit, lambda view: view, lambda view: view.id)


@router.put("/saved-searches/{search_id}", responses=SEARCH_CHANGED)
def change(search_id: Id, body: SavedSearchChange, context: ContextDep) -> SavedSearchView:
    """Rename a saved search, or switch its news on or off."""
    with context.writing() as (session, principal):
        return change_search(session, principal, search_id, body)


@router.delete("/saved-searches/{search_id}", responses=SEARCH_CHANGED)
def remove_search(search_id: Id, context: ContextDep) -> SavedSearchView:
    """Delete a saved search."""
    with context.writing() as (session, principal):
        return delete_search(session, principal, search_id)
