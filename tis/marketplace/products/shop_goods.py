"""The goods of one shop as its members see them: all that are not deleted, on sale or not, in any of several orders."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Select, func, literal, or_, select, tuple_
from sqlalchemy.orm import Session

from tis.marketplace.kit.fields import key_of
from tis.marketplace.kit.paging import MAX_COUNTED
from tis.marketplace.kit.principal import Principal
from tis.marketplace.products.service import WITH_SUPPLIER, supplier_for_member
from tis.marketplace.tables import Product

GoodsOrder = Literal["newest", "updated", "name", "price_asc", "price_desc", "stock_asc", "stock_desc"]
# The column, and whether the greatest comes first. The id decides between equal ones, so every order is total.
_ORDERS: dict[GoodsOrder, tuple[Any, bool]] = {
    "newest": (Product.id, True),
    "updated": (Product.updated_at, True),
    "name": (Product.name, False),
    "price_asc": (Product.price, False),
    "price_desc": (Product.price, True),
    "stock_asc": (Product.on_hand, False),
    "stock_desc": (Product.on_hand, True),
}


@dataclass(frozen=True)
class GoodsQuery:
    words: str | None = None  # each is a part of the name, the SKU or the brand
    category: str | None = None
    condition: str | None = None
    is_available: bool | None = None
    max_stock: int | None = None  # units on hand
    order: GoodsOrder = "newest"


def list_goods(
    session: Session, principal: Principal, supplier_id: int, query: GoodsQuery, after: bytes | None, limit: int
) -> tuple[Sequence[Product], int]:
    """And how many there are, up to `MAX_COUNTED + 1`. `after` is the `position_of` the last product before."""
    supplier_for_member(session, principal, supplier_id)
    found = _found(supplier_id, query)
    counted = found.with_only_columns(Product.id).limit(MAX_COUNTED + 1).subquery()
    total = session.scalar(select(func.count()).select_from(counted)) or 0
    column, is_descending = _ORDERS[query.order]
    keys = [column] if column is Product.id else [column, Product.id]
    if after is not None:
        values = [literal(value, key.type) for key, value in zip(keys, _values(query.order, after), strict=True)]
        here, last = tuple_(*keys), tuple_(*values)
        found = found.where(here < last if is_descending else here > last)
    ordered = found.order_by(*(key.desc() if is_descending else key for key in keys))
    return session.scalars(ordered.limit(limit).options(WITH_SUPPLIER)).all(), total


def position_of(product: Product, order: GoodsOrder) -> bytes:
    column, _ = _ORDERS[order]
    value = getattr(product, column.key)
    return json.dumps([value.isoformat() if isinstance(value, datetime) else value, product.id]).encode()


def _values(order: GoodsOrder, position: bytes) -> list[Any]:
    value, product_id = json.loads(position)
    if order == "newest":
        return [product_id]
    return [datetime.fromisoformat(value) if order == "updated" else value, product_id]


def _found(supplier_id: int, query: GoodsQuery) -> Select[Product]:
    goods = select(Product).where(Product.supplier_id == supplier_id, Product.deleted_at.is_(None))
    for word in (query.words or "").casefold().split():
        texts = (Product.name, Product.sku, Product.brand)
        goods = goods.where(or_(*(func.lower(text).contains(word, autoescape=True) for text in texts)))
    if query.category is not None:
        goods = goods.where(Product.category_key == key_of(query.category))
    if query.condition is not None:
        goods = goods.where(Product.condition == query.condition)
    if query.is_available is not None:
        goods = goods.where(Product.is_available.is_(query.is_available))
    if query.max_stock is not None:
        goods = goods.where(Product.on_hand <= query.max_stock)
    return goods
