"""Begins and ends promotions: writes the price that is in force, its history and the state of the promotion.

The caller has locked the products, and refreshes the search for those whose price has changed.
"""

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime
from typing import Literal

from sqlalchemy import exists, insert, select, update
from sqlalchemy.orm import Session

from tis.marketplace.columns import now
from tis.marketplace.kit.promoted_prices import lowest_price_of, units_left
from tis.marketplace.tables import PriceChange, Product, Promotion

EndReason = Literal["over", "stopped", "not_lower", "deleted"]


def apply_due(session: Session, product_ids: Collection[int]) -> list[int]:
    """Brings products to the price of this moment. Returns those whose price has changed."""
    return _apply(session, product_ids, now(), None)


def end_promotions(session: Session, product_id: int, reason: EndReason, promotion_id: int | None = None) -> list[int]:
    """Of a product, those that have not ended, or the one that is named. What is due before is done before."""
    moment = now()
    due = _apply(session, [product_id], moment, None)
    return sorted({*due, *_apply(session, [product_id], moment, reason, promotion_id)})


def promotion_for_hold(session: Session, product_id: int) -> tuple[Promotion | None, list[int]]:
    """The one that is in force, and the product if its price has changed. Locks the product if there may be one."""
    begun = Promotion.product_id == product_id, Promotion.state != "ended", Promotion.begins_at <= now()
    if not session.scalar(select(exists().where(*begun))):
        return None, []
    session.execute(select(Product.id).where(Product.id == product_id).with_for_update(key_share=True))
    changed = apply_due(session, [product_id])
    running = select(Promotion).where(Promotion.product_id == product_id, Promotion.state == "running")
    return session.scalar(running), changed


def _apply(
    session: Session,
    product_ids: Collection[int],
    moment: datetime,
    reason: EndReason | None,
    promotion_id: int | None = None,
) -> list[int]:
    """`reason`: why they end now, also before their time."""
    not_ended = select(Promotion).where(Promotion.product_id.in_(product_ids), Promotion.state != "ended")
    if promotion_id is not None:
        not_ended = not_ended.where(Promotion.id == promotion_id)
    if reason is None:
        not_ended = not_ended.where(Promotion.begins_at <= moment)
    rows = not_ended.order_by(Promotion.begins_at, Promotion.id).execution_options(populate_existing=True)
    of_product = defaultdict[int, list[Promotion]](list)
    for promotion in session.scalars(rows) if product_ids else ():
        of_product[promotion.product_id].append(promotion)
    if not of_product:
        return []
    columns = select(Product.id, Product.price, Product.normal_price).where(Product.id.in_(of_product))
    changed = []
    for product in session.execute(columns.order_by(Product.id)):
        price = _ProductPrice(session, product.id, product.price, product.normal_price or product.price)
        for promotion in of_product[product.id]:
            _move(price, promotion, moment, reason)
        changed += [product.id] if price.write(moment) else []
    session.flush()
    return changed


class _ProductPrice:
    """Of one product, while its promotions begin and end one after the other."""

    def __init__(self, session: Session, product_id: int, price: int, normal: int) -> None:
        self.session, self.product_id, self.normal = session, product_id, normal
        self._now = price
        self._changes: list[tuple[datetime, int]] = []

    def become(self, price: int, valid_from: datetime) -> None:
        """A price that another one takes the place of in the same moment was never in force."""
        if self._changes and self._changes[-1][0] >= valid_from:
            self._changes.pop()
        self._now = price
        self._changes.append((valid_from, price))

    def write(self, moment: datetime) -> bool:
        if not self._changes:
            return False
        values = {"price": self._now, "normal_price": self.normal if self._now != self.normal else None}
        written = update(Product).where(Product.id == self.product_id)
        written = written.values(**values, version=Product.version + 1, updated_at=moment)
        self.session.execute(written, execution_options={"synchronize_session": False})
        rows = [{"product_id": self.product_id, "price": price, "valid_from": at} for at, price in self._changes]
        self.session.execute(insert(PriceChange), rows)
        return True

    def lowest_before(self, begin: datetime) -> int:
        """What began and ended in this call is not written yet, and was lower than what is."""
        found = lowest_price_of(self.session, self.product_id, begin)
        prices = [price for at, price in self._changes if at < begin]
        return min([self.normal if found is None else found, *prices])


def _move(price: _ProductPrice, promotion: Promotion, moment: datetime, reason: EndReason | None) -> None:
    if promotion.ends_at <= moment or reason is not None:
        _end(price, promotion, "over" if promotion.ends_at <= moment else reason or "over", moment)
        return
    left = units_left(price.session, promotion)
    if promotion.state == "running" and left == 0:
        promotion.state = "sold_out"
        price.become(price.normal, moment)
    elif promotion.state == "scheduled":
        _begin(price, promotion, promotion.begins_at, moment)
    elif promotion.state == "sold_out" and left:
        _begin(price, promotion, moment, moment)


def _begin(price: _ProductPrice, promotion: Promotion, begin: datetime, moment: datetime) -> None:
    if promotion.price >= price.normal:  # the shop has lowered its price meanwhile
        _end(price, promotion, "not_lower", moment)
        return
    if promotion.state == "scheduled":
        promotion.lowest_before = price.lowest_before(begin)
    promotion.state = "running"
    price.become(promotion.price, begin)


def _end(price: _ProductPrice, promotion: Promotion, reason: EndReason, moment: datetime) -> None:
    """One that never began, as no server ran, leaves the price alone."""
    end = min(promotion.ends_at, moment)
    if promotion.state == "running":
        price.become(price.normal, end)
    promotion.state, promotion.end_reason, promotion.ended_at = "ended", reason, end
