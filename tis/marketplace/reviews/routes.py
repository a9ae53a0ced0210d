"""Reviews of products."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from tis.marketplace.context import ContextDep
from tis.marketplace.kit.fields import Id
from tis.marketplace.kit.idempotency import IdempotencyKeyDep
from tis.marketplace.kit.paging import Before, Limit, page_response
from tis.marketplace.kit.responses import json_response
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.rates import limited
from tis.marketplace.reviews.schemas import (
    REVIEW_CHANGED,
    REVIEW_CREATED,
    REVIEW_MODERATED,
    REVIEWS_LISTED,
    REVIEWS_OF_ALL,
    Moderation,
    ProductReviewView,
    ReviewChange,
    ReviewForm,
    ReviewStatus,
    ReviewView,
    product_review_view,
    review_view,
)
from tis.marketplace.reviews.service import (
    ReviewAndAuthor,
    add_review,
    change_review,
    delete_review,
    list_all_reviews,
    list_reviews,
    set_status,
)

router = APIRouter(tags=["reviews"], route_class=CheckedRoute)


@router.post(
    "/products/{product_id}/reviews",
    response_model=ReviewView,
    responses=REVIEW_CREATED,
    dependencies=[limited("reviews")],
)
def create(product_id: Id, form: ReviewForm, context: ContextDep, idempotency_key: IdempotencyKeyDep) -> JSONResponse:
    """Review a product: once per user and product."""
    search, values = context.market.search, form.model_dump()
    with context.writing() as (session, principal):
        return idempotency_key.answer(
            session, principal, lambda: json_response(_view(add_review(session, search, principal, product_id, values)))
        )


@router.get("/products/{product_id}/reviews", response_model=list[ReviewView], responses=REVIEWS_LISTED)
def listed(
    product_id: Id,
    context: ContextDep,
    request: Request,
    status: Annotated[ReviewStatus, Query(description="`hidden`: for admins")] = "published",
    variants: Annotated[
        Literal["own", "all"], Query(description="`all`: of all variants of its group, whose mean its rating is")
    ] = "own",
    before: Before = None,
    limit: Limit = 50,
) -> JSONResponse:
    """List the reviews of a product, newest first."""
    with context.reading() as (session, principal):
        of_group = variants == "all"
        reviews = list_reviews(session, principal, product_id, status, before, limit + 1, of_group=of_group)
        return page_response(request, reviews, limit, _view, lambda review_and_author: review_and_author[0].id)


@router.put("/reviews/{review_id}", response_model=ReviewView, responses=REVIEW_CHANGED)
def change(review_id: Id, form: ReviewChange, context: ContextDep) -> JSONResponse:
    """Change the sent fields of your review, and no others."""
    values = form.model_dump(exclude_unset=True)
    with context.writing() as (session, principal):
        return json_response(_view(change_review(session, context.market.search, principal, review_id, values)))


@router.delete("/reviews/{review_id}", response_model=ReviewView, responses=REVIEW_CHANGED)
def delete(review_id: Id, context: ContextDep) -> JSONResponse:
    """Delete your review. It cannot be restored; a hidden review stays."""
    with context.writing() as (session, principal):
        return json_response(_view(delete_review(session, context.market.search, principal, review_id)))


@router.put("/reviews/{review_id}/status", response_model=ReviewView, responses=REVIEW_MODERATED)
def moderate(review_id: Id, form: Moderation, context: ContextDep) -> JSONResponse:
    """Hide a review or show it again, for admins."""
    with context.writing() as (session, principal):
        search = context.market.search
        return json_response(_view(set_status(session, search, principal, review_id, form.status, form.reason)))


@router.get("/admin/reviews", response_model=list[ProductReviewView], responses=REVIEWS_OF_ALL)
def listed_for_admins(
    context: ContextDep,
    request: Request,
    status: ReviewStatus = "hidden",
    before: Before = None,
    limit: Limit = 50,
) -> JSONResponse:
    """List the hidden reviews of all products, or the published ones, newest first, for admins."""
    with context.reading() as (session, principal):
        reviews = list_all_reviews(session, principal, status, before, limit + 1)
        return page_response(request, reviews, limit, lambda row: product_review_view(*row), lambda row: row[0].id)


def _view(review_and_author: ReviewAndAuthor) -> ReviewView:
    return review_view(*review_and_author)
