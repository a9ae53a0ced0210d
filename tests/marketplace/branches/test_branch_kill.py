"""A server is killed while units move between places and are bought there: places and ledger agree, nothing is lost."""

import asyncio
from pathlib import Path

import httpx2
import pytest

from tests.faults.forms import short_or_long
from tests.faults.mortal_server import running
from tests.marketplace.branches.places import add_branch, stock
from tests.marketplace.conftest import SECRET
from tests.marketplace.shop import Shop
from tests.marketplace.stock.test_kill import NUM_PURCHASES, KilledBuyer, until_held

pytestmark = [pytest.mark.slow, pytest.mark.anyio, pytest.mark.long]

NUM_BUYERS = 4
NUM_KILLS = short_or_long(2, 10)


async def test_what_lies_where_survives_kills(shop: Shop, database_url: str, tmp_path: Path) -> None:
    units = NUM_BUYERS * NUM_PURCHASES
    branch, product = add_branch(shop), shop.product(on_hand=units)
    async with running(tmp_path, DATABASE_URL=database_url, JWT_SECRET_KEY=SECRET, MARKETPLACE_AUTH="open") as server:
        buyers = [KilledBuyer(server.url, product, f"{product}-{number}") for number in range(NUM_BUYERS)]
        buying = asyncio.gather(*(buyer.run() for buyer in buyers))
        moving = asyncio.create_task(move_on(server.url, product, branch, buying))
        for kill in range(1, NUM_KILLS + 1):
            await until_held(buyers, units * kill // (NUM_KILLS + 2))
            server.kill()
            await server.start()
        await buying
        num_moved = await moving
    sold = {one for buyer in buyers for one in buyer.sold}
    places = stock(shop, product)
    assert num_moved and branch in places
    assert shop.stock_columns(product) == (units - len(sold), units - len(sold))


async def move_on(url: str, product: int, branch: int, buying: "asyncio.Future[list[None]]") -> int:
    """To the branch and back, until all is bought. Returns how many transfers were answered."""
    num_moved = number = 0
    async with httpx2.AsyncClient(base_url=url, timeout=30) as http:
        while not buying.done():
            number += 1
            source, target = (0, branch) if number % 3 else (branch, 0)
            body = {"quantity": 2, "from_branch_id": source, "to_branch_id": target}
            try:
                answer = await http.post(f"/api/products/{product}/stock-transfers", json=body)
            except httpx2.TransportError:
                await asyncio.sleep(0.05)  # the server was killed; it comes back
                continue
            assert answer.status_code in (200, 409, 503), answer.text
            num_moved += answer.status_code == 200
    return num_moved
