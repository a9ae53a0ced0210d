"""Bodies and views of reviews, with their examples."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from tis.marketplace.auth.schemas import ADMIN_REQUIRED
from tis.marketplace.kit.docs import KEY_USED, responses, schema_example
from tis.marketplace.kit.fields import Name, ReasonText, ReviewText
from tis.marketplace.kit.unknown_fields import StrictBody

REVIEW_FORM_EXAMPLE: dict[str, Any] = {"rating": 5, "title": "Kencang", "body": "Sesuai pesanan, cepat sampai."}
REVIEW_EXAMPLE: dict[str, Any] = {
    **REVIEW_FORM_EXAMPLE,
    "id": 1,
    "product_id": 1,
    "author": "Jane S.",
    "verified_purchase": True,
    "status": "published",
    "created_at": "2026-11-21T03:00:00Z",
    "updated_at": "2026-11-21T03:00:00Z",
}

Stars = Annotated[int, Field(ge=1, le=5, strict=True)]
ReviewStatus = Literal["published", "hidden"]
_UNCHANGED: Any = None


class ReviewForm(StrictBody):
    model_config = schema_example(REVIEW_FORM_EXAMPLE)

    rating: Stars
    title: Name | None = None
    body: ReviewText | None = None


class ReviewChange(StrictBody):
    model_config = schema_example({"rating": 4})

    rating: Stars = _UNCHANGED
    title: Name | None = None
    body: ReviewText | None = None


class Moderation(StrictBody):
    status: ReviewStatus
    reason: ReasonText | None = Field(None, description="for the audit log")


class ReviewView(BaseModel):
    id: int
    product_id: int
    rating: int
    title: str | None
    body: str | None
    author: str
    verified_purchase: bool  # the author bought the product; such reviews count like three others
    status: ReviewStatus
    created_at: datetime
    updated_at: datetime


class ModeratedReview(ReviewView):
    product_name: str


# Answers of the routes, for /docs.
_NO_PRODUCT = {404: "Product not found"}
_NO_REVIEW = {404: "Review not found"}
REVIEW_CREATED = responses(
    REVIEW_EXAMPLE,
    {403: "You cannot review products of a supplier that you work for."},
    _NO_PRODUCT,
    {409: "Already reviewed"},
    KEY_USED,
)
REVIEWS_LISTED = responses([REVIEW_EXAMPLE], _NO_PRODUCT)
REVIEWS_OF_ALL = responses(
    [{**REVIEW_EXAMPLE, "status": "hidden", "product_name": "Kipas angin 12 inci"}], ADMIN_REQUIRED
)
REVIEW_CHANGED = responses(REVIEW_EXAMPLE, {403: "This review belongs to another user."}, _NO_REVIEW)
REVIEW_MODERATED = responses({**REVIEW_EXAMPLE, "status": "hidden"}, {403: "Only an admin may do that."}, _NO_REVIEW)
