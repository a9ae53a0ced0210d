"""Concurrent buyers, in threads and processes, one of which is killed: all units are sold, and none twice."""

import multiprocessing
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx2
import pytest

from tests.faults.forms import short_or_long
from tests.marketplace.shop import Shop
from tests.marketplace.stock import buyers

pytestmark = pytest.mark.long

NUM_UNITS = short_or_long(400, 10_000)


class BuyersProcess:
    def __init__(self, url: str, product: int, threads: int) -> None:
        # A process that has imported the marketplace forks them: an import takes longer than to buy.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([buyers.__name__])
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=buyers.main, args=(url, product, threads, theirs))
        self.process.start()
        theirs.close()

    def until_ready(self) -> None:
        assert self.connection.poll(60) and self.connection.recv() == "ready"

    def go(self) -> None:
        self.connection.send("go")

    def result(self) -> tuple[int, int, int]:
        """Held, of these sold, and how often the database was not to be had."""
        assert self.connection.poll(600)
        held, sold, refused = self.connection.recv()
        self.process.join(60)
        assert self.process.exitcode == 0
        return held, sold, refused

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


@contextmanager
def crowd(url: str, product: int, processes: int = 4, threads: int = 4) -> Iterator[list[BuyersProcess]]:
    started = [BuyersProcess(url, product, threads) for _ in range(processes)]
    try:
        for one in started:
            one.until_ready()
        yield started
    finally:
        for one in started:
            one.kill()


@pytest.mark.slow
def test_concurrent_buyers_never_oversell(shop: Shop, database_url: str) -> None:
    product = shop.product(on_hand=NUM_UNITS)
    with crowd(database_url, product) as together:
        for one in together:
            one.go()
        results = [one.result() for one in together]
    held, sold, refused = (sum(numbers) for numbers in zip(*results, strict=True))
    assert (held, refused) == (NUM_UNITS, 0)
    assert shop.stock_columns(product) == shop.stock_ledger(product) == (NUM_UNITS - sold, held - sold)


@pytest.mark.slow
def test_a_killed_buyer_leaves_no_partial_transaction(shop: Shop, database_url: str) -> None:
    product = shop.product(on_hand=NUM_UNITS)
    with crowd(database_url, product) as [victim, *others]:
        victim.go()
        until(lambda: shop.stock_columns(product)[1] >= 20)
        for one in others:
            one.go()
        until(lambda: shop.stock_columns(product)[1] >= NUM_UNITS // 4)
        victim.kill()
        results = [one.result() for one in others]
    held, sold, refused = (sum(numbers) for numbers in zip(*results, strict=True))
    assert victim.process.exitcode and victim.process.exitcode < 0 and refused == 0 and 0 < held < NUM_UNITS
    on_hand, reserved = shop.stock_columns(product)
    # What the victim held or bought is neither lost nor sold again.
    assert shop.stock_ledger(product) == (on_hand, reserved) and on_hand == reserved <= NUM_UNITS - sold


def until(fact: Callable[[], bool]) -> None:
    end = time.monotonic() + 300
    while not fact():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_concurrent_buyers_over_http_never_oversell(laptop: httpx2.Client, shop: Shop) -> None:
    product = shop.product(on_hand=100)

    def buy() -> tuple[int, set[int]]:
        bought, statuses = 0, set()
        while True:
            answer = laptop.post(f"/api/products/{product}/reservations", json={"quantity": 1})
            if answer.status_code == 503 and "retry-after" in answer.headers:
                continue  # on a busy machine a buyer may be asked to come again
            statuses.add(answer.status_code)
            if answer.status_code != 200:
                return bought, statuses
            bought += 1

    with ThreadPoolExecutor(16) as crowd:
        results = [one.result() for one in [crowd.submit(buy) for _ in range(16)]]
    assert sum(bought for bought, _ in results) == 100
    assert set().union(*(statuses for _, statuses in results)) == {200, 409}
    assert shop.stock_columns(product) == shop.stock_ledger(product) == (100, 100)
