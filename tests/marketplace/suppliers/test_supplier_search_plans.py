"""Words and places are read from an index; no search of suppliers reads all of them."""

from collections.abc import Iterator

import httpx2
import pytest

from tests.marketplace.conftest import SECRET
from tests.marketplace.test_list_plans import recorded_queries
from tests.marketplace.world import new_world
from tis.database.database import Database
from tis.marketplace.market import Market, MarketRules

NEAR = "user_lat=-6.2&user_lon=106.8"


@pytest.fixture(scope="module")
def market(strict_database_url: str) -> Iterator[Market]:
    market = Market(Database(strict_database_url), MarketRules(jwt_secret=SECRET))
    new_world(market)
    yield market
    market.close()


@pytest.mark.parametrize(
    ("query", "index"),
    [
        ("q=toko+jaya", "words"),
        (f"q=toko+jaya&{NEAR}&category=fan&open_now=1", "words"),
        (f"{NEAR}&radius_km=5", "places"),
        (f"{NEAR}&radius_km=5&category=fan&open_now=1", "places"),
    ],
)
def test_a_search_of_suppliers_is_read_from_an_index(
    market: Market, internet: httpx2.Client, query: str, index: str
) -> None:
    with recorded_queries(market.database.dialect) as queries:
        assert internet.get(f"/api/suppliers?{query}").status_code == 200
    searches = [(statement, values) for statement, values in queries if " AS km" in statement]
    assert searches
    is_sqlite = market.database.dialect == "sqlite"
    with market.reading() as session:
        connection = session.connection()
        if not is_sqlite:
            connection.exec_driver_sql("SET LOCAL enable_seqscan = off")  # in tables as small as these it reads all
        for statement, values in searches:
            explain = "EXPLAIN QUERY PLAN " if is_sqlite else "EXPLAIN "
            steps = [str(row[-1]) for row in connection.exec_driver_sql(explain + statement, values)]
            assert not any(step.startswith("SCAN supplier") or "Seq Scan" in step for step in steps), steps
            expected = "supplier_words" if index == "words" else "ix_suppliers_public_latitude_public_longitude"
            assert any(expected in step and ("SEARCH" in step or "Index" in step) for step in steps), steps
