"""A catalogue that a test fills, on SQLite."""

from collections.abc import Iterator

import pytest
from sqlalchemy import delete

from tests.databases import new_sqlite
from tests.marketplace.search.conftest import Catalogue
from tis.database.database import Database
from tis.marketplace.market import Market, MarketRules
from tis.marketplace.tables import Lexeme, Product, Supplier


@pytest.fixture(scope="module")
def empty_market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Market]:
    url = new_sqlite(tmp_path_factory.mktemp("finding"))
    market = Market(Database(url), MarketRules(jwt_secret="a secret of the tests, long enough to be taken"))
    yield market
    market.close()


@pytest.fixture
def catalogue(empty_market: Market) -> Iterator[Catalogue]:
    yield Catalogue(empty_market)
    with empty_market.writing() as session:
        for table in (Product, Supplier, Lexeme):
            session.execute(delete(table))
