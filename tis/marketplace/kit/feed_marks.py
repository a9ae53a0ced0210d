"""Which products a transaction changed, for the readers of the feed. Written at its end, in the order of the ids: rows
that are locked earlier could deadlock."""

from collections.abc import Iterable

from sqlalchemy import text
from sqlalchemy.orm import Session

_PRODUCTS, _SUPPLIERS = "products of the feed", "suppliers of the feed"  # in `info` of the session
_BATCH_SIZE = 500
_MARK = "INSERT INTO feed_changes (product_id, number, is_pending)"


def mark_products(session: Session, product_ids: Iterable[int]) -> None:
    session.info.setdefault(_PRODUCTS, set()).update(product_ids)


def mark_supplier(session: Session, supplier_id: int) -> None:
    """All its products that are not deleted."""
    session.info.setdefault(_SUPPLIERS, set()).add(supplier_id)


def store_marks(session: Session) -> None:
    """Before the notices, whose counters are locked last."""
    products: set[int] = session.info.pop(_PRODUCTS, set())
    suppliers: set[int] = session.info.pop(_SUPPLIERS, set())
    if not products and not suppliers:
        return
    session.flush()
    if session.get_bind().dialect.name == "mysql":
        tail = "ON DUPLICATE KEY UPDATE is_pending = true"
    else:
        tail = "ON CONFLICT (product_id) DO UPDATE SET is_pending = true"
    ids = sorted(products)
    for start in range(0, len(ids), _BATCH_SIZE):
        rows = ", ".join(f"({one:d}, 0, true)" for one in ids[start : start + _BATCH_SIZE])
        session.execute(text(f"{_MARK} VALUES {rows} {tail}"))
    for supplier_id in sorted(suppliers):
        found = "SELECT product_id, 0, true FROM product_search WHERE supplier_id = :supplier_id ORDER BY product_id"
        session.execute(text(f"{_MARK} {found} {tail}"), {"supplier_id": supplier_id})
