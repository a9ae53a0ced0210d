"""Products as they are shown, read without the identity map, which would cost more than the search."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, cast

from sqlalchemy.orm import Session

from server.marketplace.search.statements import ids_in, run


class FoundSupplier(NamedTuple):
    business_name: str
    city: str
    latitude: float
    longitude: float
    delivery_radius_km: float | None
    pickup_enabled: bool
    courier_enabled: bool


class FoundProduct(NamedTuple):
    supplier: FoundSupplier
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
    rating_sum: int
    rating_count: int
    granted_rating: float | None
    version: int
    is_available: bool
    attributes: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


_PRODUCT = FoundProduct._fields[1:]
_SUPPLIER = FoundSupplier._fields
_FIRST = len(_SUPPLIER)
_SQL = (
    "SELECT " + ", ".join([f"s.{name}" for name in _SUPPLIER] + [f"p.{name}" for name in _PRODUCT])
    + " FROM products p JOIN suppliers s ON s.id = p.supplier_id WHERE p.id IN "
)  # fmt: skip


def load_products(session: Session, product_ids: Sequence[int]) -> list[FoundProduct]:
    """In the order of the ids."""
    if not product_ids:
        return []
    if session.connection().dialect.name == "sqlite":
        # One statement for any number of ids stays prepared.
        rows = run(session, _SQL + "(SELECT value FROM json_each(:ids))", {"ids": json.dumps(list(product_ids))})
    else:
        rows = run(session, _SQL + ids_in(product_ids))
    found = {row[_FIRST]: _product(row) for row in rows}
    return [found[product_id] for product_id in product_ids if product_id in found]


def _product(row: tuple[Any, ...]) -> FoundProduct:
    name, city, latitude, longitude, radius, pickup, courier = row[:_FIRST]
    *plain, is_available, attributes, created, updated, deleted = row[_FIRST:]
    return FoundProduct(  # type: ignore[call-arg]
        FoundSupplier(name, city, latitude, longitude, radius, bool(pickup), bool(courier)),
        *plain,
        bool(is_available),
        _json(attributes),
        _moment(created),
        _moment(updated),
        None if deleted is None else _moment(deleted),
    )


def _json(value: Any) -> dict[str, Any]:
    if value == "{}":
        return {}
    return cast(dict[str, Any], json.loads(value) if isinstance(value, str) else value)


def _moment(value: Any) -> datetime:
    """Text where the database has no type for it."""
    return datetime.fromisoformat(value) if isinstance(value, str) else cast(datetime, value).astimezone(UTC)
