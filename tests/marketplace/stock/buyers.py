"""A process full of buyers of one product.

Sends `ready`, waits for a word, and buys unit by unit until there are none left. Every second holding becomes a sale.
Sends at the end how many it held, how many of these it sold, and how often the database was not to be had.
"""

import threading
from multiprocessing.connection import Connection

from tis.database.database import Database
from tis.database.errors import DatabaseUnavailable
from tis.errors import Conflict
from tis.marketplace.kit.principal import Principal
from tis.marketplace.market import Market, MarketRules
from tis.marketplace.stock import service as stock

ANYBODY = Principal(is_open=True)


class BuyerThread(threading.Thread):
    def __init__(self, market: Market, product: int, start: threading.Event) -> None:
        super().__init__()
        self.market, self.product, self.go = market, product, start
        self.held = self.sold = self.refused = 0

    def run(self) -> None:
        self.go.wait()
        while True:
            try:
                self._buy()
            except Conflict:
                return
            except DatabaseUnavailable:
                self.refused += 1

    def _buy(self) -> None:
        with self.market.writing() as session:
            made = stock.reserve(session, ANYBODY, self.market.search, self.product, 1, 600).id
        self.held += 1
        if self.held % 2:
            with self.market.writing() as session:
                stock.commit(session, ANYBODY, self.market.search, made)
            self.sold += 1


def main(url: str, product: int, num_threads: int, parent: "Connection[object, object]") -> None:
    market = Market(Database(url), MarketRules(jwt_secret="x" * 32))
    with market.reading():
        start = threading.Event()
        buyers = [BuyerThread(market, product, start) for _ in range(num_threads)]
    for buyer in buyers:
        buyer.start()
    parent.send("ready")
    parent.recv()
    start.set()
    for buyer in buyers:
        buyer.join()
    parent.send(tuple(sum(getattr(buyer, name) for buyer in buyers) for name in ("held", "sold", "refused")))
    market.close()
