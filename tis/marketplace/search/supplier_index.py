"""Updates the search index in the transaction that moves, closes or opens a supplier: one statement per table.

It reads and locks no product, so buyers and other suppliers go on. Reasons:
`docs/decisions/0014-transactions.md`.
"""

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from tis.marketplace.search.backends.text_index import TextIndex
from tis.marketplace.search.geo_filter import cell_token_at
from tis.marketplace.search.sql import run
from tis.marketplace.search.supplier_words import supplier_tokens, words_of_shop
from tis.marketplace.tables import Supplier

_ANY_ENTRY = (
    "SELECT latitude, longitude, city_key, sellable, product_id FROM product_search"
    " WHERE supplier_id = :supplier_id LIMIT 1"
)


def index_supplier(session: Session, index: TextIndex, supplier_id: int) -> None:
    """The caller has locked the row of the supplier, so all entries of its products agree about it."""
    session.flush()
    supplier = session.execute(
        select(
            Supplier.public_latitude,
            Supplier.public_longitude,
            Supplier.city_key,
            Supplier.status,
            Supplier.deleted_at,
            Supplier.business_name,
            Supplier.city,
            Supplier.province,
        ).where(Supplier.id == supplier_id)
    ).one()
    is_open = supplier.status == "active" and supplier.deleted_at is None
    entries = run(session, _ANY_ENTRY, {"supplier_id": supplier_id})
    if not entries:
        return
    [(latitude, longitude, city_key, sellable, product_id)] = entries
    place = supplier.public_latitude, supplier.public_longitude
    changes: dict[str, str] = {}
    # Only what changed: a database rewrites the indexes of every column that is named.
    if (latitude, longitude) != place:
        changes |= {"latitude": ":latitude", "longitude": ":longitude"}
    if city_key != supplier.city_key:
        changes["city_key"] = ":city_key"
    if is_open != (sellable >= 0):
        # Relative: a change of stock at the same time is not lost.
        changes["sellable"] = "sellable + 2" if is_open else "sellable - 2"
    values = {"latitude": place[0], "longitude": place[1], "city_key": supplier.city_key, "supplier_id": supplier_id}
    if changes:
        _update_entries(session, changes, values)
    words = words_of_shop(supplier.business_name, supplier.city, supplier.province)
    tokens = supplier_tokens(cell_token_at(*place), words)
    if index.shop_tokens(session, [product_id]).get(product_id, set()) != set(tokens.split()):
        if not changes:
            _lock_entries(session, supplier_id)
        index.move(session, supplier_id, tokens)


def _lock_entries(session: Session, supplier_id: int) -> None:
    """Or a change of a product at the same time would write the old words of the shop after this transaction."""
    if session.get_bind().dialect.name != "sqlite":
        sql = "SELECT product_id FROM product_search WHERE supplier_id = :supplier_id ORDER BY product_id FOR UPDATE"
        run(session, sql, {"supplier_id": supplier_id})


def _update_entries(session: Session, changes: dict[str, str], values: dict[str, Any]) -> None:
    """Locks the rows in the order of their ids, as `index_products` does."""
    assigned = ", ".join(f"{column} = {value}" for column, value in changes.items())
    used = {name: value for name, value in values.items() if name in changes or name == "supplier_id"}
    dialect = session.get_bind().dialect.name
    if dialect == "postgresql":
        sql = (
            "WITH locked AS MATERIALIZED (SELECT product_id FROM product_search WHERE supplier_id = :supplier_id"
            f" ORDER BY product_id FOR UPDATE) UPDATE product_search f SET {assigned} FROM locked"
            " WHERE f.product_id = locked.product_id"
        )
    else:
        order = "" if dialect == "sqlite" else " ORDER BY product_id"
        sql = f"UPDATE product_search SET {assigned} WHERE supplier_id = :supplier_id{order}"
    run(session, sql, used)
