"""Routes of promotions, for the members of a shop."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from tis.marketplace.context import ContextDep
from tis.marketplace.kit.fields import MAX_ID, Id
from tis.marketplace.kit.idempotency import IdempotencyKeyDep
from tis.marketplace.kit.paging import Before, Limit, page_response
from tis.marketplace.kit.responses import json_response
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.promotions.schemas import (
    PROMOTION_ENDED,
    PROMOTION_MADE,
    PROMOTIONS_LISTED,
    PromotionForm,
    PromotionState,
    PromotionView,
)
from tis.marketplace.promotions.service import add_promotion, list_promotions, stop_promotion

router = APIRouter(tags=["promotions"], route_class=CheckedRoute)


@router.post("/products/{product_id}/promotions", response_model=PromotionView, responses=PROMOTION_MADE)
def create(
    product_id: Id, form: PromotionForm, context: ContextDep, idempotency_key: IdempotencyKeyDep
) -> JSONResponse:
    """Set a lower price of a product for a while, from `begins_at` until just before `ends_at`.

    Two promotions of a product do not overlap. While it is in force, its price is the `price` of the product
    everywhere, and buyers see the normal price and the lowest of the 30 days before beside it.
    """
    search = context.market.search
    with context.writing() as (session, principal):
        return idempotency_key.answer(
            session, principal, lambda: json_response(add_promotion(session, search, principal, product_id, form))
        )


@router.get("/suppliers/{supplier_id}/promotions", response_model=list[PromotionView], responses=PROMOTIONS_LISTED)
def list_for_shop(
    request: Request,
    supplier_id: Id,
    context: ContextDep,
    state: PromotionState | None = None,
    product_id: Annotated[int | None, Query(ge=1, le=MAX_ID)] = None,
    before: Before = None,
    limit: Limit = 50,
) -> JSONResponse:
    """List the promotions of a shop for its members, newest first."""
    with context.reading() as (session, principal):
        found = list_promotions(session, principal, supplier_id, state, product_id, before, limit + 1)
        return page_response(request, found, limit, lambda view: view, lambda view: view.id)


@router.post("/promotions/{promotion_id}/end", responses=PROMOTION_ENDED)
def end(promotion_id: Id, context: ContextDep) -> PromotionView:
    """End a promotion now, or call off one that has not begun. Idempotent; what is held at its price stays held."""
    with context.writing() as (session, principal):
        return stop_promotion(session, context.market.search, principal, promotion_id)
