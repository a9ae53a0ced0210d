"""Large sheets are imported in the background, batch by batch, each row once."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx2
import pytest
from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from tests.marketplace.conftest import SECRET
from tests.marketplace.sheets.test_routes import HEADER, counts, goods_of, send
from tests.marketplace.shop import Shop
from tests.serving import REPOSITORY, Served, served, settings_with
from tis.database.errors import DatabaseUnavailable
from tis.errors import Conflict, QueueFull
from tis.marketplace.kit.principal import Principal
from tis.marketplace.market import Market, MarketRules
from tis.marketplace.sheets.importing import plan_sheet
from tis.marketplace.sheets.jobs import ImportWorker, add_import
from tis.marketplace.sheets.rows import read_rows
from tis.marketplace.sheets.slots import SheetSlots
from tis.marketplace.tables import Product, SheetBatch, SheetImport, SupplierMember

pytestmark = pytest.mark.long

RULES = MarketRules(jwt_secret=SECRET, max_sheet_rows_at_once=3, sheet_batch_rows=2)


@pytest.fixture(scope="module")
def small_steps(database_url: str) -> Iterator[Served]:
    """A server that imports more than three rows in the background, two at a time."""
    with served(settings_with(database_url=database_url, jwt_secret_key=SECRET), market_rules=RULES) as running:
        yield running


@pytest.fixture
def seller(small_steps: Served, shop: Shop) -> Iterator[httpx2.Client]:
    """Signed in as the supplier `shop.id`."""
    headers = shop.auth_headers(f"supplier:{shop.id}")
    with httpx2.Client(base_url=small_steps.url, headers=headers, timeout=30) as client:
        yield client


def sheet_of(num_rows: int, category: str = "lain") -> str:
    return HEADER + "".join(f"S-{number},Barang {number},{1000 + number},5,{category}\n" for number in range(num_rows))


def ended(client: httpx2.Client, begun: httpx2.Response) -> dict[str, Any]:
    """The import when it has ended."""
    assert begun.status_code == 202, begun.text
    deadline = time.monotonic() + 30
    while True:
        progress: dict[str, Any] = client.get(begun.headers["location"]).json()
        if progress["ended_at"]:
            return progress
        assert time.monotonic() < deadline, progress
        time.sleep(0.01)


def test_a_large_sheet_is_imported_in_the_background_and_its_progress_can_be_read(
    seller: httpx2.Client, shop: Shop
) -> None:
    begun = send(seller, shop.id, sheet_of(7))
    assert (begun.json()["status"], begun.json()["rows"], begun.json()["rows_done"]) == ("waiting", 7, 0)
    assert begun.headers["location"] == f"/api/suppliers/{shop.id}/products/imports/{begun.json()['id']}"
    progress = ended(seller, begun)
    assert progress["status"] == "done" and (progress["rows"], progress["rows_done"]) == (7, 7)
    assert counts(seller.get(begun.headers["location"])) == (7, 0, 0, 0)
    goods = goods_of(shop, shop.id)
    assert sorted(str(sku) for sku in goods) == [f"S-{number}" for number in range(7)]
    assert shop.stock_ledger(goods["S-6"].id) == (5, 0)
    again = ended(seller, send(seller, shop.id, sheet_of(7).replace("S-3,Barang", "S-3,Benda")))
    assert (again["created"], again["updated"], again["unchanged"]) == (0, 1, 6)


def test_a_large_sheet_sent_again_with_its_key_adds_nothing(seller: httpx2.Client, shop: Shop) -> None:
    sheet, key = "name,price,category\n" + "Tas,50000,tas\n" * 5, {"Idempotency-Key": "large"}
    first = send(seller, shop.id, sheet, headers=key)
    assert ended(seller, first)["created"] == 5
    again = send(seller, shop.id, sheet, headers=key)
    assert (again.status_code, again.content, again.headers["idempotent-replayed"]) == (202, first.content, "true")
    assert ended(seller, again)["created"] == 5 and again.headers["location"] == first.headers["location"]
    export = seller.get(f"/api/suppliers/{shop.id}/products/export")
    assert len(export.text.splitlines()) == 6


def test_wrong_rows_of_a_large_sheet_are_reported_at_once(seller: httpx2.Client, shop: Shop) -> None:
    sheet = sheet_of(5) + "S-0,Twice,1000,5,lain\nX,,1000,5,lain\nY,Benda,x,5,lain\n"
    dry = send(seller, shop.id, sheet, dry_run=1)
    assert dry.status_code == 200 and counts(dry) == (5, 0, 0, 3)
    refused = send(seller, shop.id, sheet)
    assert refused.status_code == 422 and refused.json()["detail"] == "Nothing was imported. Wrong rows: 3."
    assert goods_of(shop, shop.id) == {}
    progress = ended(seller, send(seller, shop.id, sheet, partial=1))
    assert (progress["status"], progress["rows"], progress["rows_done"], progress["created"]) == ("done", 8, 8, 5)
    assert [problem["row"] for problem in progress["errors"]] == [7, 8, 9]


def test_the_progress_is_for_members_and_of_their_supplier(
    small_steps: Served, seller: httpx2.Client, shop: Shop
) -> None:
    location = send(seller, shop.id, sheet_of(4)).headers["location"]
    other = shop.supplier()
    rival = shop.auth_headers(f"supplier:{other}")
    assert seller.get(location, headers=rival).status_code == 403
    moved = location.replace(f"/suppliers/{shop.id}/", f"/suppliers/{other}/")
    assert seller.get(moved, headers=rival).status_code == 404
    assert httpx2.get(small_steps.url + location).status_code == 401
    assert seller.get(location[:-36] + "00000000-0000-0000-0000-000000000000").status_code == 404
    assert seller.get(location[:-36] + "nonsense").status_code == 422


def test_a_sheet_waits_for_those_of_others_and_too_many_are_refused(
    small_steps: Served, seller: httpx2.Client, shop: Shop
) -> None:
    slots, others = small_steps.app.state.marketplace.market.sheet_slots, range(-11, 0)
    with ThreadPoolExecutor(8) as threads:
        with ExitStack() as reading:
            for other in others[:3]:
                reading.enter_context(slots.slot(other))
            mine = threads.submit(send, seller, shop.id, HEADER)
            wait_until(lambda: slots.num_waiting == 1)
            for other in others[3:10]:
                threads.submit(take_and_return, slots, other)
            wait_until(lambda: slots.num_waiting == 8)
            refused = send(seller, shop.id, HEADER)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "2")
        assert mine.result().status_code == 200
    assert send(seller, shop.id, HEADER).status_code == 200


def take_and_return(slots: SheetSlots, supplier: int) -> None:
    with slots.slot(supplier):
        pass


def wait_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# Without a server: the tests take the steps of its worker.


@pytest.fixture
def quiet(market: Market) -> Shop:
    return Shop(market)


def begin(shop: Shop, sheet: str, actor: str | None = None, supplier: int | None = None) -> str:
    supplier = supplier or shop.id
    principal = Principal(actor or f"supplier:{supplier}", supplier_ids=frozenset([supplier]))
    with shop.market.writing() as session:
        return add_import(session, principal, plan_sheet(session, principal, supplier, read_rows(sheet.encode())), 2).id


def worker_on(market: Market, **parts: Any) -> ImportWorker:
    values: dict[str, Any] = {"reading": market.reading, "writing": market.writing, "search": market.search}
    return ImportWorker(**(values | {"find_principal": market.find_principal} | parts))


def state_of(shop: Shop, import_id: str) -> tuple[str, int]:
    with shop.market.reading() as session:
        job = session.get_one(SheetImport, import_id)
        return job.status, job.num_done


def num_batches(shop: Shop) -> int:
    with shop.market.reading() as session:
        return session.scalar(select(func.count()).select_from(SheetBatch)) or 0


def test_imports_that_pass_the_cap_of_products_together_end_there(quiet: Shop) -> None:
    """Each of them fits when it is sent."""
    worker = worker_on(quiet.market, max_products=3)
    first, second = (begin(quiet, sheet_of(2).replace("S-", f"{name}-")) for name in "AB")
    while worker.step():
        pass
    assert [state_of(quiet, one) for one in (first, second)] == [("done", 2), ("failed", 0)]
    assert len(goods_of(quiet, quiet.id)) == 2


def test_another_server_goes_on_where_the_first_stopped(quiet: Shop) -> None:
    job = begin(quiet, sheet_of(5))
    assert worker_on(quiet.market).step() and state_of(quiet, job) == ("running", 2)
    other = worker_on(quiet.market)
    assert other.step() and state_of(quiet, job) == ("running", 4)
    assert other.step() and state_of(quiet, job) == ("done", 5)
    assert not other.step() and len(goods_of(quiet, quiet.id)) == 5 and num_batches(quiet) == 0


def test_imports_of_two_suppliers_take_turns(quiet: Shop) -> None:
    first, worker = begin(quiet, sheet_of(4)), worker_on(quiet.market)
    second = begin(quiet, sheet_of(4), supplier=quiet.supplier())
    worker.step()
    worker.step()
    assert state_of(quiet, first) == state_of(quiet, second) == ("running", 2)


def test_a_row_that_became_wrong_meanwhile_is_reported_and_the_others_are_imported(quiet: Shop) -> None:
    product = quiet.product(supplier_id=quiet.id, sku="S-2", on_hand=9)
    job = begin(quiet, sheet_of(4))
    with quiet.market.writing() as session:
        session.execute(update(Product).where(Product.id == product).values(reserved=7))
    worker = worker_on(quiet.market)
    while worker.step():
        pass
    with quiet.market.reading() as session:
        found = session.get_one(SheetImport, job)
        assert (found.status, found.num_done, found.num_created, found.num_updated) == ("done", 4, 3, 0)
        message = "must be at least 7, the reserved units"
        assert found.problems == [{"row": 4, "field": "stock_quantity", "message": message}]


def test_an_import_of_somebody_who_left_the_shop_fails(quiet: Shop) -> None:
    user = quiet.editor()
    job, worker = begin(quiet, sheet_of(5), actor=f"user:{user}"), worker_on(quiet.market)
    worker.step()
    with quiet.market.writing() as session:
        session.execute(delete(SupplierMember))
    assert worker.step() and not worker.step()
    with quiet.market.reading() as session:
        found = session.get_one(SheetImport, job)
        assert (found.status, found.num_done, found.detail) == ("failed", 2, "This belongs to another supplier.")
    assert num_batches(quiet) == 0 and len(goods_of(quiet, quiet.id)) == 2


def test_an_import_that_meets_a_fault_of_ours_fails_and_says_so(quiet: Shop, caplog: pytest.LogCaptureFixture) -> None:
    class BrokenSearch:
        def refresh(self, session: object, ids: object) -> None:
            raise RuntimeError("broken")

    job, worker = begin(quiet, sheet_of(3)), worker_on(quiet.market, search=BrokenSearch())
    assert worker.step() and not worker.step() and state_of(quiet, job) == ("failed", 0)
    assert goods_of(quiet, quiet.id) == {} and "an import of a sheet failed" in caplog.text


@pytest.mark.parametrize(("num_conflicts", "expected"), [(2, ("done", 2)), (3, ("failed", 0))])
def test_a_batch_whose_sku_another_request_creates_meanwhile_is_tried_again(
    quiet: Shop, num_conflicts: int, expected: tuple[str, int]
) -> None:
    job, conflicts = begin(quiet, sheet_of(2)), [Conflict("taken")] * num_conflicts
    worker_on(quiet.market, writing=failing(quiet.market, conflicts)).step()
    assert state_of(quiet, job) == expected


def test_a_database_that_is_gone_fails_no_import(quiet: Shop) -> None:
    job = begin(quiet, sheet_of(2))
    worker = worker_on(quiet.market, writing=failing(quiet.market, [DatabaseUnavailable("gone")]))
    with pytest.raises(DatabaseUnavailable):
        worker.step()
    assert state_of(quiet, job) == ("waiting", 0)
    assert worker.step() and state_of(quiet, job) == ("done", 2)


def failing(market: Market, errors: list[Any]) -> Any:
    """Transactions that fail with these errors, one after the other, and then no more."""

    @contextmanager
    def writing() -> Iterator[Session]:
        with market.writing() as session:
            yield session
            if errors:
                raise errors.pop()

    return writing


def test_a_supplier_has_two_unfinished_imports_at_most(quiet: Shop) -> None:
    begin(quiet, sheet_of(1))
    begin(quiet, sheet_of(1))
    with pytest.raises(QueueFull):
        begin(quiet, sheet_of(1))
    begin(quiet, sheet_of(1), supplier=quiet.supplier())


def test_the_last_twenty_imports_of_a_supplier_are_kept(quiet: Shop) -> None:
    worker, jobs = worker_on(quiet.market), []
    for _ in range(22):
        jobs.append(begin(quiet, sheet_of(1)))
        worker.step()
    with quiet.market.reading() as session:
        assert set(session.scalars(select(SheetImport.id))) == set(jobs[2:])


# A batch as the worker imports it, up to the moment before the commit.
_KILLED = """
import os, signal, sys
from contextlib import contextmanager
from tis.database.database import Database
from tis.marketplace.market import Market, MarketRules
from tis.marketplace.sheets.jobs import ImportWorker
market = Market(Database(sys.argv[1]), MarketRules())
@contextmanager
def killed():
    with market.writing() as session:
        yield session
        session.flush()
        os.kill(os.getpid(), signal.SIGKILL)
ImportWorker(market.reading, killed, market.search, market.find_principal).step()
"""


@pytest.mark.slow
def test_after_a_kill_in_a_batch_each_row_is_imported_once(strict_shop: Shop, strict_database_url: str) -> None:
    shop, database_url = strict_shop, strict_database_url  # which no server serves
    sheet = "name,price,category\n" + "Tas,50000,tas\n" * 5  # without a SKU, a second time would add products
    job = begin(shop, sheet)
    worker = worker_on(shop.market)
    assert worker.step() and state_of(shop, job) == ("running", 2)
    assert subprocess.run([sys.executable, "-c", _KILLED, database_url], cwd=REPOSITORY, timeout=60).returncode == -9
    assert state_of(shop, job) == ("running", 2)
    while worker.step():
        pass
    assert state_of(shop, job) == ("done", 5)
    with shop.market.reading() as session:
        count = select(func.count()).select_from(Product).where(Product.supplier_id == shop.id)
        assert session.scalar(count) == 5
