"""Reviews of products. A change of a review updates the rating columns of its product in the same transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from sqlalchemy import and_, exists, func, or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from tis.errors import Conflict, Forbidden, NotFound
from tis.marketplace.auth.accounts import account_holder, lock_account, split_account, user_account
from tis.marketplace.kit import audit
from tis.marketplace.kit.news import News
from tis.marketplace.kit.notice_outbox import notify
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.ratings import COUNTERS, PRIOR_COUNT, weighted_stars
from tis.marketplace.policy import require_admin, require_user
from tis.marketplace.products.service import find_product
from tis.marketplace.products.variant_keys import add_to_group
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.tables import UNRATED, Order, OrderLine, Product, Reservation, Review, SupplierFacts, User

ReviewAndAuthor = tuple[Review, User]
_OWN_SHOP = "You cannot review products of a supplier that you work for."
HAS_GOODS = ("handed_over", "received", "returned")  # states of an order whose buyer had the goods in hand


def list_reviews(
    session: Session,
    principal: Principal,
    product_id: int,
    status: str,
    before: int | None,
    limit: int,
    *,
    of_group: bool = False,
) -> Sequence[ReviewAndAuthor]:
    """Newest first. Only admins list hidden reviews. `of_group`: those of all variants of its group."""
    product = find_product(session, principal, product_id)
    if status != "published":
        require_admin(principal)
    of_product = Review.product_id == product_id
    if of_group and product.group_id is not None:
        of_product = Review.product_id.in_(select(Product.id).where(Product.group_id == product.group_id))
    rows = select(Review, User).join(User, User.id == Review.user_id)
    rows = rows.where(of_product, Review.status == status)
    if before is not None:
        rows = rows.where(Review.id < before)
    return [(review, user) for review, user in session.execute(rows.order_by(Review.id.desc()).limit(limit))]


def list_all_reviews(
    session: Session, principal: Principal, status: str, before: int | None, limit: int
) -> Sequence[tuple[Review, User, str]]:
    """Newest first, each with the name of its product."""
    require_admin(principal)
    rows = select(Review, User, Product.name).join(User, User.id == Review.user_id)
    rows = rows.join(Product, Product.id == Review.product_id).where(Review.status == status)
    if before is not None:
        rows = rows.where(Review.id < before)
    found = session.execute(rows.order_by(Review.id.desc()).limit(limit))
    return [(review, user, name) for review, user, name in found]


def add_review(
    session: Session, search: ProductSearch, principal: Principal, product_id: int, values: Mapping[str, Any]
) -> ReviewAndAuthor:
    product = find_product(session, principal, product_id)
    user_id = require_user(principal)
    if product.supplier_id in principal.supplier_ids:
        raise Forbidden(_OWN_SHOP)
    lock_account(session, user_account(user_id))
    own = select(Review.id).where(Review.product_id == product_id, Review.user_id == user_id)
    if session.scalar(own.with_for_update()) is not None:
        raise Conflict("Already reviewed")
    # MariaDB shares the lock of the product for the review's foreign key; two reviews could not both go on from there.
    session.execute(select(Product.id).where(Product.id == product_id).with_for_update(key_share=True))
    verified = _has_bought(session, user_id, product_id)
    review = Review(product_id=product_id, user_id=user_id, verified_purchase=verified, **values)
    session.add(review)
    try:
        session.flush()
    except IntegrityError as error:
        raise Conflict("Already reviewed") from error
    audit.note(session, principal, "create", "review", review.id, product_id=[None, product_id], **_audited({}, values))
    _update_rating(session, search, review, review.rating, 1)
    said = {
        "review_id": review.id,
        "product_id": product_id,
        "supplier_id": review.supplier_id,
        "rating": review.rating,
    }
    notify(session, [News("review.written", said, supplier_id=review.supplier_id)])
    return review, session.get_one(User, user_id)


def change_review(
    session: Session, search: ProductSearch, principal: Principal, review_id: int, values: Mapping[str, Any]
) -> ReviewAndAuthor:
    review = _lock_own_review(session, principal, review_id)
    if review.supplier_id in principal.supplier_ids:  # who may work there since it was written
        raise Forbidden(_OWN_SHOP)
    before = {name: getattr(review, name) for name in values}
    for name, value in values.items():
        setattr(review, name, value)
    session.flush()
    if audited := _audited(before, values):
        audit.note(session, principal, "change", "review", review.id, **audited)
    if review.status == "published" and "rating" in audited:
        _update_rating(session, search, review, review.rating - before["rating"], 0)
    return review, session.get_one(User, review.user_id)


def delete_review(session: Session, search: ProductSearch, principal: Principal, review_id: int) -> ReviewAndAuthor:
    review = _lock_own_review(session, principal, review_id)
    if review.status != "published":
        # Its author could post it again, and it would be published.
        raise Forbidden("A hidden review cannot be deleted.")
    author = session.get_one(User, review.user_id)
    session.delete(review)
    audit.note(session, principal, "delete", "review", review.id, rating=[review.rating, None])
    _update_rating(session, search, review, -review.rating, -1)
    return review, author


def lock_buyer(session: Session, account: str | None) -> None:
    """A sale and a review of one user wait for each other: else neither would see the other."""
    if account is not None and split_account(account)[0] == "user":
        account_holder(session, account, locked=True)


def verify_review(session: Session, account: str | None, product_id: int) -> Review | None:
    """After a sale: marks what the buyer has already written. The caller has locked the buyer.

    Returns a review that `count_verified` is to count, once the product is locked.
    """
    kind, user_id = split_account(account) if account else ("", 0)
    if kind != "user":
        return None
    own = select(Review).where(Review.product_id == product_id, Review.user_id == user_id)
    review = session.scalar(own.with_for_update(of=Review).execution_options(populate_existing=True))
    if review is None or review.verified_purchase:
        return None
    # `updated_at` keeps its value: the author changed nothing.
    mark = update(Review).where(Review.id == review.id)
    session.execute(mark.values(verified_purchase=True, updated_at=Review.updated_at))
    return review if review.status == "published" else None


def count_verified(session: Session, search: ProductSearch, reviews: Sequence[Review]) -> None:
    """Of several products: the caller has locked them, and their search comes after all of them."""
    added = {one.product_id: _Added(verified_sum=one.rating, verified_count=1) for one in reviews}
    _add_to_ratings(session, search, added)


def set_status(
    session: Session,
    search: ProductSearch,
    principal: Principal,
    review_id: int,
    status: str,
    reason: str | None = None,
) -> ReviewAndAuthor:
    """Moderation. A hidden review does not count in the rating."""
    require_admin(principal)
    review = lock_review(session, review_id)
    if review.status != status:
        noted = {"reason": reason} if reason else {}
        audit.note(session, principal, "moderate", "review", review.id, status=[review.status, status], **noted)
        review.status = status
        sign = 1 if status == "published" else -1
        _update_rating(session, search, review, sign * review.rating, sign)
    return review, session.get_one(User, review.user_id)


def _lock_own_review(session: Session, principal: Principal, review_id: int) -> Review:
    user_id = require_user(principal)
    review = lock_review(session, review_id)
    if review.user_id != user_id:
        if review.status != "published":
            raise NotFound("Review not found")
        raise Forbidden("This review belongs to another user.")
    return review


def lock_review(session: Session, review_id: int) -> Review:
    review = session.scalar(select(Review).where(Review.id == review_id).with_for_update(of=Review))
    if review is None:
        raise NotFound("Review not found")
    return review


def _has_bought(session: Session, user_id: int, product_id: int) -> bool:
    is_sale = and_(
        Reservation.actor == user_account(user_id),
        Reservation.status == "committed",
        Reservation.product_id == product_id,
    )
    is_delivery = and_(
        Order.buyer == user_account(user_id), Order.state.in_(HAS_GOODS), OrderLine.product_id == product_id
    )
    by_order = (
        select(OrderLine.order_id)
        .join(Order, Order.id == OrderLine.order_id)
        .where(is_delivery, OrderLine.quantity > 0)
    )
    return bool(session.scalar(select(or_(exists().where(is_sale), by_order.exists()))))


def _update_rating(
    session: Session, search: ProductSearch, review: Review, added_stars: int, added_reviews: int
) -> None:
    verified = (added_stars, added_reviews) if review.verified_purchase else (0, 0)
    _add_to_ratings(session, search, {review.product_id: _Added(added_stars, added_reviews, *verified)})


@dataclass(frozen=True)
class _Added:
    """To the columns of a product with these names."""

    rating_sum: int = 0
    rating_count: int = 0
    verified_sum: int = 0
    verified_count: int = 0


def _add_to_rating(session: Session, product_id: int, added: _Added) -> None:
    """One UPDATE, because others may review the same product now. `rating_rank_of` in SQL."""
    session.flush()
    counters = {name: getattr(Product, name) + number for name, number in vars(added).items()}
    new_stars, new_weight = weighted_stars(SimpleNamespace(**counters))
    rank = (PRIOR_COUNT * func.coalesce(Product.granted_rating, UNRATED) + new_stars) / (PRIOR_COUNT + new_weight)
    statement = update(Product).where(Product.id == product_id)
    # `updated_at` keeps its value (`onupdate` would set it): the supplier changed nothing.
    statement = statement.values(**counters, rating_rank=rank, updated_at=Product.updated_at)
    session.execute(statement, execution_options={"synchronize_session": False})


def _add_to_ratings(session: Session, search: ProductSearch, added: Mapping[int, _Added]) -> None:
    """By product, in the order in which the caller has locked them. Groups come after all of them, in one order."""
    for product_id, one in added.items():
        _add_to_rating(session, product_id, one)
    grouped = select(Product.id, Product.group_id).where(Product.id.in_(added))
    by_group: dict[int, list[_Added]] = {}
    for product_id, group_id in session.execute(grouped):
        if group_id is not None:
            by_group.setdefault(group_id, []).append(added[product_id])
    for group_id, ones in sorted(by_group.items()):
        add_to_group(session, group_id, [sum(getattr(one, name) for one in ones) for name in COUNTERS])
    search.refresh(session, added, by_group)
    for product_id, one in added.items():
        _count_stars(session, product_id, one)


def _count_stars(session: Session, product_id: int, counters: Any) -> None:
    """Adds what a review adds to `rating_sum` and the other counters of a product to the rating of its supplier."""
    stars, weight = weighted_stars(counters)
    if not (stars or weight):
        return
    supplier = select(Product.supplier_id).where(Product.id == product_id).scalar_subquery()
    rated = update(SupplierFacts).where(SupplierFacts.supplier_id == supplier)
    added = rated.values(stars=SupplierFacts.stars + stars, weight=SupplierFacts.weight + weight)
    session.execute(added, execution_options={"synchronize_session": False})


def _audited(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The log gets the stars, but of the texts, which are personal data, only that they changed."""
    changed = {name for name in after if before.get(name) != after[name]}
    return {name: [before.get(name), after[name]] if name == "rating" else True for name in changed}
