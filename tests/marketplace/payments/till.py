"""A shop, a buyer and their orders, seen as both see them over HTTP."""

import time
from collections.abc import Callable
from datetime import timedelta
from secrets import token_hex
from typing import Any, Self
from uuid import uuid4

import httpx2
from sqlalchemy import select, update

from tests.marketplace.market_server import MarketServer
from tests.marketplace.payments.fake_provider import CALLBACK_TOKEN, SECRET_KEY, SERVER_KEY
from tis.marketplace.columns import now
from tis.marketplace.tables import Notice, Order, Payment

TRANSFER = {"bank_name": "Bank Contoh", "account_number": "1234567890", "account_holder": "Toko Contoh"}
KEYS = {
    "midtrans": {"midtrans": {"server_key": SERVER_KEY}},
    "xendit": {"xendit": {"secret_key": SECRET_KEY, "callback_token": CALLBACK_TOKEN}},
}


class Till:
    def __init__(self, server: MarketServer) -> None:
        self.server = server
        self.shop_id = server.supplier()
        self.buyer_id = server.user()
        self.shop = server.as_(f"supplier:{self.shop_id}")
        self.buyer = server.as_(f"user:{self.buyer_id}")
        self.stranger = server.as_(f"user:{server.user()}")
        self.nobody = server.as_(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for client in (self.shop, self.buyer, self.stranger, self.nobody):
            client.close()

    @property
    def methods_path(self) -> str:
        return f"/api/suppliers/{self.shop_id}/payment-methods"

    def change(self, **body: Any) -> httpx2.Response:
        return self.shop.put(self.methods_path, json=body)

    def connect(self, provider: str) -> None:
        answer = self.change(provider={"provider": provider, "environment": "sandbox", **KEYS[provider]})
        assert answer.status_code == 200, answer.text

    def order(self, method: str = "provider", total: int = 150_000, state: str = "accepted", **values: Any) -> str:
        moment = now()
        row = Order(
            id=str(uuid4()),
            number=token_hex(4).upper(),
            supplier_id=self.shop_id,
            buyer=f"user:{self.buyer_id}",
            state=state,
            shop_name="Toko Contoh",
            payment_method=method,
            items_total=total,
            total=total,
            placed_at=moment,
            accepted_at=moment,
            due_at=moment + timedelta(hours=6),
        )
        for name, value in values.items():
            setattr(row, name, value)
        with self.server.market.writing() as session:
            session.add(row)
            return row.id

    def set_order(self, order_id: str, **values: Any) -> None:
        with self.server.market.writing() as session:
            session.execute(update(Order).where(Order.id == order_id).values(**values))

    def row(self, order_id: str) -> Order:
        with self.server.market.reading() as session:
            row = session.get_one(Order, order_id)
            session.expunge(row)
            return row

    def payments(self, order_id: str) -> list[Payment]:
        with self.server.market.reading() as session:
            rows = session.scalars(select(Payment).where(Payment.order_id == order_id).order_by(Payment.created_at))
            found = list(rows)
            session.expunge_all()
            return found

    def begin(self, order_id: str) -> dict[str, Any]:
        """With a page."""
        answer = self.buyer.post(f"/api/orders/{order_id}/payment")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def begun(self, provider: str, **values: Any) -> tuple[str, str]:
        """An order and its payment, which waits on the page of the provider."""
        self.connect(provider)
        order_id = self.order(**values)
        assert self.begin(order_id)["status"] == "pending"
        return order_id, self.payments(order_id)[0].id

    def callback_url(self, provider: str) -> str:
        return f"{self.server.url}/api/payments/callbacks/{provider}/{self.shop_id}"

    def view(self, order_id: str) -> dict[str, Any]:
        answer = self.shop.get(f"/api/orders/{order_id}/payment")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def check_now(self, order_id: str) -> None:
        """Lets the background look at the payments of the order."""
        with self.server.market.writing() as session:
            session.execute(update(Payment).where(Payment.order_id == order_id).values(check_at=now()))
        self.server.market.wake_payment_checks()

    def news(self, account: str, order_id: str) -> list[str]:
        with self.server.market.reading() as session:
            rows = session.scalars(select(Notice).where(Notice.account == account).order_by(Notice.number))
            return [row.type for row in rows if row.data.get("order_id") == order_id]


def until(is_so: Callable[[], bool], seconds: float = 60) -> None:
    ends = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < ends, "it did not happen"
        time.sleep(0.02)
