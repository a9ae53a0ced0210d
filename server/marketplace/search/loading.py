"""Products as they are shown, read without the identity map, which would cost more than the search."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, cast

from sqlalchemy.orm import Session

from server.marketplace.search.statements import ids_in, run


@dataclass(frozen=True, slots=True)
class FoundSupplier:
    business_name: str
    city: str
    latitude: float
    longitude: float
    pickup_enabled: bool
    courier_enabled: bool
    delivery_radius_km: float | None


@dataclass(frozen=True, slots=True)
class FoundProduct:
    id: int
    supplier_id: int
    name: str
    description: str | None
    brand: str | None
    price: int
    on_hand: int
    reserved: int
    category: str
    tags: str | None
    sku: str | None
    condition: Literal["new", "used"]
    attributes: dict[str, Any]
    is_available: bool
    rating_sum: int
    rating_count: int
    granted_rating: float | None
    version: int
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None
    supplier: FoundSupplier


_PRODUCT = list(FoundProduct.__slots__)[:-1]
_SUPPLIER = list(FoundSupplier.__slots__)
_SQL = (
    "SELECT " + ", ".join([f"p.{name}" for name in _PRODUCT] + [f"s.{name}" for name in _SUPPLIER])
    + " FROM products p JOIN suppliers s ON s.id = p.supplier_id WHERE p.id IN "
)  # fmt: skip
_AT = {name: number for number, name in enumerate(_PRODUCT)}


def load_products(session: Session, product_ids: Sequence[int]) -> list[FoundProduct]:
    """In the order of the ids."""
    if not product_ids:
        return []
    if session.connection().dialect.name == "sqlite":
        # One statement for any number of ids stays prepared.
        rows = run(session, _SQL + "(SELECT value FROM json_each(:ids))", {"ids": json.dumps(list(product_ids))})
    else:
        rows = run(session, _SQL + ids_in(product_ids))
    found = {row[0]: _product(list(row)) for row in rows}
    return [found[product_id] for product_id in product_ids if product_id in found]


def _product(row: list[Any]) -> FoundProduct:
    row[_AT["attributes"]] = _json(row[_AT["attributes"]])
    for name in ("created_at", "updated_at", "deleted_at"):
        row[_AT[name]] = _moment(row[_AT[name]])
    row[_AT["is_available"]] = bool(row[_AT["is_available"]])
    *shop, pickup, courier, radius = row[len(_PRODUCT) :]
    supplier = FoundSupplier(*shop, bool(pickup), bool(courier), radius)
    return FoundProduct(**dict(zip(_PRODUCT, row, strict=False)), supplier=supplier)


def _json(value: Any) -> dict[str, Any]:
    return cast(dict[str, Any], json.loads(value) if isinstance(value, str) else value)


def _moment(value: Any) -> datetime | None:
    """Text where the database has no type for it."""
    if isinstance(value, str):
        return datetime.fromisoformat(value)
    return None if value is None else value.astimezone(UTC)
