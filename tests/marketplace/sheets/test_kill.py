"""A server is killed while it imports a large sheet: after its restart it goes on, and no row is imported twice."""

from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import func, select

from tests.faults.forms import SOAK, short_or_long
from tests.faults.mortal_server import MortalServer, get, running, until
from tests.marketplace.conftest import SECRET
from tests.marketplace.shop import Shop
from tis.marketplace.tables import Product, StockMovement

pytestmark = [pytest.mark.slow, pytest.mark.anyio, pytest.mark.long]

NUM_ROWS = short_or_long(5001, 50_000)
NUM_KILLS = short_or_long(1, 15)
# Without a SKU, a row that is imported twice makes two products.
SHEET = "nama;harga;stok;kategori\n" + "".join(f"Barang {number};1000;1;lain\n" for number in range(NUM_ROWS))


async def send_until_accepted(server: MortalServer, path: str) -> httpx2.Response:
    """Twice, as a client does that lost the answer: the key makes it one import."""
    headers = {"Content-Type": "text/csv", "Idempotency-Key": path}
    async with httpx2.AsyncClient(base_url=server.url, timeout=120) as http:
        first = await http.post(path, content=SHEET, headers=headers)
        again = await http.post(path, content=SHEET, headers=headers)
    assert (first.status_code, again.status_code) == (202, 202), first.text + again.text
    assert first.content == again.content
    return first


async def test_an_import_survives_kills_and_imports_each_row_once(
    shop: Shop, database_url: str, tmp_path: Path
) -> None:
    if not SOAK and not database_url.startswith("sqlite"):
        pytest.skip("test_sheet_jobs.py kills an import on PostgreSQL, in less time")
    async with running(tmp_path, DATABASE_URL=database_url, JWT_SECRET_KEY=SECRET, MARKETPLACE_AUTH="open") as server:
        begun = await send_until_accepted(server, f"/api/suppliers/{shop.id}/products/import")
        progress: dict[str, Any] = {}

        async def rows_done(at_least: int) -> bool:
            answer = await get(server.url, begun.headers["location"])
            if answer.status_code == 200:  # 503 while the database of a killed server recovers
                progress.update(answer.json())
            return bool(progress) and progress["rows_done"] >= at_least

        for kill in range(1, NUM_KILLS + 1):
            wanted = NUM_ROWS * kill // (NUM_KILLS + 2)
            await until(lambda wanted=wanted: rows_done(wanted), timeout=200)  # type: ignore[misc]
            assert progress["status"] == "running"
            server.kill()
            await server.start()
        await until(lambda: rows_done(NUM_ROWS), timeout=400)
    assert (progress["status"], progress["created"], progress["errors"]) == ("done", NUM_ROWS, [])
    with shop.market.reading() as session:
        names = select(Product.name).where(Product.supplier_id == shop.id)
        assert sorted(session.scalars(names)) == sorted(f"Barang {number}" for number in range(NUM_ROWS))
        moved = select(func.sum(StockMovement.delta)).join(Product, Product.id == StockMovement.product_id)
        assert session.scalar(moved.where(Product.supplier_id == shop.id)) == NUM_ROWS
