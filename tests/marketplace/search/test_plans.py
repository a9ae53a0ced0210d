"""Query plans: with the tables in the wrong order, a search takes a hundred times as long."""

from collections.abc import Iterator

import pytest

from tests.marketplace.search.conftest import JAKARTA, SECRET
from tis.database.database import Database
from tis.marketplace.kit.geo import Point
from tis.marketplace.market import Market, MarketRules
from tis.marketplace.search.backends.choose import choose_backend
from tis.marketplace.search.candidates import candidate_query
from tis.marketplace.search.cursor import ResolvedQuery
from tis.marketplace.search.query import ProductQuery
from tis.marketplace.search.sql import run
from tis.marketplace.search.text_query import Term, TermGroup, TextMatch, TextQuery
from tis.marketplace.seed.large_catalogue import insert_catalogue

pytestmark = pytest.mark.slow

GAMING = TextMatch(TextQuery((TermGroup((Term(("gaming",)),)),)))
LAPTOPS = ResolvedQuery(categories=("laptop",))


@pytest.fixture(scope="module")
def large(database_url: str) -> Iterator[Market]:
    market = Market(Database(database_url), MarketRules(jwt_secret=SECRET))
    with market.writing() as session:
        insert_catalogue(session, market.search, 10_000)
    yield market
    market.close()


def plan(
    market: Market, query: ProductQuery, resolved: ResolvedQuery, match: TextMatch | None, tail: str = ""
) -> list[str]:
    """The lines of `EXPLAIN`."""
    candidates = candidate_query(choose_backend(market.database), query, resolved, match, query.radius_km)
    explain = "EXPLAIN QUERY PLAN " if market.database.dialect == "sqlite" else "EXPLAIN (ANALYZE, TIMING OFF) "
    with market.reading() as session:
        return [
            str(row[-1])
            for row in run(session, explain + candidates.with_clause + candidates.select("1", tail), candidates.values)
        ]


def test_the_text_index_is_read_once_for_any_number_of_suppliers_in_the_radius(large: Market) -> None:
    steps = plan(large, ProductQuery("gaming", origin=Point(*JAKARTA), radius_km=25.0), ResolvedQuery(), GAMING)
    if large.database.dialect == "sqlite":
        first, second = steps
        assert "VIRTUAL TABLE" in first and "PRIMARY KEY" in second
    else:
        text_steps = [step for step in steps if "product_words" in step]
        assert text_steps and all("loops=1)" in step for step in text_steps if "loops=" in step)
        assert not any("suppliers" in step for step in steps)


def test_without_a_text_the_suppliers_in_the_radius_are_read_first(large: Market) -> None:
    query = ProductQuery(category="laptop", origin=Point(*JAKARTA), radius_km=25.0)
    steps = plan(large, query, LAPTOPS, None)
    if large.database.dialect == "sqlite":
        assert any("ix_suppliers_public_latitude_public_longitude" in step for step in steps)
        assert any("ix_product_search_supplier (supplier_id=? AND category_key=?" in step for step in steps)
    else:
        assert all("loops=1)" in step for step in steps if " on suppliers" in step)
        assert not any("Seq Scan on product_search" in step for step in steps)


def test_a_page_sorted_by_price_comes_from_an_index(large: Market) -> None:
    query = ProductQuery(category="laptop", sort="price_asc")
    steps = plan(large, query, LAPTOPS, None, "ORDER BY p.price, p.product_id LIMIT 20")
    assert any("ix_product_search_category_price" in step for step in steps)
    assert not any("TEMP B-TREE" in step or "Sort" in step for step in steps)


def test_the_best_rated_products_come_from_an_index_and_only_they_are_looked_up(large: Market) -> None:
    query = ProductQuery("gaming", max_price=10**9)
    steps = plan(large, query, ResolvedQuery(), None, "ORDER BY p.rating_rank DESC, p.product_id DESC LIMIT 80")
    assert any("ix_product_search_rating" in step for step in steps)
    assert not any("TEMP B-TREE" in step or "Sort" in step for step in steps)
    index = choose_backend(large.database)
    with large.reading() as session:
        ids = [product_id for [product_id] in run(session, "SELECT product_id FROM product_search LIMIT 100")]
        matching = index.matching(session, GAMING, ids)
        source = index.match_source(GAMING)
        sql = f"{source.with_clause}SELECT p.product_id FROM {source.tables}"
        where = f" WHERE {' AND '.join(source.conditions)}" if source.conditions else ""
        every = {product_id for [product_id] in run(session, sql + where, source.values)}
        assert matching == every & set(ids) and 0 < len(matching) < 100
        estimate = index.estimate(session, GAMING, 100)
    assert estimate is not None and len(every) / 2 < estimate < len(every) * 2
