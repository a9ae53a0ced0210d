"""What goods that came in by the thousand have in common with those that were entered one by one: a past."""

from sqlalchemy import func, insert, literal, select
from sqlalchemy.orm import Session

from server.marketplace.tables import PriceChange, Product, StockMovement


def last_product(session: Session) -> int:
    return session.scalar(select(func.max(Product.id))) or 0


def write_ledgers(session: Session, after: int) -> None:
    """For the products behind this id: every price has a history, and every stock is the sum of its movements."""
    new = Product.id > after
    prices = select(Product.id, Product.price, Product.created_at).where(new)
    stocks = select(Product.id, Product.on_hand, literal("initial"), Product.created_at).where(new, Product.on_hand > 0)
    session.execute(insert(PriceChange).from_select(["product_id", "price", "valid_from"], prices))
    session.execute(insert(StockMovement).from_select(["product_id", "delta", "kind", "at"], stocks))
