"""A rush of orders on PostgreSQL, at a steady rate: how long each takes, and the longest wait for a lock.

`python benchmarks/orders_rush.py --url postgresql://... [--orders 1000] [--seconds 60]`; without a URL it starts a
PostgreSQL of its own. Each order is drafted and placed in one transaction; shops accept and hand over, some
buyers cancel. Waits are read from `pg_locks.waitstart` every few milliseconds, so that none of 100 ms is missed.
"""

import argparse
import statistics
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from sqlalchemy import text  # noqa: E402

from tests.marketplace.postgres import programs_of_postgres, running_postgres  # noqa: E402
from tests.marketplace.shop import Shop  # noqa: E402
from tis.database.database import Database  # noqa: E402
from tis.errors import Conflict  # noqa: E402
from tis.marketplace.context import ServiceRules  # noqa: E402
from tis.marketplace.kit.principal import Principal  # noqa: E402
from tis.marketplace.market import Market, MarketRules, migrate  # noqa: E402
from tis.marketplace.orders.drafting import draft_order  # noqa: E402
from tis.marketplace.orders.moving import move_order  # noqa: E402
from tis.marketplace.orders.schemas import OrderForm  # noqa: E402

_RULES = ServiceRules(
    max_open_orders_per_account=100_000, max_reservations_per_account=100_000, max_reserved_units_per_product=1_000_000
)
_LONGEST_WAIT = text("SELECT max(extract(epoch FROM clock_timestamp() - waitstart)) FROM pg_locks WHERE NOT granted")
_SAMPLE_SECONDS = 0.005
_NUM_THREADS, _NUM_SHOPS, _NUM_GOODS, _NUM_BUYERS = 8, 10, 100, 200


class LockWatch(threading.Thread):
    """Samples how long the transaction that waits longest has been waiting for a lock."""

    def __init__(self, database: Database) -> None:
        super().__init__(daemon=True)
        self._database, self._end = database, threading.Event()
        self.num_samples, self.num_waiting, self.longest = 0, 0, 0.0

    def run(self) -> None:
        while not self._end.wait(_SAMPLE_SECONDS):
            with self._database.reading() as session:
                waited = session.scalar(_LONGEST_WAIT)
            self.num_samples += 1
            if waited is not None:
                self.num_waiting += 1
                self.longest = max(self.longest, float(waited))

    def stop(self) -> None:
        self._end.set()
        self.join()


class Rush:
    def __init__(self, market: Market, seed: int = 1) -> None:
        self.market, self.random = market, Random(seed)
        self.shops = [Shop(market) for _ in range(_NUM_SHOPS)]
        for shop in self.shops:
            shop.takes_orders()
        self.goods = {
            shop.id: [shop.product(on_hand=1_000_000, price=10_000) for _ in range(_NUM_GOODS // _NUM_SHOPS)]
            for shop in self.shops
        }
        self.buyers = [self.shops[0].user() for _ in range(_NUM_BUYERS)]
        self.seconds: dict[str, list[float]] = {"order": [], "move": []}
        self.refused: Counter[str] = Counter()

    def one_order(self, number: int) -> None:
        random = Random(number)
        shop, user_id = random.choice(self.shops).id, random.choice(self.buyers)
        goods = random.sample(self.goods[shop], random.randint(1, 4))
        items = [{"product_id": product, "quantity": random.randint(1, 3)} for product in goods]
        form = OrderForm.model_validate({"items": items, "place": {"delivery": "pickup"}})
        buyer, seller = Principal(f"user:{user_id}", user_id), Principal(f"supplier:{shop}", None, frozenset([shop]))
        begin = time.perf_counter()
        with self.market.writing() as session:
            order_id = draft_order(session, buyer, self.market.search, form, _RULES).id
        self.seconds["order"].append(time.perf_counter() - begin)
        moves = [(seller, "accepted"), (seller, "handed_over"), (buyer, "received")]
        for who, target in [(buyer, "cancelled")] if number % 5 == 0 else moves:
            begin = time.perf_counter()
            try:
                with self.market.writing() as session:
                    move_order(session, self.market.search, who, order_id, target, _RULES)  # type: ignore[arg-type]
            except Conflict as late:
                self.refused[late.message] += 1
            self.seconds["move"].append(time.perf_counter() - begin)

    def run(self, orders: int, seconds: float) -> float:
        """Orders begin at a steady rate, whether those before have ended or not. Returns how long all took."""
        begin = time.perf_counter()
        with ThreadPoolExecutor(_NUM_THREADS) as pool:
            waiting = []
            for number in range(orders):
                time.sleep(max(0.0, begin + number * seconds / orders - time.perf_counter()))
                waiting.append(pool.submit(self.one_order, number))
            for one in waiting:
                one.result()
        return time.perf_counter() - begin

    def adds_up(self) -> bool:
        return all(
            shop.stock_columns(product) == shop.stock_ledger(product)
            for shop in self.shops
            for product in self.goods[shop.id]
        )


def measured(url: str, orders: int, seconds: float) -> str:
    database = Database(url)
    migrate(database)
    market, watched = Market(database, MarketRules(jwt_secret="benchmarks sign nothing, but need a key")), Database(url)
    rush, watch = Rush(market), LockWatch(watched)
    watch.start()
    took = rush.run(orders, seconds)
    watch.stop()
    lines = [f"{orders} orders in {took:.1f} s ({orders / took * 60:,.0f} a minute); stock adds up: {rush.adds_up()}"]
    lines += [
        f"{what}: {len(times)} transactions, median {statistics.median(times) * 1000:.0f} ms, "
        f"p99 {sorted(times)[int(len(times) * 0.99)] * 1000:.0f} ms, longest {max(times) * 1000:.0f} ms"
        for what, times in rush.seconds.items()
    ]
    lines.append(
        f"waits for locks: longest {watch.longest * 1000:.0f} ms, in {watch.num_waiting} of {watch.num_samples} samples"
    )
    if rush.refused:
        lines.append(f"refused: {dict(rush.refused)}")
    market.close()
    watched.close()
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url")
    parser.add_argument("--orders", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    with ExitStack() as stack:
        url = options.url
        if url is None:
            programs = programs_of_postgres()
            if programs is None:
                raise SystemExit("no PostgreSQL here: name one with --url")
            url = stack.enter_context(running_postgres(programs)).new_database("rush")
        print(measured(url, options.orders, options.seconds))


if __name__ == "__main__":
    main()
