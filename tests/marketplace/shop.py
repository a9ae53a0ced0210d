"""A supplier and its products, written directly to the database that a server serves."""

from datetime import timedelta
from itertools import count
from typing import Any

from sqlalchemy import func, select, update

from tis.marketplace.auth.tokens import begin_chain
from tis.marketplace.columns import now
from tis.marketplace.market import Market
from tis.marketplace.orders.states import HOLDS_UNITS
from tis.marketplace.tables import (
    Order,
    OrderLine,
    Product,
    Reservation,
    ShopOrderRules,
    StockMovement,
    Supplier,
    SupplierMember,
    User,
)

_numbers = count(1)


class Shop:
    def __init__(self, market: Market) -> None:
        self.market = market
        self.id = self.supplier()

    def supplier(self, **values: Any) -> int:
        number = next(_numbers)
        defaults: dict[str, Any] = {"name": "Sari", "business_name": f"Toko {number}", "city": "Jakarta"}
        defaults |= {"city_key": "jakarta", "latitude": -6.2, "longitude": 106.8, "email": f"{number}@example.com"}
        defaults["email_key"] = defaults["email"]
        return self._add(Supplier(**(defaults | values)))

    def user(self, **values: Any) -> int:
        return self._add(User(**({"name": "Budi"} | values)))

    def editor(self) -> int:
        user_id = self.user()
        self.employ(user_id)
        return user_id

    def employ(self, user_id: int, role: str = "editor") -> None:
        with self.market.writing() as session:
            session.add(SupplierMember(supplier_id=self.id, user_id=user_id, role=role))

    def takes_orders(self, **rules: Any) -> None:
        values = {"accept_hours": 24, "pay_hours": 24, "return_days": 7, "tax_rate": 0, **rules}
        with self.market.writing() as session:
            session.add(ShopOrderRules(supplier_id=self.id, takes_orders=True, **values))

    def product(self, on_hand: int = 5, **values: Any) -> int:
        defaults = {"supplier_id": self.id, "name": "Laptop", "price": 9_000_000, "on_hand": on_hand}
        product_id = self._add(Product(**(defaults | {"category": "laptop", "category_key": "laptop"} | values)))
        with self.market.writing() as session:
            session.add(StockMovement(product_id=product_id, delta=on_hand, kind="initial"))
        return product_id

    def stock_columns(self, product_id: int) -> tuple[int, int]:
        """(on hand, reserved) of the product row."""
        with self.market.reading() as session:
            product = session.get_one(Product, product_id)
            return product.on_hand, product.reserved

    def stock_ledger(self, product_id: int) -> tuple[int, int]:
        """(on hand, reserved) as the movements, the reservations and the lines of orders add up."""
        with self.market.reading() as session:
            moved = select(func.sum(StockMovement.delta)).where(StockMovement.product_id == product_id)
            held = select(func.coalesce(func.sum(Reservation.quantity), 0)).where(
                Reservation.product_id == product_id, Reservation.status == "held"
            )
            ordered = select(func.coalesce(func.sum(OrderLine.quantity), 0)).join(Order, Order.id == OrderLine.order_id)
            of_orders = ordered.where(OrderLine.product_id == product_id, Order.state.in_(HOLDS_UNITS))
            return session.scalar(moved) or 0, (session.scalar(held) or 0) + (session.scalar(of_orders) or 0)

    def make_due(self, reservation_id: str) -> None:
        with self.market.writing() as session:
            past = now() - timedelta(seconds=1)
            session.execute(update(Reservation).where(Reservation.id == reservation_id).values(expires_at=past))

    def auth_headers(self, account: str) -> dict[str, str]:
        with self.market.writing() as session:
            return {"Authorization": f"Bearer {begin_chain(session, self.market, account).access_token}"}

    def _add(self, row: Supplier | User | Product) -> int:
        with self.market.writing() as session:
            session.add(row)
            session.flush()
            return row.id
