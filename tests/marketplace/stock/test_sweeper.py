"""The sweeper releases expired reservations exactly once."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from sqlalchemy.orm import Session

from tests.marketplace.conftest import SECRET
from tests.marketplace.shop import Shop
from tests.serving import MovedClock, served, settings_with
from tests.test_status import until
from tis.arguments.marketplace import market_rules_of
from tis.marketplace.kit.principal import Principal
from tis.marketplace.stock import service as stock
from tis.marketplace.stock.sweeper import Sweeper

ANYBODY = Principal(is_open=True)


class RecordingIndex:
    """Of a search, the part that is told what to look at again."""

    def __init__(self) -> None:
        self.refreshed: list[int] = []

    def refresh(self, session: Session, product_ids: Iterable[int]) -> None:
        self.refreshed += product_ids

    def news(self) -> list[int]:
        news, self.refreshed = self.refreshed, []
        return news


def hold(shop: Shop, product: int, quantity: int, search: Any = None) -> str:
    with shop.market.writing() as session:
        made = stock.reserve(session, ANYBODY, search or shop.market.search, product, quantity, 600)
        return made.id


def sweeper_of(shop: Shop, search: Any = None) -> Sweeper:
    return Sweeper(shop.market.reading, shop.market.writing, search or shop.market.search)


def test_only_expired_reservations_are_released(shop: Shop) -> None:
    product = shop.product(on_hand=10)
    kept, lost, sold = (hold(shop, product, quantity) for quantity in (1, 2, 4))
    with shop.market.writing() as session:
        stock.commit(session, ANYBODY, shop.market.search, sold)
    for one in (lost, sold):
        shop.make_due(one)
    assert sweeper_of(shop).sweep() == 1
    assert sweeper_of(shop).sweep() == 0
    assert shop.stock_columns(product) == shop.stock_ledger(product) == (6, 1)
    with shop.market.reading() as session:
        assert [stock.get_reservation(session, ANYBODY, one).status for one in (kept, lost)] == ["held", "expired"]


def test_concurrent_sweeps_release_each_reservation_once(shop: Shop) -> None:
    products = [shop.product(on_hand=40) for _ in range(3)]
    for number in range(60):
        shop.make_due(hold(shop, products[number % 3], 2))
    # Buyers at the same moment, who sweep what they need.
    buyers = [products[number % 3] for number in range(6)]
    with ThreadPoolExecutor(10) as pool:
        sweeps = [pool.submit(sweeper_of(shop).sweep) for _ in range(4)]
        bought = [pool.submit(hold, shop, product, 1) for product in buyers]
        assert sum(sweep.result() for sweep in sweeps) <= 60 and all(one.result() for one in bought)
    sweeper_of(shop).sweep()
    assert [shop.stock_columns(product) for product in products] == [(40, 2)] * 3
    assert [shop.stock_ledger(product) for product in products] == [(40, 2)] * 3


def test_the_search_index_is_refreshed_when_stock_runs_out_and_returns(shop: Shop) -> None:
    product = shop.product(on_hand=3)
    index: Any = RecordingIndex()
    first = hold(shop, product, 2, index)
    assert index.news() == []
    second = hold(shop, product, 1, index)
    assert index.news() == [product]
    with shop.market.writing() as session:
        stock.commit(session, ANYBODY, index, first)
    assert index.news() == []
    shop.make_due(second)
    sweeper_of(shop, index).sweep()
    assert index.news() == [product]


def test_a_server_sweeps_by_itself(shop: Shop, database_url: str) -> None:
    settings = settings_with(database_url=database_url, jwt_secret_key=SECRET)
    rules = replace(market_rules_of(settings), sweep_seconds=0.02)
    product = shop.product(on_hand=3)
    held = hold(shop, product, 3)
    with served(settings, market_rules=rules):
        shop.make_due(held)
        until(lambda: shop.stock_columns(product) == (3, 0))
    with shop.market.reading() as session:
        assert stock.get_reservation(session, ANYBODY, held).status == "expired"


def test_the_hourly_job_runs_at_start_and_after_an_hour(shop: Shop) -> None:
    clock, sweeps, times = MovedClock(), list[int](), list[int]()

    @contextmanager
    def reading() -> Iterator[Session]:
        sweeps.append(1)
        with shop.market.reading() as session:
            yield session

    def sweeps_go_on() -> None:
        there = len(sweeps)
        until(lambda: len(sweeps) > there + 2)

    sweeper = Sweeper(
        reading, shop.market.writing, shop.market.search, lambda: times.append(1), interval_seconds=0.01, clock=clock
    )
    sweeper.start()
    try:
        until(lambda: bool(times))
        clock.move(3500)
        sweeps_go_on()
        assert len(times) == 1
        clock.move(200)
        until(lambda: len(times) == 2)
    finally:
        sweeper.stop()
