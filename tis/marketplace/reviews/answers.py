"""What a shop answers to reviews of its goods: one answer to each, which leaves the review itself as it is."""

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Row, select, update
from sqlalchemy.orm import Session

from tis.errors import Forbidden, NotFound
from tis.marketplace.auth.accounts import MAX_EXPORTED_ROWS
from tis.marketplace.columns import now
from tis.marketplace.kit import audit
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.suspicious_texts import instruction_like
from tis.marketplace.policy import require_admin, require_supplier, sees_hidden_goods
from tis.marketplace.reviews.service import ReviewAndAuthor, lock_review
from tis.marketplace.tables import Product, Review, Supplier, User

_NO_ANSWER: dict[str, Any] = {
    "answer": None,
    "answered_at": None,
    "answer_changed_at": None,
    "answered_by": None,
    "answer_flagged_reason": None,
}


def list_shop_reviews(
    session: Session, principal: Principal, supplier_id: int, before: int | None, limit: int, *, unanswered: bool
) -> Sequence[Row[Review, User, str]]:
    """Published reviews of the shop's goods, newest first, each with its author and the name of the product."""
    supplier = session.get(Supplier, supplier_id)
    if supplier is None or not (supplier.is_active or sees_hidden_goods(principal, supplier_id)):
        raise NotFound("Supplier not found")
    rows = (
        select(Review, User, Product.name)
        .join(User, User.id == Review.user_id)
        .join(Product, Product.id == Review.product_id)
        .where(Review.supplier_id == supplier_id, Review.status == "published")
    )
    if unanswered:
        rows = rows.where(Review.answer.is_(None))
    if before is not None:
        rows = rows.where(Review.id < before)
    return session.execute(rows.order_by(Review.id.desc()).limit(limit)).all()


def set_answer(session: Session, principal: Principal, review_id: int, body: str) -> ReviewAndAuthor:
    review = _lock_for_shop(session, principal, review_id)
    if review.answer != body:
        is_new, moment = review.answer is None, now()
        values = {"answer": body, "answer_changed_at": moment, "answered_by": principal.account}
        if is_new:
            values["answered_at"] = moment
        _write(session, review, {**values, "answer_flagged_reason": instruction_like(body)})
        audit.note(session, principal, "answer" if is_new else "answer.change", "review", review.id, answer=True)
    return review, session.get_one(User, review.user_id)


def delete_answer(session: Session, principal: Principal, review_id: int) -> ReviewAndAuthor:
    review = _lock_for_shop(session, principal, review_id)
    if review.answer is None:
        raise NotFound("There is no answer.")
    _write(session, review, _NO_ANSWER)
    audit.note(session, principal, "answer.delete", "review", review.id, answer=True)
    return review, session.get_one(User, review.user_id)


def erase_answers(session: Session, supplier_ids: Collection[int]) -> None:
    own = update(Review).where(Review.supplier_id.in_(supplier_ids), Review.answer.is_not(None))
    session.execute(own.values(**_NO_ANSWER, updated_at=Review.updated_at))


def list_flagged_answers(session: Session, principal: Principal, before: int | None, limit: int) -> Sequence[Review]:
    require_admin(principal)
    rows = select(Review).where(Review.answer_flagged_reason.is_not(None))
    if before is not None:
        rows = rows.where(Review.id < before)
    return session.scalars(rows.order_by(Review.id.desc()).limit(limit)).all()


def clear_answer_flag(session: Session, principal: Principal, review_id: int) -> None:
    require_admin(principal)
    review = lock_review(session, review_id)
    if review.answer_flagged_reason is not None:
        cleared = [review.answer_flagged_reason, None]
        audit.note(session, principal, "flag.clear", "review", review_id, answer_flagged_reason=cleared)
        _write(session, review, {"answer_flagged_reason": None})


def exported_answers(session: Session, condition: ColumnElement[bool]) -> list[dict[str, Any]]:
    """In the order of the reviews, at most 50,000; without the reviews, which are the words of others."""
    columns = Review.id.label("review_id"), Review.product_id, Review.answer, Review.answered_at
    rows = select(*columns, Review.answer_changed_at, Review.answered_by)
    found = session.execute(rows.where(condition, Review.answer.is_not(None)).limit(MAX_EXPORTED_ROWS))
    return sorted(map(dict, found.mappings()), key=lambda row: row["review_id"])


def _lock_for_shop(session: Session, principal: Principal, review_id: int) -> Review:
    """For others, a hidden review does not exist."""
    review = lock_review(session, review_id)
    if review.status != "published" and not principal.is_admin:
        raise NotFound("Review not found")
    require_supplier(principal, review.supplier_id)
    if review.user_id == principal.user_id:
        raise Forbidden("You wrote this review: another member of the shop answers it.")
    return review


def _write(session: Session, review: Review, values: dict[str, Any]) -> None:
    """`updated_at` keeps its value: the author of the review changed nothing."""
    session.execute(update(Review).where(Review.id == review.id).values(**values, updated_at=Review.updated_at))
    session.refresh(review)
