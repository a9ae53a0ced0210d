"""A server is killed in the middle of moves: what was answered is kept, and what was not is whole or nothing."""

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
from tis.marketplace.tables import Order, OrderLine, OrderMove

pytestmark = [pytest.mark.slow, pytest.mark.anyio, pytest.mark.long]

NUM_BUYERS = 6
NUM_ORDERS = short_or_long(10, 100)
NUM_KILLS = short_or_long(3, 15)


class OrderingBuyer:
    """Sends each request until it is answered; every second order is sold, every third one cancelled."""

    def __init__(self, url: str, products: list[int], name: str) -> None:
        self.url, self.products, self.name = url, products, name
        self.states: dict[str, str] = {}

    async def run(self) -> None:
        items = [{"product_id": product, "quantity": 1} for product in self.products]
        async with httpx2.AsyncClient(base_url=self.url, timeout=30) as http:
            for number in range(NUM_ORDERS):
                key = {"Idempotency-Key": f"{self.name}-{number}"}
                body = {"items": items, "place": {"delivery": "pickup"}}
                order = await self.insist(http, "/api/orders", json=body, headers=key)
                self.states[order["id"]] = order["state"]
                deeds = {0: ["cancel"], 1: ["accept", "hand-over"], 2: ["accept"]}[number % 3]
                for deed in deeds:
                    moved = await self.insist(http, f"/api/orders/{order['id']}/{deed}", json={})
                    self.states[order["id"]] = moved["state"]

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


async def test_moves_that_were_answered_are_kept_and_no_unit_is_lost(
    shop: Shop, database_url: str, tmp_path: Path
) -> None:
    shop.takes_orders()
    units = NUM_BUYERS * NUM_ORDERS
    products = [shop.product(on_hand=units) for _ in range(3)]
    async with running(tmp_path, DATABASE_URL=database_url, JWT_SECRET_KEY=SECRET, MARKETPLACE_AUTH="open") as server:
        buyers = [
            OrderingBuyer(server.url, products[::step], f"{products[0]}-{step}-{n}")
            for n in range(3)
            for step in (1, -1)
        ]
        ordering = asyncio.gather(*(buyer.run() for buyer in buyers))
        for kill in range(1, NUM_KILLS + 1):
            await until_ordered(buyers, units * kill // (NUM_KILLS + 2))
            server.kill()
            await server.start()
        await ordering
    states = {name: state for buyer in buyers for name, state in buyer.states.items()}
    assert len(states) == units
    sold = sum(state == "handed_over" for state in states.values())
    waiting = sum(state == "accepted" for state in states.values())
    for product in products:
        assert shop.stock_columns(product) == shop.stock_ledger(product) == (units - sold, waiting)
    with shop.market.reading() as session:
        of_goods = select(OrderLine.order_id).where(OrderLine.product_id == products[0])
        stored = session.execute(select(Order.id, Order.state).where(Order.id.in_(of_goods)))
        assert {row.id: row.state for row in stored} == states
        moves = (
            select(OrderMove.state, func.count().label("number"))
            .where(OrderMove.order_id.in_(of_goods))
            .group_by(OrderMove.state)
        )
        counted = {row.state: row.number for row in session.execute(moves)}
    cancelled = units - sold - waiting
    expected = {
        "draft": units,
        "placed": units,
        "accepted": sold + waiting,
        "handed_over": sold,
        "cancelled": cancelled,
    }
    assert counted == expected


async def until_ordered(buyers: list[OrderingBuyer], number: int) -> None:
    await until(lambda: sum(len(buyer.states) for buyer in buyers) >= number, timeout=200)
