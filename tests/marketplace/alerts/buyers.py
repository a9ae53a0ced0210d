"""A buyer and a shop of a strict server, and what the buyer is told."""

from typing import Any

import httpx2
from sqlalchemy import func, select

from tests.marketplace.market_server import LAPTOP
from tests.marketplace.notices.test_notice_stream import kept
from tests.marketplace.shop import Shop
from tis.marketplace.alerts.watch import Watch, WatchLimits
from tis.marketplace.tables import UnwatchedChange

_ROUNDS = 200


class Watched:
    """Its watch is that of no server: the test says when it looks."""

    def __init__(self, client: httpx2.Client, shop: Shop) -> None:
        self.client, self.shop = client, shop
        self.seller = shop.auth_headers(f"supplier:{shop.id}")
        self.buyer_id = shop.user()
        self.buyer = shop.auth_headers(f"user:{self.buyer_id}")

    def product(self, **values: Any) -> int:
        body = {**LAPTOP, "price": 100_000, **values}
        made = self.client.post(f"/api/suppliers/{self.shop.id}/products", json=body, headers=self.seller)
        assert made.status_code == 200, made.text
        return int(made.json()["id"])

    def change(self, product: int, **values: Any) -> None:
        changed = self.client.put(f"/api/products/{product}", json=values, headers=self.seller)
        assert changed.status_code == 200, changed.text

    def alert(self, product: int, kind: str, **said: Any) -> httpx2.Response:
        body = {"kind": kind, **said}
        return self.client.post(f"/api/products/{product}/alerts", json=body, headers=self.buyer)

    def save(self, parameters: dict[str, Any], **said: Any) -> httpx2.Response:
        body = {"name": "Mine", **said}
        return self.client.post("/api/saved-searches", params=parameters, json=body, headers=self.buyer)

    def watch(self, **limits: Any) -> Watch:
        market = self.shop.market
        return Watch(market.reading, market.writing, market.search, WatchLimits(**limits))

    def look(self, **limits: Any) -> None:
        """Until nothing is left to look at."""
        watch = self.watch(**limits)
        for _ in range(_ROUNDS):
            if not watch.step() and not self.num_changes():
                return
        raise AssertionError("the watch does not come to an end")

    def num_changes(self) -> int:
        with self.shop.market.reading() as session:
            return session.scalar(select(func.count()).select_from(UnwatchedChange)) or 0

    def told(self, headers: dict[str, str] | None = None) -> list[dict[str, Any]]:
        """All news but those of holds, oldest first."""
        news = kept(self.client, headers or self.buyer)
        return [one for one in news if one["type"] in ("price.fell", "stock.back", "search.match")]

    def prices_told(self) -> list[int]:
        return [one["price"] for one in self.told() if one["type"] == "price.fell"]
