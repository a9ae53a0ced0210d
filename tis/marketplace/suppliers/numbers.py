"""What a shop did in the last weeks: sales and holds by day, best goods, goods that will soon be gone, reviews.

How often goods were looked at is counted nowhere.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import Any

from sqlalchemy import ColumnElement, Subquery, and_, case, func, or_, select, union_all
from sqlalchemy.orm import Session

from tis.marketplace.columns import LocalDay, now
from tis.marketplace.kit.opening_hours import UTC_OFFSET_HOURS, local_time
from tis.marketplace.kit.principal import Principal
from tis.marketplace.products.service import supplier_for_member
from tis.marketplace.suppliers.number_views import (
    BestProduct,
    DayNumbers,
    NearlyOut,
    PeriodNumbers,
    ReviewNumbers,
    ShopNumbers,
)
from tis.marketplace.suppliers.schemas import time_zone_of
from tis.marketplace.tables import OrderLine, Product, Reservation, Review, StockMovement

_MAX_GOODS = 5
_FEW_UNITS = 3


@dataclass(frozen=True)
class _Period:
    """Whole days of the shop; `hours` that its zone is ahead of UTC."""

    supplier_id: int
    first_day: date
    num_days: int
    hours: int

    @property
    def days(self) -> Iterator[date]:
        return (self.first_day + timedelta(days=number) for number in range(self.num_days))

    @property
    def previous(self) -> "_Period":
        return _Period(self.supplier_id, self.first_day - timedelta(days=self.num_days), self.num_days, self.hours)

    def covers(self, moment: Any) -> ColumnElement[bool]:
        zone = timezone(timedelta(hours=self.hours))
        begin = datetime.combine(self.first_day, time(), zone).astimezone(UTC)
        return and_(moment >= begin, moment < begin + timedelta(days=self.num_days))


def numbers_of(session: Session, principal: Principal, supplier_id: int, weeks: int) -> ShopNumbers:
    """The last weeks, today included, and the sums of as many weeks before."""
    zone = time_zone_of(supplier_for_member(session, principal, supplier_id))
    num_days, today = 7 * weeks, local_time(now(), zone).date()
    period = _Period(supplier_id, today - timedelta(days=num_days - 1), num_days, UTC_OFFSET_HOURS[zone])
    days, before = _by_day(session, period), _by_day(session, period.previous)
    return ShopNumbers(
        time_zone=zone,
        first_day=period.first_day,
        last_day=today,
        days=days,
        totals=_sum(days),
        previous=_sum(before),
        best_goods=_best_goods(session, period),
        nearly_out=_nearly_out(session, period),
        reviews=_reviews(session, period),
    )


def _by_day(session: Session, period: _Period) -> list[DayNumbers]:
    found: dict[date, dict[str, int]] = {day: {} for day in period.days}
    for rows in (_sales(session, period), _holds(session, period)):
        for row in rows:
            values = dict(row)
            found[values.pop("day")] |= {name: int(value or 0) for name, value in values.items()}
    return [DayNumbers(day=day, **values) for day, values in found.items()]


def _sales(session: Session, period: _Period) -> Iterator[Mapping[str, Any]]:
    """On the day of the sale."""
    sold = _sold(period)
    day = LocalDay(sold.c.at, period.hours).label("day")
    columns = (
        func.count().label("sales"),
        func.sum(sold.c.units).label("sold_units"),
        func.sum(sold.c.rupiah).label("sold_rupiah"),
    )
    rows = select(day, *columns).select_from(sold).group_by(day)
    yield from map(dict, session.execute(rows).mappings())


def _holds(session: Session, period: _Period) -> Iterator[Mapping[str, Any]]:
    """On the day that a hold began, with what became of it since."""
    day = LocalDay(Reservation.created_at, period.hours).label("day")
    is_due = and_(Reservation.status == "held", Reservation.expires_at <= now())
    columns = (
        func.count().label("holds"),
        func.sum(Reservation.quantity).label("held_units"),
        func.sum(_rupiah()).label("held_rupiah"),
        _count_if(Reservation.accepted_at.is_not(None)).label("accepted"),
        _count_if(Reservation.status == "refused").label("refused"),
        _count_if(Reservation.status == "released").label("released"),
        _count_if(or_(Reservation.status == "expired", is_due)).label("expired"),
    )
    own = Reservation.supplier_id == period.supplier_id, period.covers(Reservation.created_at)
    yield from map(dict, session.execute(select(day, *columns).where(*own).group_by(day)).mappings())


def _best_goods(session: Session, period: _Period) -> list[BestProduct]:
    sold = _sold(period)
    units, rupiah = func.sum(sold.c.units).label("units"), func.sum(sold.c.rupiah).label("rupiah")
    by_product = select(sold.c.product_id, units, rupiah).group_by(sold.c.product_id)
    best = by_product.order_by(units.desc(), rupiah.desc(), sold.c.product_id).limit(_MAX_GOODS).subquery()
    rows = select(best.c.product_id, Product.name, best.c.units, best.c.rupiah)
    rows = rows.join(Product, Product.id == best.c.product_id)
    ordered = rows.order_by(best.c.units.desc(), best.c.rupiah.desc(), best.c.product_id)
    return [BestProduct(**row) for row in session.execute(ordered).mappings()]


def _nearly_out(session: Session, period: _Period) -> list[NearlyOut]:
    """Of what was sold: goods of which few are left, or fewer than are sold in a week."""
    rows_sold = _sold(period)
    units = func.sum(rows_sold.c.units).label("units")
    sold = select(rows_sold.c.product_id, units).group_by(rows_sold.c.product_id).subquery()
    left = Product.on_hand - Product.reserved
    is_low = or_(left <= _FEW_UNITS, left * period.num_days <= sold.c.units * 7)
    columns = Product.id.label("product_id"), Product.name, left.label("available_quantity")
    rows = (
        select(*columns, sold.c.units.label("sold_units"))
        .join(sold, sold.c.product_id == Product.id)
        .where(is_low, Product.deleted_at.is_(None), Product.is_available)
        .order_by(left, sold.c.units.desc(), Product.id)
        .limit(_MAX_GOODS)
    )
    return [NearlyOut(**row) for row in session.execute(rows).mappings()]


def _reviews(session: Session, period: _Period) -> ReviewNumbers:
    of_shop = Review.supplier_id == period.supplier_id
    counted = select(func.count().label("number"), func.avg(Review.rating).label("mean"))
    in_period = counted.where(of_shop, Review.status == "published", period.covers(Review.created_at))
    found = session.execute(in_period).one()
    waiting = select(Review.id).where(of_shop, Review.status == "published", Review.answer.is_(None)).limit(1001)
    unanswered = session.scalar(select(func.count()).select_from(waiting.subquery())) or 0
    mean = None if found.mean is None else round(float(found.mean), 2)
    return ReviewNumbers(number=found.number, mean_rating=mean, unanswered=unanswered)


def _sold(period: _Period) -> Subquery:
    """Holds that were sold, and lines of orders, when they were handed over or sent."""
    holds = select(
        Reservation.product_id,
        Reservation.quantity.label("units"),
        _rupiah().label("rupiah"),
        Reservation.ended_at.label("at"),
    ).where(
        Reservation.supplier_id == period.supplier_id,
        Reservation.status == "committed",
        period.covers(Reservation.ended_at),
    )
    units = -StockMovement.delta
    lines = (
        select(StockMovement.product_id, units, units * OrderLine.unit_price, StockMovement.at)
        .join(OrderLine, OrderLine.reservation_id == StockMovement.reservation_id)
        .where(
            StockMovement.supplier_id == period.supplier_id,
            StockMovement.kind == "sold",
            period.covers(StockMovement.at),
        )
    )
    return union_all(holds, lines).subquery("sold")


def _rupiah() -> ColumnElement[int]:
    return Reservation.unit_price * Reservation.quantity


def _count_if(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.sum(case((condition, 1), else_=0))


def _sum(days: list[DayNumbers]) -> PeriodNumbers:
    return PeriodNumbers(**{name: sum(getattr(day, name) for day in days) for name in PeriodNumbers.model_fields})
