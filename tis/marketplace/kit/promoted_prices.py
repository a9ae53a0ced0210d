"""Promotions and the clock: what a product costs at a moment, and the changes of its price that are due.

`products.price` is the price in force: search, cards and holds read it. The sweeper writes it at the begin and at the
end of a promotion; who must not be late, such as a hold, does so first, under the lock of the product.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pydantic import BaseModel, Field
from sqlalchemy import Row, Select, func, select
from sqlalchemy.orm import Session

from tis.marketplace.columns import now
from tis.marketplace.tables import Order, OrderLine, PriceChange, Product, Promotion, Reservation

_CAME_TO_NOTHING = ("released", "refused", "cancelled", "expired")  # reservations and orders

# The EU's Omnibus directive (2019/2161) compares a reduced price with the lowest price of the 30 days before.
LOOK_BACK = timedelta(days=30)


class ShownPromotion(BaseModel):
    """Beside a `price` that is lower for a while."""

    id: int
    normal_price: int
    lowest_price_30d: int = Field(description="the lowest price of the 30 days before the promotion began")
    discount_percent: int | None = Field(
        description="below `lowest_price_30d`, rounded down; null: it was as cheap before, so it is no discount"
    )
    begins_at: datetime
    ends_at: datetime


def shown_promotion(
    number: int, price: int, normal_price: int, lowest: int | None, begins_at: datetime, ends_at: datetime
) -> ShownPromotion:
    lowest = normal_price if lowest is None else lowest
    return ShownPromotion(
        id=number,
        normal_price=normal_price,
        lowest_price_30d=lowest,
        discount_percent=discount_percent(price, lowest),
        begins_at=begins_at,
        ends_at=ends_at,
    )


def discount_percent(price: int, lowest: int | None) -> int | None:
    return None if lowest is None or price >= lowest else (lowest - price) * 100 // lowest


def normal_price_of(product: Product | Row[Any]) -> int:
    """What the shop asks without a promotion."""
    return int(product.price if product.normal_price is None else product.normal_price)


def lowest_price_of(session: Session, product_id: int, until: datetime, before_id: int | None = None) -> int | None:
    """The lowest price in force within the 30 days before `until`; None without any.

    `before_id`: of the changes before this one, as the clocks of several servers differ.
    """
    start = until - LOOK_BACK
    is_earlier = PriceChange.valid_from < until if before_id is None else PriceChange.id < before_id
    earlier = PriceChange.product_id == product_id, is_earlier
    began_within = select(func.min(PriceChange.price)).where(*earlier, PriceChange.valid_from > start)
    began_before = (
        select(PriceChange.price)
        .where(*earlier, PriceChange.valid_from <= start)
        .order_by(PriceChange.id.desc())
        .limit(1)
    )
    prices = session.scalar(began_within), session.scalar(began_before)
    return min((price for price in prices if price is not None), default=None)


@dataclass(frozen=True)
class CurrentPrice:
    price: int
    promotion: ShownPromotion | None = None


def current_prices(session: Session, products: Iterable[Product]) -> dict[int, CurrentPrice]:
    """By product, and by the clock: right also before `products.price` is."""
    by_id, moment = {product.id: product for product in products}, now()
    prices = {number: CurrentPrice(normal_price_of(product)) for number, product in by_id.items()}
    rows = select(Promotion).where(
        Promotion.product_id.in_(by_id),
        Promotion.state.in_(("scheduled", "running")),
        Promotion.begins_at <= moment,
        Promotion.ends_at > moment,
    )
    for one in session.scalars(rows) if by_id else ():
        normal, lowest = prices[one.product_id].price, one.lowest_before
        if one.price < normal:
            if one.state == "scheduled":
                lowest = lowest_price_of(session, one.product_id, one.begins_at)
            shown = shown_promotion(one.id, one.price, normal, lowest, one.begins_at, one.ends_at)
            prices[one.product_id] = CurrentPrice(one.price, shown)
    return prices


def units_taken(promotion_id: Any) -> Select[int]:
    """How many units are held, ordered or sold at the price of a promotion."""
    given = func.coalesce(OrderLine.quantity, Reservation.quantity)  # a shop may accept a part of an order
    return (
        select(func.coalesce(func.sum(given), 0))
        .select_from(Reservation)
        .outerjoin(OrderLine, OrderLine.reservation_id == Reservation.id)
        .outerjoin(Order, Order.id == OrderLine.order_id)
        .where(
            Reservation.promotion_id == promotion_id,
            Reservation.status.not_in(_CAME_TO_NOTHING),
            func.coalesce(Order.state, "").not_in(_CAME_TO_NOTHING),
        )
    )


def units_left(session: Session, promotion: Promotion) -> int | None:
    """None: as many as the shop has."""
    if promotion.max_units is None:
        return None
    return max(0, promotion.max_units - int(session.scalar(units_taken(promotion.id)) or 0))
