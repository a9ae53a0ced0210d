"""Every write to products goes through `write_products`, one product or a whole sheet.

It writes the rows, the price history, the stock movements and the audit log in bulk, then updates the search index,
all in the caller's transaction. The caller has locked the rows and checked the values. Reservations and reviews change
counters of a product elsewhere and leave its version alone.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, insert, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session
from sqlalchemy.orm.attributes import set_committed_value

from tis.errors import Conflict, ServiceError
from tis.marketplace.columns import now
from tis.marketplace.kit.fields import key_of
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.promoted_prices import normal_price_of
from tis.marketplace.kit.ratings import rating_rank_of, weighted_stars
from tis.marketplace.kit.suspicious_texts import instruction_like
from tis.marketplace.products.product_write import ProductWrite
from tis.marketplace.products.variant_keys import VARIANT_TAKEN, free_keys, move_to_groups, with_variant_keys
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.tables import AuditEntry, PriceChange, Product, StockMovement

_MAX_AUDITED_CHARS = 500
# API field -> column, where they have different names.
COLUMN_OF_FIELD = {"stock_quantity": "on_hand", "rating": "granted_rating"}
_FIELD_OF_COLUMN = {column: field for field, column in COLUMN_OF_FIELD.items()}
# What admins are told of, if it reads like an instruction to a model. A `Row` that is written has these columns.
TEXT_COLUMNS = ("name", "description", "brand", "category", "tags", "sku", "attributes")
_NOT_AUDITED = ("category_key", "deleted_at", "variant_key")


@dataclass(frozen=True)
class _Written:
    write: ProductWrite
    before: Mapping[str, Any]

    @property
    def product_id(self) -> int:
        return int(self.write.product.id)


def write_products(
    session: Session,
    search: ProductSearch,
    principal: Principal,
    writes: Sequence[ProductWrite],
    *,
    sku_taken: ServiceError,
    from_sheet: bool = False,
    also_changed: Collection[int] = (),
) -> None:
    """Raises `sku_taken` if the database finds one of the SKUs in use: only it can decide between two transactions.

    `also_changed`: products of which a promotion has just begun or ended.
    """
    if not writes:
        search.refresh(session, also_changed)
        return
    moment = now()
    writes = with_variant_keys(session, writes)
    before = [_values_before(write) for write in writes]
    try:
        free_keys(session, writes)
        _insert_products(session, [write for write in writes if write.action == "create"])
        _update_products(session, [write for write in writes if write.action != "create"], moment)
    except IntegrityError as error:
        if "sku" in str(error.orig):
            raise sku_taken from error
        if "variant_key" in str(error.orig):
            raise Conflict(VARIANT_TAKEN, code="variant_taken") from error
        raise
    written = [_Written(write, values) for write, values in zip(writes, before, strict=True)]
    _insert(session, PriceChange, _price_changes(written, principal, moment))
    _insert(session, StockMovement, _stock_movements(written, principal, from_sheet=from_sheet))
    _insert(session, AuditEntry, _audit_entries(written, principal))
    moves = {
        one.product_id: (one.before.get("group_id"), one.write.values["group_id"])
        for one in written
        if "group_id" in one.write.values
    }
    refreshed = [*also_changed, *(one.product_id for one in written)]
    search.refresh(session, refreshed, move_to_groups(session, moves))


def value_of(product: Product | Row[Any], column: str) -> Any:
    """As the shop has set it: the `price` is the normal one, also while a promotion is in force."""
    return normal_price_of(product) if column == "price" else getattr(product, column)


def undercut_by(product: Product | Row[Any], values: Mapping[str, Any]) -> str | None:
    """Why these values cannot be written: a promotion would not be lower any more."""
    if product.normal_price is None or "price" not in values or values["price"] > product.price:
        return None
    return f"must be more than {product.price}, the price of the promotion that is in force: end it first"


def is_same_value(one: Any, other: Any) -> bool:
    """Attributes are compared as JSON, because 1 and true are equal in Python."""
    if isinstance(one, dict) or isinstance(other, dict):
        return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    return bool(one == other)


def _values_before(write: ProductWrite) -> dict[str, Any]:
    return {} if write.action == "create" else {name: value_of(write.product, name) for name in write.values}


def _insert_products(session: Session, writes: Sequence[ProductWrite]) -> None:
    for write in writes:
        for name, value in _with_derived_columns(write.values, (0, 0), write.product).items():
            setattr(write.product, name, value)
    session.add_all([write.product for write in writes])
    session.flush()


def _update_products(session: Session, writes: Sequence[ProductWrite], moment: datetime) -> None:
    """Updates in bulk, which is faster than a flush, and then sets the same values in loaded objects."""
    rows = []
    for write in writes:
        product = write.product
        stars_and_weight = (0, 0) if "granted_rating" not in write.values else weighted_stars(product)
        columns = _with_derived_columns(write.values, stars_and_weight, product)
        rows.append({"id": product.id, **columns, "version": product.version + 1, "updated_at": moment})
    if rows:
        session.execute(update(Product), rows)
    for write, row in zip(writes, rows, strict=True):
        if isinstance(write.product, Product):
            for name, value in row.items():
                set_committed_value(write.product, name, value)
            if "group_id" in row:
                session.expire(write.product, ["group"])


def _with_derived_columns(
    values: Mapping[str, Any], stars_and_weight: tuple[int, int], product: Product | Row[Any]
) -> dict[str, Any]:
    columns = dict(values)
    if "price" in values and product.normal_price is not None:
        columns["normal_price"] = columns.pop("price")
    if "category" in values:
        columns["category_key"] = key_of(values["category"])
    if "granted_rating" in values:
        columns["rating_rank"] = rating_rank_of(values["granted_rating"], *stars_and_weight)
    if not values.keys().isdisjoint(TEXT_COLUMNS):
        texts = _texts({**_texts_before(product), **values})
        reasons = (instruction_like(text) for text in texts if text)
        columns["flagged_reason"] = next(filter(None, reasons), None)
    return columns


def _texts_before(product: Product | Row[Any]) -> dict[str, Any]:
    return {name: getattr(product, name) for name in TEXT_COLUMNS}


def _texts(values: Mapping[str, Any]) -> Iterator[str | None]:
    yield from (values[name] for name in TEXT_COLUMNS if name != "attributes")
    for name, value in (values["attributes"] or {}).items():
        yield name
        yield value if isinstance(value, str) else None


def _insert(session: Session, table: type[PriceChange | StockMovement | AuditEntry], rows: Iterable[Any]) -> None:
    if batch := list(rows):
        session.execute(insert(table), batch)


def _price_changes(written: Iterable[_Written], principal: Principal, moment: datetime) -> Iterator[dict[str, Any]]:
    for one in written:
        if "price" in one.write.values and one.write.product.normal_price is None:
            price = one.write.values["price"]
            yield {"product_id": one.product_id, "price": price, "valid_from": moment, "actor": principal.account}


def _stock_movements(
    written: Iterable[_Written], principal: Principal, *, from_sheet: bool
) -> Iterator[dict[str, Any]]:
    for one in written:
        if "on_hand" not in one.write.values:
            continue
        kind = "import" if from_sheet else "initial" if one.write.action == "create" else "set"
        delta = one.write.values["on_hand"] - one.before.get("on_hand", 0)
        if delta or kind == "initial":
            yield {
                "product_id": one.product_id,
                "supplier_id": one.write.supplier_id,
                "delta": delta,
                "kind": "correction" if one.write.reason else kind,
                "on_hand": one.write.values["on_hand"],
                "reason": one.write.reason,
                "branch_id": one.write.branch_id,
                "actor": principal.account,
            }


def _audit_entries(written: Iterable[_Written], principal: Principal) -> Iterator[dict[str, Any]]:
    for one in written:
        yield {
            "actor": principal.account,
            "action": one.write.action,
            "entity": "product",
            "entity_id": str(one.product_id),
            "changes": {
                _FIELD_OF_COLUMN.get(name, name): [_shortened(one.before.get(name)), _shortened(value)]
                for name, value in one.write.values.items()
                if name not in _NOT_AUDITED and not is_same_value(one.before.get(name), value)
            },
            "request_id": principal.request_id,
        }


def _shortened(value: Any) -> Any:
    return value[:_MAX_AUDITED_CHARS] if isinstance(value, str) else value
