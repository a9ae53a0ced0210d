"""The answer for one product: its view, its lowest recent price, and its distance and delivery advice for a buyer."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated

from fastapi import Depends, Header
from pydantic import BaseModel, Field
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from tis.marketplace.columns import now
from tis.marketplace.kit.geo import Point, kilometres_between, shown_distance
from tis.marketplace.kit.picture_links import PictureView, pictures_of
from tis.marketplace.products.delivery import Language, advise, is_there_today, language_of
from tis.marketplace.products.schemas import ProductView, product_view
from tis.marketplace.products.variant_views import GroupView, group_view
from tis.marketplace.tables import PriceChange, Product


class ProductDetail(ProductView):
    pictures: list[PictureView] = Field(default=[], description="in the order of the seller, at most eight")
    lowest_price_30d: int | None = None
    group: GroupView | None = Field(None, description="of a variant: all variants, from which a buyer chooses")


class PriceView(BaseModel):
    price: int
    valid_from: datetime


def detail_of(
    session: Session, product: Product, origin: Point | None = None, language: Language = "id"
) -> ProductDetail:
    pictures = pictures_of(session, [product.id])
    view = view_from(product, origin, language, pictures)
    lowest = lowest_price_before(session, product.id)
    group = None if product.group is None else group_view(session, product.group)
    return ProductDetail(**dict(view), pictures=list(pictures[product.id]), lowest_price_30d=lowest, group=group)


def view_from(
    product: Product, origin: Point | None, language: Language, pictures: Mapping[int, Sequence[PictureView]]
) -> ProductView:
    picture = next(iter(pictures[product.id]), None)
    if origin is None:
        return product_view(product, picture=picture)
    supplier = product.supplier
    exact = kilometres_between(origin, Point(supplier.public_latitude, supplier.public_longitude))
    distance = shown_distance(exact, shows_place=supplier.shows_place)
    advice = advise(distance, supplier, language, today=is_there_today(product, now()))
    return product_view(product, distance, advice, picture)


async def _language(accept_language: Annotated[str | None, Header(max_length=1000)] = None) -> Language:
    return language_of(accept_language)


LanguageDep = Annotated[Language, Depends(_language)]


# The EU's Omnibus directive (2019/2161) compares a reduced price with the lowest price of the 30 days before.
_LOOK_BACK = timedelta(days=30)


def price_history(session: Session, product_id: int, before: int | None, limit: int) -> Sequence[PriceChange]:
    """Newest first. By id and not by time: the clocks of several servers differ, the row lock orders the ids."""
    rows = select(PriceChange).where(PriceChange.product_id == product_id)
    if before is not None:
        rows = rows.where(PriceChange.id < before)
    return session.scalars(rows.order_by(PriceChange.id.desc()).limit(limit)).all()


def lowest_price_before(session: Session, product_id: int) -> int | None:
    """The lowest price in force within 30 days before the current one began; None if it is the first."""
    current = next(iter(price_history(session, product_id, None, 1)), None)
    if current is None:
        return None
    start = current.valid_from - _LOOK_BACK
    earlier = PriceChange.product_id == product_id, PriceChange.id < current.id
    began_within = select(func.min(PriceChange.price)).where(*earlier, PriceChange.valid_from > start)
    began_before = (
        select(PriceChange.price)
        .where(*earlier, PriceChange.valid_from <= start)
        .order_by(PriceChange.id.desc())
        .limit(1)
    )
    prices = session.scalar(began_within), session.scalar(began_before)
    return min((price for price in prices if price is not None), default=None)
