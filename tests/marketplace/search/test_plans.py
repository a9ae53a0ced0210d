"""Query plans: with the tables in the wrong order, a search takes a hundred times as long."""

from collections.abc import Iterator

import pytest

from tests.marketplace.search.conftest import JAKARTA, SECRET
from tis.database.database import Database
from tis.marketplace.kit.geo import Point
from tis.marketplace.market import Market, MarketRules
from tis.marketplace.search.attribute_filter import AttributeFilter, rare_filters
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


@pytest.mark.parametrize("is_rare", [False, True])
def test_attributes_are_looked_up_by_product_behind_the_text(large: Market, is_rare: bool) -> None:
    ram = AttributeFilter("ram_gb", "gte", (16.0,))
    query, rare = ProductQuery("gaming", attributes=(ram,)), (ram,) if is_rare else ()
    steps = plan(large, query, ResolvedQuery(rare_attributes=rare), GAMING)
    of_attributes = [step for step in steps if " a USING" in step or "product_attributes" in step]
    if large.database.dialect == "sqlite":
        [text, products, *_] = [step for step in steps if "SCAN f" in step or "SEARCH p" in step]
        assert "VIRTUAL TABLE" in text and "PRIMARY KEY" in products
        assert ["USING COVERING INDEX ix_product_attributes_name_number" if is_rare else "USING PRIMARY KEY"] == [
            step.partition(" a ")[2].partition(" (")[0] for step in of_attributes
        ]
    else:
        text_steps = [step for step in steps if "product_words" in step]
        assert text_steps and all("loops=1)" in step for step in text_steps if "loops=" in step)
        assert of_attributes and not any("Seq Scan on product_attributes" in step for step in steps)
        if not is_rare:
            assert all("pk_product_attributes" in step for step in of_attributes)


def test_without_a_text_products_of_a_rare_attribute_are_read_first(large: Market) -> None:
    few = AttributeFilter("weight_g", "eq", (777.0,))
    with large.reading() as session:
        resolved = ResolvedQuery(rare_attributes=rare_filters(session, [few], 100))
        assert rare_filters(session, [few, AttributeFilter("color", "ne", keys=("hitam",))], 0) == ()
    steps = plan(large, ProductQuery(attributes=(few,)), resolved, None, "ORDER BY p.product_id LIMIT 20")
    assert any("ix_product_attributes_name_number" in step for step in steps)
    assert not any("Seq Scan" in step or "SCAN p" in step for step in steps)
