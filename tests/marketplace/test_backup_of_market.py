"""Backups of the marketplace while shops write, restored: `tis backup` of SQLite and `pg_dump` of PostgreSQL."""

import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import func, select

from tests.databases import new_sqlite
from tests.marketplace.postgres import Postgres
from tests.marketplace.shop import Shop
from tis.cli.backup import copy_database
from tis.database.database import Database
from tis.marketplace.market import Market, MarketRules, migrate
from tis.marketplace.tables import Product, StockMovement

_RULES = MarketRules(jwt_secret="0" * 32)


@contextmanager
def market_on(url: str) -> Iterator[Market]:
    database = Database(url)
    migrate(database)  # as a server does that starts on it
    market = Market(database, _RULES)
    yield market
    market.close()


@contextmanager
def selling(market: Market) -> Iterator[list[int]]:
    """Each product with its stock in one transaction; its number is here once that is committed. Yields after fifty."""
    shop = Shop(market)
    committed: list[int] = []
    begun, stop = threading.Event(), threading.Event()

    def write() -> None:
        while not stop.is_set():
            with market.writing() as session:
                laptop = {"name": "Laptop", "category": "laptop", "category_key": "laptop", "price": 9_000_000}
                product = Product(supplier_id=shop.id, on_hand=3, **laptop)
                session.add(product)
                session.flush()
                session.add(StockMovement(product_id=product.id, delta=3, kind="initial"))
                number = product.id
            committed.append(number)
            if len(committed) == 50:
                begun.set()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert begun.wait(30)
        yield committed
    finally:
        stop.set()
        thread.join()


def check_backup(url: str, back_up: Callable[[], str]) -> None:
    """`back_up` returns the URL of what it restored."""
    with market_on(url) as market:
        with selling(market) as committed:
            before = set(committed)
            restored_url = back_up()
            assert len(committed) > len(before), "nothing was written while the copy was made"
        written = set(committed)
    with market_on(restored_url) as restored, restored.reading() as session:
        found = set(session.scalars(select(Product.id)))
        moved = select(StockMovement.product_id, func.sum(StockMovement.delta)).group_by(StockMovement.product_id)
        ledger = {product: int(delta) for product, delta in session.execute(moved)}
        assert before <= found <= written
        assert ledger == dict.fromkeys(found, 3), "a transaction is there in part"


def test_sqlite_is_copied_while_shops_write(tmp_path: Path) -> None:
    def copy() -> str:
        copy_database(tmp_path / "market.db", tmp_path / "copy.db")
        return f"sqlite:///{tmp_path}/copy.db"

    check_backup(new_sqlite(tmp_path), copy)


@pytest.mark.slow
def test_postgresql_is_dumped_while_shops_write(postgres: Postgres, tmp_path: Path) -> None:
    """The commands of docs/deploy.md, with the socket of this test."""
    connection = ["--host", str(postgres.folder), "--username", "postgres"]
    dump = str(tmp_path / "market.dump")

    def dump_and_restore() -> str:
        def run(program: str, *arguments: str) -> None:
            subprocess.run([postgres.programs / program, *connection, *arguments], check=True, timeout=60)

        run("pg_dump", "--format", "custom", "--file", dump, "backed_up")
        url = postgres.new_database("restored", "template0")
        run("pg_restore", "--exit-on-error", "--no-owner", "--dbname", "restored", dump)
        return url

    check_backup(postgres.new_market("backed_up"), dump_and_restore)
