"""How many reservations a second many threads get through: of one product, and of a thousand."""

import threading
import time
from collections import Counter

from sqlalchemy import select, update

from tis.database.database import Database
from tis.errors import ServiceError
from tis.marketplace.kit.principal import Principal
from tis.marketplace.market import Market, MarketRules
from tis.marketplace.seed import commands as seed_commands
from tis.marketplace.stock import service as stock
from tis.marketplace.tables import Product, Supplier

_CALLER = Principal(is_open=True)


def reserve_together(url: str, threads: int, seconds: float) -> str:
    market = Market(Database(url), MarketRules(jwt_secret="benchmarks sign nothing, but need a key"))
    seed_commands.bring_up_to_date(market.database)
    seed_commands.add_large_catalogue(market.database, 2000)
    with market.writing() as session:
        session.execute(update(Product).values(on_hand=1_000_000, reserved=0, is_available=True, deleted_at=None))
    with market.reading() as session:
        open_shops = Product.supplier_id.in_(select(Supplier.id).where(Supplier.status == "active"))
        ids = list(session.scalars(select(Product.id).where(open_shops).order_by(Product.id).limit(1000)))
    lines = [
        f"\n{market.database.dialect}, {threads} threads, {seconds:g} s each\n",
        "| reserve | transactions/s | refused |",
        "|---|---|---|",
    ]
    for what, wanted in (("one product", ids[:1]), ("a thousand products", ids)):
        told = _run(market, wanted, threads, seconds)
        lines.append(f"| {what} | {told['held'] / seconds:,.0f} | {told['refused']} |")
    market.close()
    return "\n".join(lines)


def _run(market: Market, ids: list[int], threads: int, seconds: float) -> Counter[str]:
    told: Counter[str] = Counter()
    lock = threading.Lock()
    end = time.monotonic() + seconds

    def work(number: int) -> None:
        mine: Counter[str] = Counter()
        while time.monotonic() < end:
            number += threads
            try:
                with market.writing() as session:
                    stock.reserve(session, _CALLER, market.search, ids[number % len(ids)], 1, 900)
                mine["held"] += 1
            except ServiceError:
                mine["refused"] += 1
        with lock:
            told.update(mine)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return told
