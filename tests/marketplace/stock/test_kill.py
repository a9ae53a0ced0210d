"""A server is killed while clients buy: answered requests persist, repeated requests are not done twice."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import func, select

from tests.faults.forms import short_or_long
from tests.faults.mortal_server import running, until
from tests.marketplace.conftest import SECRET
from tests.marketplace.shop import Shop
from tis.marketplace.tables import Reservation

pytestmark = [pytest.mark.slow, pytest.mark.anyio, pytest.mark.long]

NUM_BUYERS = 8
NUM_PURCHASES = short_or_long(15, 150)
NUM_KILLS = short_or_long(2, 15)


class KilledBuyer:
    """Sends each request until it is answered, under a key of its own; buys every second thing that it holds."""

    def __init__(self, url: str, product: int, name: str) -> None:
        self.url, self.product, self.name = url, product, name
        self.held: list[str] = []
        self.sold: list[str] = []

    async def run(self) -> None:
        async with httpx2.AsyncClient(base_url=self.url, timeout=30) as http:
            for number in range(NUM_PURCHASES):
                path, key = f"/api/products/{self.product}/reservations", f"{self.name}-{number}"
                held = await self.insist(http, path, json={"quantity": 1}, headers={"Idempotency-Key": key})
                self.held.append(held["id"])
                if number % 2:
                    sold = await self.insist(http, f"/api/reservations/{held['id']}/commit")
                    assert sold["status"] == "committed"
                    self.sold.append(sold["id"])

    async def insist(self, http: httpx2.AsyncClient, path: str, **sent: Any) -> dict[str, Any]:
        async with asyncio.timeout(120):
            while True:
                try:
                    answer = await http.post(path, **sent)
                    if answer.status_code != 503:
                        assert answer.status_code == 200, answer.text
                        said: dict[str, Any] = answer.json()
                        return said
                except httpx2.TransportError:
                    pass  # the server was killed; it comes back
                await asyncio.sleep(0.05)


async def test_what_was_answered_is_kept_and_nothing_is_sold_twice(
    shop: Shop, database_url: str, tmp_path: Path
) -> None:
    units = NUM_BUYERS * NUM_PURCHASES
    product = shop.product(on_hand=units)
    async with running(tmp_path, DATABASE_URL=database_url, JWT_SECRET_KEY=SECRET, MARKETPLACE_AUTH="open") as server:
        buyers = [KilledBuyer(server.url, product, f"{product}-{number}") for number in range(NUM_BUYERS)]
        buying = asyncio.gather(*(buyer.run() for buyer in buyers))
        for kill in range(1, NUM_KILLS + 1):
            await until_held(buyers, units * kill // (NUM_KILLS + 2))
            server.kill()
            await server.start()
        await buying
    held = {one for buyer in buyers for one in buyer.held}
    sold = {one for buyer in buyers for one in buyer.sold}
    assert len(held) == units and shop.stock_columns(product) == shop.stock_ledger(product)
    assert shop.stock_columns(product) == (units - len(sold), units - len(sold))
    with shop.market.reading() as session:
        mine = Reservation.product_id == product
        assert session.scalar(select(func.count()).where(mine)) == units
        committed = select(Reservation.id).where(mine, Reservation.status == "committed")
        assert set(session.scalars(committed)) == sold


async def until_held(buyers: list[KilledBuyer], number: int) -> None:
    await until(lambda: sum(len(buyer.held) for buyer in buyers) >= number, timeout=200)


async def test_a_key_that_comes_to_two_servers_at_the_same_moment_reserves_once(
    shop: Shop, database_url: str, tmp_path: Path
) -> None:
    product = shop.product(on_hand=100)
    variables = {"DATABASE_URL": database_url, "JWT_SECRET_KEY": SECRET, "MARKETPLACE_AUTH": "open"}
    (tmp_path / "other").mkdir()
    async with running(tmp_path, **variables) as one, running(tmp_path / "other", **variables) as other:
        for number in range(10):
            answers = await asyncio.gather(
                *(reserved(server.url, product, f"{product}-both-{number}") for server in (one, other, one, other))
            )
            assert len({answer["id"] for answer in answers}) == 1
    assert shop.stock_columns(product) == (100, 10)


async def reserved(url: str, product: int, key: str) -> dict[str, Any]:
    async with asyncio.timeout(60), httpx2.AsyncClient(base_url=url, timeout=30) as http:
        while True:
            sent: dict[str, Any] = {"json": {"quantity": 1}, "headers": {"Idempotency-Key": key}}
            answer = await http.post(f"/api/products/{product}/reservations", **sent)
            if answer.status_code not in (409, 503):  # while the first one runs
                assert answer.status_code == 200, answer.text
                said: dict[str, Any] = answer.json()
                return said
            await asyncio.sleep(0.05)
