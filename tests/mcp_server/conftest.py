"""A server of the marketplace with a few products, and JSON-RPC requests to its `/mcp`."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from tests.marketplace.search.conftest import BANDUNG, JAKARTA, SECRET, Catalogue
from tests.serving import served, settings_with
from tis.marketplace.auth.tokens import begin_chain
from tis.marketplace.market import Market
from tis.marketplace.tables import User

_numbers = itertools.count(1)


@dataclass(frozen=True)
class McpShop:
    url: str
    http: httpx2.Client
    market: Market
    catalogue: Catalogue
    rinjani: int  # a laptop in Jakarta
    bromo: int  # another, in Bandung
    supplier_token: str

    @property
    def mcp_url(self) -> str:
        return f"{self.url}/mcp"

    def post(self, method: str, params: dict[str, Any] | None = None, **headers: str) -> httpx2.Response:
        message = {"jsonrpc": "2.0", "id": next(_numbers), "method": method, **({"params": params} if params else {})}
        return self.http.post(self.mcp_url, json=message, headers=headers)

    def call(self, name: str, arguments: dict[str, Any], **headers: str) -> httpx2.Response:
        return self.post("tools/call", {"name": name, "arguments": arguments}, **headers)

    def token(self, **values: Any) -> str:
        """Of a new user."""
        with self.market.writing() as session:
            user = User(name="Budi", **values)
            session.add(user)
            session.flush()
            return begin_chain(session, self.market, f"user:{user.id}").access_token


@pytest.fixture(scope="session")
def mcp_shop() -> Iterator[McpShop]:
    """With MARKETPLACE_AUTH=required."""
    settings = settings_with(jwt_secret_key=SECRET, cors_origins="https://shop.example")
    with served(settings) as running, httpx2.Client(timeout=30) as http:
        market: Market = running.app.state.marketplace.market
        catalogue = Catalogue(market)
        of_jakarta, of_bandung = catalogue.shop("Jakarta", JAKARTA), catalogue.shop("Bandung", BANDUNG)
        rinjani = catalogue.put("Laptop Gaming Rinjani", shop=of_jakarta, category="laptop", price=11_500_000)
        bromo = catalogue.put("Laptop Kantor Bromo", shop=of_bandung, category="laptop", price=7_000_000)
        with market.writing() as session:
            supplier_token = begin_chain(session, market, f"supplier:{of_bandung}").access_token
        yield McpShop(running.url, http, market, catalogue, rinjani, bromo, supplier_token)
