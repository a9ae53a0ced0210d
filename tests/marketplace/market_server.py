"""A server of the marketplace that believes the caller's name: `as_(account)` instead of a login."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, get_args

import httpx2
from fastapi import Request
from sqlalchemy import select
from sqlalchemy.orm import Session

from tests.serving import served
from tis.marketplace.context import ContextDep
from tis.marketplace.kit.principal import Principal
from tis.marketplace.market import Market
from tis.marketplace.tables import Product, Supplier, SupplierMember, User
from tis.settings import Settings

_numbers = itertools.count(1)


@dataclass(frozen=True)
class TrustingContext:
    """A `RequestContext` that reads the account from `Authorization: Known user:7`, without a token."""

    market: Market
    account: str | None
    agent: str | None = None

    @contextmanager
    def reading(self) -> Iterator[tuple[Session, Principal]]:
        with self.market.reading() as session:
            yield session, self._caller(session)

    @contextmanager
    def writing(self) -> Iterator[tuple[Session, Principal]]:
        with self.market.writing() as session:
            yield session, self._caller(session)

    def _caller(self, session: Session) -> Principal:
        kind, _, number = (self.account or "").partition(":")
        if kind == "supplier":
            ids = frozenset([int(number)])
            return Principal(self.account, supplier_ids=ids, owned_ids=ids, request_id="req-known")
        if kind in ("user", "admin"):
            mine = select(SupplierMember.supplier_id).where(SupplierMember.user_id == int(number))
            user_id = int(number)
            return Principal(f"user:{number}", user_id, frozenset(session.scalars(mine)), is_admin=kind == "admin")
        return Principal(is_open=kind == "open")


@dataclass(frozen=True)
class MarketServer:
    """A running server and its database."""

    url: str
    market: Market

    def as_(self, account: str | None) -> httpx2.Client:
        headers = {"authorization": f"Known {account}"} if account else {}
        return httpx2.Client(base_url=self.url, headers=headers, timeout=30)

    def supplier(self, **values: Any) -> int:
        number = next(_numbers)
        return self._add(
            Supplier(
                name="Budi Santoso",
                business_name=values.pop("business_name", f"Toko {number}"),
                email=f"toko{number}@example.com",
                email_key=f"toko{number}@example.com",
                **{"city": "Jakarta", "city_key": "jakarta", "latitude": -6.2088, "longitude": 106.8456, **values},
            )
        )

    def user(self, name: str = "Jane Smith", **values: Any) -> int:
        number = next(_numbers)
        email = f"user{number}@example.com"
        return self._add(User(name=name, email=email, email_key=email, **values))

    def _add(self, row: Supplier | User) -> int:
        with self.market.writing() as session:
            session.add(row)
            session.flush()
            return row.id

    def employ(self, user_id: int, supplier_id: int) -> None:
        with self.market.writing() as session:
            session.add(SupplierMember(supplier_id=supplier_id, user_id=user_id))

    def product_row(self, product_id: int) -> Product:
        with self.market.reading() as session:
            row = session.get_one(Product, product_id)
            session.expunge(row)
            return row


@contextmanager
def market_server(settings: Settings) -> Iterator[MarketServer]:
    with served(settings) as running:
        market: Market = running.app.state.marketplace.market

        async def trusting_context(request: Request) -> TrustingContext:
            scheme, _, account = request.headers.get("authorization", "").partition(" ")
            return TrustingContext(market, account if scheme == "Known" else None)

        running.app.dependency_overrides[get_args(ContextDep)[1].dependency] = trusting_context
        yield MarketServer(running.url, market)


LAPTOP = {
    "name": "Laptop ASUS ROG Strix G15",
    "description": "Gaming laptop with RTX 4060",
    "price": 15999000,
    "stock_quantity": 5,
    "category": "laptop",
    "tags": "gaming,asus,rtx",
}


def new_product(client: httpx2.Client, supplier_id: int, **values: Any) -> dict[str, Any]:
    answer = client.post(f"/api/suppliers/{supplier_id}/products", json={**LAPTOP, **values})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())
