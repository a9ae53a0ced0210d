"""Answers of a shop to its reviews, and the list of these reviews."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from tis.marketplace.context import ContextDep
from tis.marketplace.kit.fields import Id
from tis.marketplace.kit.paging import Before, Limit, page_response
from tis.marketplace.kit.responses import Message
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.rates import limited
from tis.marketplace.reviews import answers
from tis.marketplace.reviews.schemas import (
    ANSWER_DELETED,
    ANSWER_FLAG_CLEARED,
    ANSWER_GIVEN,
    FLAGGED_ANSWERS_LISTED,
    SHOP_REVIEWS_LISTED,
    FlaggedAnswerView,
    ProductReviewView,
    ReviewAnswerForm,
    ReviewView,
    product_review_view,
    review_view,
)
from tis.marketplace.tables import Review

router = APIRouter(tags=["reviews"], route_class=CheckedRoute)


@router.get("/suppliers/{supplier_id}/reviews", response_model=list[ProductReviewView], responses=SHOP_REVIEWS_LISTED)
def list_for_shop(
    supplier_id: Id,
    context: ContextDep,
    request: Request,
    unanswered: Annotated[bool, Query(description="`true`: only those that the shop has not answered")] = False,
    before: Before = None,
    limit: Limit = 50,
) -> JSONResponse:
    """List the reviews of a supplier's products, newest first; `Link` has the next page."""
    with context.reading() as (session, principal):
        rows = answers.list_shop_reviews(session, principal, supplier_id, before, limit + 1, unanswered=unanswered)
        return page_response(request, rows, limit, lambda row: product_review_view(*row), lambda row: row[0].id)


@router.put("/reviews/{review_id}/answer", responses=ANSWER_GIVEN, dependencies=[limited("reviews")])
def answer(review_id: Id, form: ReviewAnswerForm, context: ContextDep) -> ReviewView:
    """Answer a review of the shop's product, or change the answer, for members of the shop. Everybody reads it."""
    with context.writing() as (session, principal):
        return review_view(*answers.set_answer(session, principal, review_id, form.body))


@router.delete("/reviews/{review_id}/answer", responses=ANSWER_DELETED)
def delete(review_id: Id, context: ContextDep) -> ReviewView:
    """Delete the answer to a review, for members of the shop and admins."""
    with context.writing() as (session, principal):
        return review_view(*answers.delete_answer(session, principal, review_id))


@router.get("/admin/flagged-answers", response_model=list[FlaggedAnswerView], responses=FLAGGED_ANSWERS_LISTED)
def list_flagged(context: ContextDep, request: Request, before: Before = None, limit: Limit = 50) -> JSONResponse:
    """List answers of shops that read like instructions to a language model, newest review first, for admins."""
    with context.reading() as (session, principal):
        flagged = answers.list_flagged_answers(session, principal, before, limit + 1)
        return page_response(request, flagged, limit, _flagged_view, lambda review: review.id)


@router.delete("/admin/flagged-answers/{review_id}", responses=ANSWER_FLAG_CLEARED)
def clear_flag(review_id: Id, context: ContextDep) -> Message:
    """Clear the flag of an answer, for admins. Idempotent; a change of the answer may flag it again."""
    with context.writing() as (session, principal):
        answers.clear_answer_flag(session, principal, review_id)
    return Message(detail="Cleared.")


def _flagged_view(review: Review) -> FlaggedAnswerView:
    return FlaggedAnswerView(
        review_id=review.id,
        product_id=review.product_id,
        supplier_id=review.supplier_id,
        body=review.answer or "",
        reason=review.answer_flagged_reason or "",
        updated_at=review.answer_changed_at or review.updated_at,
    )
