"""A server is killed while sellers upload: no product shows what is not there, and no file is without a row."""

import asyncio
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import select

from tests.databases import new_sqlite
from tests.faults.forms import short_or_long
from tests.faults.mortal_server import MortalServer, running
from tests.marketplace.conftest import SECRET
from tests.marketplace.pictures.photos import photo
from tests.marketplace.shop import Shop
from tis.database.database import Database
from tis.marketplace.kit.picture_links import PICTURE_SIZES
from tis.marketplace.market import Market, MarketRules
from tis.marketplace.tables import ProductPicture, StoredPicture

pytestmark = [pytest.mark.slow, pytest.mark.anyio, pytest.mark.long]

NUM_KILLS = short_or_long(2, 20)
_NUM_PRODUCTS = 4


async def test_kills_between_file_and_row_leave_nothing_wrong(tmp_path: Path) -> None:
    url, folder = new_sqlite(tmp_path), tmp_path / "files"
    market = Market(Database(url), MarketRules(jwt_secret=SECRET))
    shop = Shop(market)
    products = [shop.product() for _ in range(_NUM_PRODUCTS)]
    variables = {"DATABASE_URL": url, "PICTURES_URL": folder.as_uri(), "JWT_SECRET_KEY": SECRET}
    acknowledged = set[tuple[int, str]]()
    async with running(tmp_path, MARKETPLACE_AUTH="open", **variables) as server:
        for kill in range(NUM_KILLS):
            tasks = [
                asyncio.create_task(_upload_until_killed(server, product, kill, acknowledged)) for product in products
            ]
            wanted = len(acknowledged) + 3 + kill % 3
            while len(acknowledged) < wanted:
                await asyncio.sleep(0.005)
                assert not all(task.done() for task in tasks), [task.exception() for task in tasks]
            server.kill()
            await asyncio.gather(*tasks)
            if kill + 1 < NUM_KILLS:
                await server.start()
    with market.reading() as session:
        links = {(row.product_id, row.hash) for row in session.scalars(select(ProductPicture))}
        rows = set(session.scalars(select(StoredPicture.hash)))
    assert acknowledged <= links
    for _, picture_id in links:
        for size in PICTURE_SIZES:
            assert (folder / picture_id[:2] / f"{picture_id}.{size}.webp").read_bytes().startswith(b"RIFF")
    written = {file.name.partition(".")[0] for file in folder.glob("??/*.webp")}
    assert written <= rows  # what no product has will be found, and go
    market.close()


async def _upload_until_killed(
    server: MortalServer, product: int, kill: int, acknowledged: set[tuple[int, str]]
) -> None:
    """And take each away again, as a product has eight at most."""
    number = 0
    async with httpx2.AsyncClient(base_url=server.url, timeout=60) as client:
        try:
            while True:
                number += 1
                data = photo(1000 * kill + 100_000 * product + number, (300, 200))
                made = await client.post(f"/api/products/{product}/pictures", files={"file": data})
                if made.status_code == 409:
                    listed = (await client.get(f"/api/products/{product}/pictures")).json()
                    oldest = listed[0]["id"]
                    acknowledged.discard((product, oldest))
                    await client.delete(f"/api/products/{product}/pictures/{oldest}")
                    continue
                assert made.status_code == 200, made.text
                acknowledged.add((product, made.json()["id"]))
        except httpx2.TransportError:
            return
