"""Price history and stock movements for seeded products, as if they had been entered one by one."""

from sqlalchemy import func, insert, literal, select
from sqlalchemy.orm import Session

from tis.marketplace.tables import PriceChange, Product, StockMovement, Supplier


def max_supplier_id(session: Session) -> int:
    return session.scalar(select(func.max(Supplier.id))) or 0


def write_history(session: Session, after_supplier_id: int) -> None:
    """For all products of suppliers with a greater id.

    Selected by supplier, because these suppliers are not committed yet and so have no products of other transactions.
    """
    new = Product.supplier_id > after_supplier_id
    prices = select(Product.id, Product.price, Product.created_at).where(new)
    stocks = select(Product.id, Product.supplier_id, Product.on_hand, literal("initial"), Product.created_at).where(
        new, Product.on_hand > 0
    )
    session.execute(insert(PriceChange).from_select(["product_id", "price", "valid_from"], prices))
    session.execute(insert(StockMovement).from_select(["product_id", "supplier_id", "delta", "kind", "at"], stocks))
