"""Loads the products of a page. It bypasses the ORM, whose identity map would take longer than the search."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, cast

from sqlalchemy.orm import Session

from tis.marketplace.kit.picture_links import PictureView, picture_view
from tis.marketplace.kit.promoted_prices import ShownPromotion, shown_promotion
from tis.marketplace.kit.ratings import COUNTERS
from tis.marketplace.search.sql import id_list, run


class SupplierRow(NamedTuple):
    business_name: str
    city: str
    pickup_enabled: bool
    courier_enabled: bool
    delivery_radius_km: float | None
    shows_place: bool
    opening_hours: dict[str, Any] | None
    time_zone: str | None
    public_longitude: float
    is_verified: bool


class _Columns(NamedTuple):
    """A row as the driver returns it. The type of `raw_…` depends on the database."""

    id: int
    supplier_id: int
    name: str
    description: str | None
    brand: str | None
    price: int
    normal_price: int | None
    on_hand: int
    reserved: int
    category: str
    tags: str | None
    sku: str | None
    condition: Literal["new", "used"]
    rating_sum: int
    rating_count: int
    verified_sum: int
    verified_count: int
    granted_rating: float | None
    version: int
    raw_is_available: Any
    raw_attributes: Any
    raw_created_at: Any
    raw_updated_at: Any
    raw_deleted_at: Any
    shop_business_name: str
    shop_city: str
    shop_public_latitude: float
    shop_public_longitude: float
    shop_pickup_enabled: Any
    shop_courier_enabled: Any
    shop_delivery_radius_km: float | None
    shop_shows_place: Any
    shop_opening_hours: Any
    shop_time_zone: str | None
    shop_verified_at: Any
    cover_hash: str | None
    cover_width: int | None
    cover_height: int | None
    cover_alt: str | None
    group_id: int | None
    promotion_id: int | None
    promotion_lowest: int | None
    promotion_begins: Any
    promotion_ends: Any


class ProductRow(_Columns):
    """Has the columns of a `Product` and its supplier. Times and attributes are parsed on access.

    The counters of reviews are those of the group, if it is a variant.
    """

    __slots__ = ()

    @property
    def is_available(self) -> bool:
        return bool(self.raw_is_available)

    @property
    def attributes(self) -> dict[str, Any]:
        return cast(dict[str, Any], parse_json(self.raw_attributes))

    @property
    def created_at(self) -> datetime:
        return _parse_time(self.raw_created_at)

    @property
    def updated_at(self) -> datetime:
        return _parse_time(self.raw_updated_at)

    @property
    def deleted_at(self) -> datetime | None:
        return None if self.raw_deleted_at is None else _parse_time(self.raw_deleted_at)

    @property
    def cover(self) -> PictureView | None:
        """Its first picture."""
        if self.cover_hash is None:
            return None
        return picture_view(self.cover_hash, self.cover_width or 0, self.cover_height or 0, self.cover_alt)

    @property
    def promotion(self) -> ShownPromotion | None:
        """Whose price it has."""
        if self.promotion_id is None or self.normal_price is None:
            return None
        period = _parse_time(self.promotion_begins), _parse_time(self.promotion_ends)
        return shown_promotion(self.promotion_id, self.price, self.normal_price, self.promotion_lowest, *period)

    @property
    def supplier(self) -> SupplierRow:
        return SupplierRow(
            self.shop_business_name,
            self.shop_city,
            bool(self.shop_pickup_enabled),
            bool(self.shop_courier_enabled),
            self.shop_delivery_radius_km,
            bool(self.shop_shows_place),
            parse_json(self.shop_opening_hours),
            self.shop_time_zone,
            self.shop_public_longitude,
            self.shop_verified_at is not None,
        )


def _column(field: str) -> str:
    """`shop_…` are columns of the supplier, `cover_…` of the first picture, `promotion_…` of the one in force."""
    if field in _OTHER_COLUMNS:
        return _OTHER_COLUMNS[field]
    if field in COUNTERS:
        return f"COALESCE(g.{field}, p.{field})"
    return f"s.{field.removeprefix('shop_')}" if field.startswith("shop_") else f"p.{field.removeprefix('raw_')}"


_OTHER_COLUMNS = {
    "cover_hash": "i.hash",
    "cover_width": "i.width",
    "cover_height": "i.height",
    "cover_alt": "CASE WHEN l.alt_status = 'confirmed' THEN l.alt END",
    "promotion_id": "m.id",
    "promotion_lowest": "m.lowest_before",
    "promotion_begins": "m.begins_at",
    "promotion_ends": "m.ends_at",
}
_SQL = (
    f"SELECT {', '.join(_column(field) for field in _Columns._fields)}"
    " FROM products p JOIN suppliers s ON s.id = p.supplier_id"
    " LEFT JOIN product_groups g ON g.id = p.group_id"
    " LEFT JOIN product_pictures l ON l.product_id = p.id AND l.position = 0"
    " LEFT JOIN pictures i ON i.hash = l.hash"
    " LEFT JOIN promotions m ON m.product_id = p.id AND m.state = 'running'"
    " WHERE p.id "
)


def load_products(session: Session, product_ids: Sequence[int]) -> list[ProductRow]:
    """In the order of the ids; products that do not exist are left out."""
    if not product_ids:
        return []
    dialect = session.connection().dialect.name
    # The same statement for any number of ids, so that the driver prepares it once.
    if dialect == "sqlite":
        rows = run(session, _SQL + "IN (SELECT value FROM json_each(:ids))", {"ids": json.dumps(list(product_ids))})
    elif dialect == "postgresql":
        rows = run(session, _SQL + "= ANY(:ids)", {"ids": list(product_ids)})
    else:
        rows = run(session, f"{_SQL}IN {id_list(product_ids)}")
    products = {product.id: product for product in map(ProductRow._make, rows)}
    return [products[product_id] for product_id in product_ids if product_id in products]


def parse_json(value: Any) -> Any:
    """PostgreSQL returns what it means."""
    return json.loads(value) if isinstance(value, str) else value


def _parse_time(value: Any) -> datetime:
    """SQLite returns text."""
    return datetime.fromisoformat(value) if isinstance(value, str) else cast(datetime, value).astimezone(UTC)
