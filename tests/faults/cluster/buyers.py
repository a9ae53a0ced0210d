"""Buyers in the marketplace of a cluster: what a server has acknowledged is in PostgreSQL at the end, once."""

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import httpx2
import psycopg

from tests.faults.cluster.machines import Front
from tests.marketplace.accounts import bearer, made, register_supplier, register_user

_STOCK = 1_000_000
_TRY_SECONDS = 6.0


@dataclass(frozen=True, slots=True)
class Bought:
    product: int
    quantity: int
    sold: bool


class ClusterBuyers:
    def __init__(self, fronts: Sequence[Front], chance: Random) -> None:
        self.bought: dict[str, Bought] = {}  # by the id of the reservation
        self.statuses: Counter[int] = Counter()
        self.refusals: list[str] = []
        self.is_open = True
        self._fronts, self._chance = fronts, chance
        self._products: list[int] = []
        self._buyer: dict[str, str] = {}
        self._shop: dict[str, str] = {}
        self._num_calls = 0

    def open(self, url: str) -> None:
        """Accounts and goods; blocks."""
        with httpx2.Client(base_url=url, timeout=60) as http:
            shop = register_supplier(http)
            self._buyer, self._shop = bearer(register_user(http)), bearer(shop)
            for name in ("Sekop taman", "Cangkul besi"):
                goods = {"name": name, "price": 90_000, "stock_quantity": _STOCK, "category": "tools"}
                path = f"/api/suppliers/{shop['id']}/products"
                self._products.append(made(http.post(path, json=goods, headers=self._shop))["id"])

    async def buy(self) -> None:
        """Until it is closed; what has begun then is brought to its end."""
        async with httpx2.AsyncClient(timeout=_TRY_SECONDS) as http:
            while self.is_open:
                await self._buy_once(http)
                await asyncio.sleep(self._chance.uniform(0, 0.3))

    async def _buy_once(self, http: httpx2.AsyncClient) -> None:
        product, quantity = self._chance.choice(self._products), self._chance.randrange(1, 4)
        path = f"/api/products/{product}/reservations"
        reserved = await self._ask(http, path, self._buyer, {"quantity": quantity, "seconds": 3600})
        if reserved is None:
            return
        reservation = str(reserved["id"])
        verb, who = self._chance.choice([("commit", self._shop), ("release", self._buyer)])
        await self._ask(http, f"/api/reservations/{reservation}/{verb}", who, None)
        self.bought[reservation] = Bought(product, quantity, verb == "commit")

    async def _ask(
        self, http: httpx2.AsyncClient, path: str, who: dict[str, str], body: dict[str, int] | None
    ) -> dict[str, str] | None:
        """Asks whatever server again and again, under one key, until it is answered."""
        self._num_calls += 1
        headers = {**who, "Idempotency-Key": f"buyer-{self._num_calls}"}
        while True:
            try:
                url = self._chance.choice(self._fronts).url
                answer = await http.post(f"{url}{path}", json=body, headers=headers)
            except httpx2.TransportError:
                self.statuses[0] += 1
                await asyncio.sleep(0.1)
                continue
            self.statuses[answer.status_code] += 1
            if answer.status_code == 200:
                found: dict[str, str] = json.loads(answer.content)
                return found
            if answer.status_code not in (409, 503):
                self.refusals.append(f"{path}: {answer.status_code} {answer.text[:200]}")
                return None
            await asyncio.sleep(0.2)

    def faults(self, database_url: str) -> Counter[str]:
        """Reads PostgreSQL itself; blocks."""
        counted: Counter[str] = Counter(refused=len(self.refusals))
        with psycopg.connect(database_url) as connection:
            rows = {
                str(row[0]): row[1:]
                for row in connection.execute(
                    "SELECT id, product_id, quantity, status FROM stock_reservations"
                ).fetchall()
            }
            stock: dict[int, int] = dict(connection.execute("SELECT id, on_hand FROM products").fetchall())
        for reservation, bought in self.bought.items():
            status = "committed" if bought.sold else "released"
            if rows.get(reservation) != (bought.product, bought.quantity, status):
                counted["lost"] += 1
        counted["doubled"] = len(set(rows) - set(self.bought))
        for product in self._products:
            sold = sum(bought.quantity for bought in self.bought.values() if bought.sold and bought.product == product)
            counted["stock"] += stock[product] != _STOCK - sold
        return +counted
