"""Every change of what a supplier has on its shelves: `on_hand` is the sum of these lines."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from server.errors import NotFound
from server.marketplace.caller import Caller
from server.marketplace.policy import require_supplier
from server.marketplace.tables import Product, StockMovement, Supplier


def list_movements(
    session: Session, caller: Caller, supplier_id: int, product_id: int | None, before: int | None, limit: int
) -> list[StockMovement]:
    """The newest first."""
    require_supplier(caller, supplier_id)
    if session.get(Supplier, supplier_id) is None:
        raise NotFound("Supplier not found")
    lines = (
        select(StockMovement)
        .join(Product, Product.id == StockMovement.product_id)
        .where(Product.supplier_id == supplier_id)
        .order_by(StockMovement.id.desc())
        .limit(limit)
    )
    if product_id is not None:
        lines = lines.where(StockMovement.product_id == product_id)
    if before is not None:
        lines = lines.where(StockMovement.id < before)
    return list(session.scalars(lines))
