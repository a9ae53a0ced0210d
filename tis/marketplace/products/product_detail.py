"""The answer for one product: its view, its lowest recent price, and its distance and delivery advice for a buyer."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated

from fastapi import Depends, Header
from pydantic import BaseModel, Field
from sqlalchemy import select
from sqlalchemy.orm import Session

from tis.marketplace.columns import now
from tis.marketplace.kit.geo import Point, kilometres_between, shown_distance
from tis.marketplace.kit.picture_links import PictureView, pictures_of
from tis.marketplace.kit.promoted_prices import CurrentPrice, current_prices, lowest_price_of
from tis.marketplace.products.delivery import Language, advise, is_there_today, language_of
from tis.marketplace.products.place_views import PlaceOfGoods, places_with_goods
from tis.marketplace.products.schemas import ProductView, product_view
from tis.marketplace.products.variant_views import GroupView, group_view
from tis.marketplace.search.goods_places import nearest_places
from tis.marketplace.search.query import NearestPlace
from tis.marketplace.tables import PriceChange, Product


class ProductDetail(ProductView):
    pictures: list[PictureView] = Field(default=[], description="in the order of the seller, at most eight")
    lowest_price_30d: int | None = None
    group: GroupView | None = Field(None, description="of a variant: all variants, from which a buyer chooses")
    places: list[PlaceOfGoods] | None = Field(None, description="if the shop has it at several: the nearest first")


class PriceView(BaseModel):
    price: int
    valid_from: datetime


def detail_of(
    session: Session, product: Product, origin: Point | None = None, language: Language = "id"
) -> ProductDetail:
    pictures = pictures_of(session, [product.id])
    current = current_prices(session, [product])
    nearest = nearest_places(session, [product.id], origin) if origin else {}
    view = view_from(product, origin, language, pictures, current, nearest)
    promotion = view.promotion
    lowest = promotion.lowest_price_30d if promotion else lowest_price_before(session, product.id)
    group = None if product.group is None else group_view(session, product.group)
    return ProductDetail(
        **dict(view),
        pictures=list(pictures[product.id]),
        lowest_price_30d=lowest,
        group=group,
        places=places_with_goods(session, product, origin),
    )


def view_from(
    product: Product,
    origin: Point | None,
    language: Language,
    pictures: Mapping[int, Sequence[PictureView]],
    prices: Mapping[int, CurrentPrice],
    nearest: Mapping[int, NearestPlace],
) -> ProductView:
    picture, current = next(iter(pictures[product.id]), None), prices[product.id]
    if origin is None:
        return product_view(product, picture=picture, current=current)
    supplier, place = product.supplier, nearest.get(product.id)
    shop = Point(supplier.public_latitude, supplier.public_longitude)
    exact = place.distance_km if place else kilometres_between(origin, shop)
    branch = place if place and place.branch_id else None
    distance = shown_distance(exact, shows_place=(branch or supplier).shows_place)
    advice = advise(distance, supplier, language, today=is_there_today(product, now(), branch))
    return product_view(product, distance, advice, picture, current=current, place=place)


async def _language(accept_language: Annotated[str | None, Header(max_length=1000)] = None) -> Language:
    return language_of(accept_language)


LanguageDep = Annotated[Language, Depends(_language)]


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
    return lowest_price_of(session, product_id, current.valid_from, before_id=current.id)
