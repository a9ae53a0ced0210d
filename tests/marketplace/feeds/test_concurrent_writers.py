"""Whatever order transactions commit in, a reader that takes the feed once and then what changed misses nothing."""

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from sqlalchemy import select

from tests.marketplace.conftest import DATABASES, SECRET
from tests.marketplace.shop import Shop
from tis.database.database import Database
from tis.errors import NotFound
from tis.marketplace.feeds.feed_entries import FeedEntries
from tis.marketplace.feeds.feed_log import changed_batches, read_moment
from tis.marketplace.kit.feed_marks import store_marks
from tis.marketplace.kit.principal import Principal
from tis.marketplace.market import Market, MarketRules
from tis.marketplace.products.service import change_product, delete_product, restore_product
from tis.marketplace.suppliers.service import set_status
from tis.marketplace.tables import FeedChange, Product

_ANYBODY = Principal(is_open=True)
_ADMIN = Principal(account="user:0", is_admin=True)
# SQLite has one writer at a time: nobody commits late.
several_writers = pytest.mark.parametrize("database_url", DATABASES[1:], indirect=True, scope="module")


@pytest.fixture
def market(database_url: str) -> Iterator[Market]:
    market = Market(Database(database_url), MarketRules(jwt_secret=SECRET))
    yield market
    market.close()


class Copy:
    """What a reader has, who took all of it first and then asks for what changed."""

    def __init__(self, market: Market) -> None:
        self._market = market
        self._after = read_moment(market).latest
        self.prices = prices_of(market)

    def read(self) -> set[int]:
        moment, seen = read_moment(self._market), set[int]()
        entries = FeedEntries(self._market)
        for ids in changed_batches(self._market, self._after, moment.latest, 3):
            found = entries.batch(ids)
            seen |= set(ids)
            for one in ids:
                self.prices.pop(one, None)
            self.prices |= {one: entry.price for one, entry in found.items()}
        self._after = moment.latest
        return seen


def prices_of(market: Market) -> dict[int, int]:
    return {entry.id: entry.price for batch in FeedEntries(market).all_batches() for entry in batch}


def indexed_products(market: Market, number: int) -> list[int]:
    shop = Shop(market)
    ids = [shop.product() for _ in range(number)]
    with market.writing() as session:
        market.search.refresh(session, ids)
    return ids


def set_price(market: Market, product_id: int, price: int) -> None:
    with market.writing() as session:
        change_product(session, market.search, _ANYBODY, product_id, {"price": price})


@several_writers
def test_a_change_that_commits_after_the_reader_came_is_in_its_next_answer(market: Market) -> None:
    """Other writers changed and committed meanwhile: a number or a time taken by the late writer would lie behind the
    cursor."""
    late, quick = indexed_products(market, 2)
    copy = Copy(market)
    has_written, may_commit = threading.Event(), threading.Event()

    def write_late() -> None:
        with market.database.writing() as session:
            change_product(session, market.search, _ANYBODY, late, {"price": 111})
            store_marks(session)
            has_written.set()
            assert may_commit.wait(30)

    with ThreadPoolExecutor(1) as threads:
        writing = threads.submit(write_late)
        assert has_written.wait(30)
        set_price(market, quick, 222)
        assert copy.read() == {quick}
        assert copy.read() == set()
        may_commit.set()
        writing.result(30)
    assert copy.read() == {late}
    assert (copy.prices[late], copy.prices[quick]) == (111, 222)


@several_writers
def test_a_mark_that_a_late_writer_holds_gets_its_number_later(market: Market) -> None:
    [product_id] = indexed_products(market, 1)
    copy = Copy(market)
    set_price(market, product_id, 444)  # marked, and not numbered yet
    with market.database.writing() as session:
        change_product(session, market.search, _ANYBODY, product_id, {"price": 555})
        store_marks(session)
        with ThreadPoolExecutor(1) as threads:
            assert threads.submit(copy.read).result(30) == set()
    assert copy.read() == {product_id} and copy.prices[product_id] == 555


def test_a_change_that_is_rolled_back_is_none(market: Market) -> None:
    [product_id] = indexed_products(market, 1)
    copy = Copy(market)
    with pytest.raises(RuntimeError), market.writing() as session:
        change_product(session, market.search, _ANYBODY, product_id, {"price": 333})
        raise RuntimeError("away")
    assert copy.read() == set() and copy.prices == prices_of(market)


def test_a_product_that_changes_often_has_one_row(market: Market) -> None:
    [product_id] = indexed_products(market, 1)
    copy = Copy(market)
    for price in range(5):
        set_price(market, product_id, 1000 + price)
        assert copy.read() == {product_id}
    with market.reading() as session:
        rows = session.scalars(select(FeedChange).where(FeedChange.product_id == product_id)).all()
    assert len(rows) == 1


def test_a_reader_among_writers_ends_with_a_copy_of_the_feed(market: Market) -> None:
    goods = [indexed_products(market, 4) for _ in range(3)]
    suppliers = [supplier_of(market, ids[0]) for ids in goods]
    copies = [Copy(market) for _ in range(2)]
    is_over = threading.Event()

    def write(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(20):
            shop, roll = rng.randrange(len(goods)), rng.random()
            product_id, price = rng.choice(goods[shop]), rng.randrange(1, 10**6)
            # A product that is deleted already has no price to change.
            with suppress(NotFound), market.writing() as session:
                if roll < 0.1:
                    set_status(session, _ADMIN, market.search, suppliers[shop], rng.choice(["suspended", "active"]))
                elif roll < 0.2:
                    delete_product(session, market.search, _ANYBODY, product_id)
                elif roll < 0.4:
                    restore_product(session, market.search, _ANYBODY, product_id)
                else:
                    change_product(session, market.search, _ANYBODY, product_id, {"price": price})

    def read(copy: Copy) -> None:
        while not is_over.is_set():
            copy.read()

    with ThreadPoolExecutor(6) as threads:
        readers = [threads.submit(read, copy) for copy in copies]
        try:
            for one in [threads.submit(write, seed) for seed in range(4)]:
                one.result(120)
        finally:
            is_over.set()
        for one in readers:
            one.result(120)
    for copy in copies:
        copy.read()
        assert copy.prices == prices_of(market)


def supplier_of(market: Market, product_id: int) -> int:
    with market.reading() as session:
        return session.get_one(Product, product_id).supplier_id
