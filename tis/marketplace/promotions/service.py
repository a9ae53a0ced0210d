"""Making, listing and ending promotions, and the sweep that begins and ends them in time."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta

from sqlalchemy import Row, func, select
from sqlalchemy.orm import Session

from tis.errors import Conflict, NotFound, Unprocessable
from tis.marketplace.columns import now
from tis.marketplace.kit import audit
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.promoted_prices import discount_percent, normal_price_of, units_taken
from tis.marketplace.kit.promotion_clock import apply_due, end_promotions
from tis.marketplace.products.service import lock_product, supplier_for_member
from tis.marketplace.promotions.schemas import PromotionForm, PromotionState, PromotionView
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.tables import Product, Promotion

MAX_DAYS = 366  # that it lasts, and until it begins
_MAX_OF_PRODUCT = 20  # that have not ended
_MAX_AT_ONCE = 200  # products in a transaction of the sweep
OpenTransaction = Callable[[], AbstractContextManager[Session]]


def add_promotion(
    session: Session, search: ProductSearch, principal: Principal, product_id: int, form: PromotionForm
) -> PromotionView:
    """The lock of the product decides between two who make one at the same moment."""
    product = lock_product(session, principal, product_id)
    if product.deleted_at is not None:
        raise NotFound("Product not found")
    moment = now()
    begins_at = max(form.begins_at or moment, moment)
    _require_period(begins_at, form.ends_at, moment)
    changed = apply_due(session, [product_id])
    session.refresh(product, ["price", "normal_price"])
    normal = normal_price_of(product)
    if form.price >= normal:
        raise Conflict(f"A promotion is below the normal price, {normal}.", code="promotion_not_lower")
    _require_room(session, product_id, begins_at, form.ends_at)
    promotion = Promotion(
        product_id=product_id,
        supplier_id=product.supplier_id,
        price=form.price,
        begins_at=begins_at,
        ends_at=form.ends_at,
        max_units=form.max_units,
        state="scheduled",
        created_at=moment,
    )
    session.add(promotion)
    session.flush()
    changed += apply_due(session, [product_id])
    search.refresh(session, changed)
    audit.note(session, principal, "promotion.create", "promotion", promotion.id, product_id=product_id)
    return _view_of(session, promotion.id)


def stop_promotion(session: Session, search: ProductSearch, principal: Principal, promotion_id: int) -> PromotionView:
    """One that has ended stays as it ended."""
    product_id = session.scalar(select(Promotion.product_id).where(Promotion.id == promotion_id))
    if product_id is None:
        raise NotFound("Promotion not found")
    lock_product(session, principal, product_id)
    before = _view_of(session, promotion_id)
    search.refresh(session, end_promotions(session, product_id, "stopped", promotion_id))
    after = _view_of(session, promotion_id)
    if (before.state, after.end_reason) != ("ended", before.end_reason):
        audit.note(session, principal, "promotion.end", "promotion", promotion_id, product_id=product_id)
    return after


def list_promotions(
    session: Session,
    principal: Principal,
    supplier_id: int,
    state: PromotionState | None,
    product_id: int | None,
    before: int | None,
    limit: int,
) -> Sequence[PromotionView]:
    """Newest first."""
    supplier_for_member(session, principal, supplier_id)
    wanted = [Promotion.supplier_id == supplier_id]
    wanted += [Promotion.state == state] if state else []
    wanted += [Promotion.product_id == product_id] if product_id else []
    wanted += [Promotion.id < before] if before else []
    rows = select(Promotion, Product).join(Product, Product.id == Promotion.product_id).where(*wanted)
    return _views(session, session.execute(rows.order_by(Promotion.id.desc()).limit(limit)).all())


class PromotionSweep:
    """Every server sweeps; the lock of a product decides which of them moves its price."""

    def __init__(self, reading: OpenTransaction, writing: OpenTransaction, search: ProductSearch) -> None:
        self._reading, self._writing, self._search = reading, writing, search

    def move_due(self) -> int:
        """Returns of how many products a promotion began, ended, was sold out or goes on."""
        total = 0
        with self._reading() as session:
            is_any_due = bool(_due(session, 1))
        while is_any_due:
            moved = self._move_some()
            total, is_any_due = total + moved, moved >= _MAX_AT_ONCE
        return total

    def _move_some(self) -> int:
        with self._writing() as session:
            ids = _due(session, _MAX_AT_ONCE)
            locked = select(Product.id).where(Product.id.in_(ids)).order_by(Product.id)
            found = session.scalars(locked.with_for_update(key_share=True, skip_locked=True)).all()
            self._search.refresh(session, apply_due(session, found))
        return len(found)


def _due(session: Session, limit: int) -> set[int]:
    """The products of promotions that begin, end, or have units again. Each statement reads an index of its own."""
    moment = now()
    of_all = select(Promotion.product_id).limit(limit)
    begin = of_all.where(Promotion.state == "scheduled", Promotion.begins_at <= moment)
    end = of_all.where(Promotion.state.in_(("running", "sold_out")), Promotion.ends_at <= moment)
    # The first condition is that of the index, which SQLite does not conclude from the second.
    is_open = Promotion.state.in_(("running", "sold_out")), Promotion.ends_at > moment
    has_units = Promotion.max_units > units_taken(Promotion.id).scalar_subquery()
    go_on = of_all.where(*is_open, Promotion.state == "sold_out", has_units)
    return {number for statement in (begin, end, go_on) for number in session.scalars(statement)}


def _require_period(begins_at: datetime, ends_at: datetime, moment: datetime) -> None:
    longest = timedelta(days=MAX_DAYS)
    if ends_at <= begins_at:
        raise Unprocessable("ends_at is not after begins_at, or not in the future.")
    if ends_at - begins_at > longest or begins_at - moment > longest:
        raise Unprocessable(f"A promotion begins within {MAX_DAYS} days, and lasts at most as long.")


def _require_room(session: Session, product_id: int, begins_at: datetime, ends_at: datetime) -> None:
    of_product = select(func.count()).where(Promotion.product_id == product_id, Promotion.state != "ended")
    if session.scalar(of_product.where(Promotion.begins_at < ends_at, Promotion.ends_at > begins_at)):
        raise Conflict("Another promotion of this product is in force at that time.", code="promotion_overlaps")
    if (session.scalar(of_product) or 0) >= _MAX_OF_PRODUCT:
        raise Conflict(f"A product has at most {_MAX_OF_PRODUCT} promotions to come.", code="too_many_promotions")


def _view_of(session: Session, promotion_id: int) -> PromotionView:
    rows = select(Promotion, Product).join(Product, Product.id == Promotion.product_id)
    rows = rows.where(Promotion.id == promotion_id).execution_options(populate_existing=True)
    [view] = _views(session, session.execute(rows).all())
    return view


def _views(session: Session, rows: Iterable[Row[Promotion, Product]]) -> list[PromotionView]:
    found = list(rows)
    taken = _taken(session, [promotion.id for promotion, _ in found])
    return [_view(promotion, product, taken.get(promotion.id, 0)) for promotion, product in found]


def _taken(session: Session, ids: Sequence[int]) -> dict[int, int]:
    counted = select(Promotion.id, units_taken(Promotion.id).scalar_subquery()).where(Promotion.id.in_(ids))
    return {number: int(units) for number, units in session.execute(counted)} if ids else {}


def _view(promotion: Promotion, product: Product, taken: int) -> PromotionView:
    own = (
        "id",
        "product_id",
        "price",
        "begins_at",
        "ends_at",
        "max_units",
        "state",
        "end_reason",
        "created_at",
        "ended_at",
    )
    return PromotionView(
        **{name: getattr(promotion, name) for name in own},
        product_name=product.name,
        normal_price=normal_price_of(product),
        units_taken=taken,
        lowest_price_30d=promotion.lowest_before,
        discount_percent=discount_percent(promotion.price, promotion.lowest_before),
    )
