"""The answer for one product: its view, its lowest recent price, and its distance and delivery advice for a buyer."""

from datetime import datetime
from typing import Annotated

from fastapi import Depends, Header
from pydantic import BaseModel
from sqlalchemy.orm import Session

from tis.marketplace.columns import now
from tis.marketplace.kit.geo import Point, kilometres_between, shown_distance
from tis.marketplace.products.delivery import Language, advise, is_there_today, language_of
from tis.marketplace.products.prices import lowest_price_before
from tis.marketplace.products.schemas import ProductView, product_view
from tis.marketplace.tables import Product


class ProductDetail(ProductView):
    lowest_price_30d: int | None = None


class PriceView(BaseModel):
    price: int
    valid_from: datetime


def detail_of(
    session: Session, product: Product, origin: Point | None = None, language: Language = "id"
) -> ProductDetail:
    view = view_from(product, origin, language)
    return ProductDetail(**dict(view), lowest_price_30d=lowest_price_before(session, product.id))


def view_from(product: Product, origin: Point | None, language: Language) -> ProductView:
    if origin is None:
        return product_view(product)
    supplier = product.supplier
    exact = kilometres_between(origin, Point(supplier.public_latitude, supplier.public_longitude))
    distance = shown_distance(exact, shows_place=supplier.shows_place)
    advice = advise(distance, supplier, language, today=is_there_today(product, now()))
    return product_view(product, distance, advice)


async def _language(accept_language: Annotated[str | None, Header(max_length=1000)] = None) -> Language:
    return language_of(accept_language)


LanguageDep = Annotated[Language, Depends(_language)]
