"""Query plans: with the tables in the wrong order, a search takes a hundred times as long."""

from collections.abc import Iterator

import pytest

from tests.marketplace.search.conftest import JAKARTA, SECRET
from tis.database.database import Database
from tis.marketplace.kit.geo import Point
from tis.marketplace.market import Market, MarketRules
from tis.marketplace.search.backends import choose_backend
from tis.marketplace.search.candidates import candidate_query
from tis.marketplace.search.filter_keys import STOCKED, FilterKeys, ids_with_stock, rare_filters
from tis.marketplace.search.query import AttributeFilter, ProductQuery
from tis.marketplace.search.sql import run
from tis.marketplace.search.text_query import Term, TermGroup, TextMatch, TextQuery
from tis.marketplace.seed.large_catalogue import insert_catalogue

pytestmark = [pytest.mark.slow, pytest.mark.long]

GAMING = TextMatch(TextQuery((TermGroup((Term(("gaming",)),)),)))
LAPTOPS = FilterKeys(categories=("laptop",))


@pytest.fixture(scope="module")
def large(database_url: str) -> Iterator[Market]:
    market = Market(Database(database_url), MarketRules(jwt_secret=SECRET))
    with market.writing() as session:
        insert_catalogue(session, market.search, 10_000)
    yield market
    market.close()


def plan(market: Market, query: ProductQuery, keys: FilterKeys, match: TextMatch | None, tail: str = "") -> list[str]:
    """The lines of `EXPLAIN`."""
    candidates = candidate_query(choose_backend(market.database), query, keys, match, query.radius_km)
    explain = "EXPLAIN QUERY PLAN " if market.database.dialect == "sqlite" else "EXPLAIN (ANALYZE, TIMING OFF) "
    with market.reading() as session:
        return [str(row[-1]) for row in run(session, explain + candidates.select("1", tail), candidates.values)]


def test_the_text_index_is_read_once_for_any_number_of_suppliers_in_the_radius(large: Market) -> None:
    steps = plan(large, ProductQuery("gaming", origin=Point(*JAKARTA), radius_km=25.0), FilterKeys(), GAMING)
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


def test_the_variants_of_a_group_come_from_an_index_and_a_look_for_any_from_the_same(large: Market) -> None:
    explain = "EXPLAIN QUERY PLAN " if large.database.dialect == "sqlite" else "EXPLAIN "
    for condition in ("IN (1, 2, 3)", "IS NOT NULL LIMIT 1"):
        with large.reading() as session:
            sql = f"SELECT product_id, group_id FROM product_search WHERE group_id {condition}"
            steps = [str(row[-1]) for row in run(session, explain + sql)]
        assert any("ix_product_search_group" in step for step in steps), steps


BY_PRICE = "ORDER BY p.price, p.product_id LIMIT 20"


def test_an_excluded_word_is_no_search_for_each_row(large: Market) -> None:
    in_text = plan(large, ProductQuery("gaming", exclude_terms=("bekas",)), FilterKeys(), GAMING)
    in_list = plan(large, ProductQuery(exclude_terms=("bekas",), sort="price_asc"), FilterKeys(), None, BY_PRICE)
    if large.database.dialect == "sqlite":
        assert len([step for step in in_text if "VIRTUAL TABLE" in step]) == 1
        assert in_list[0] == "SCAN p USING INDEX ix_product_search_price" and "LIST SUBQUERY 1" in in_list[1]
        assert not any("CORRELATED" in step or "TEMP B-TREE FOR ORDER" in step for step in in_list)
    else:
        assert not any("SubPlan" in step for step in in_text + in_list)
        assert any("Anti Join" in step for step in in_list)


def test_stock_and_shop_are_read_of_the_rows_of_a_page_only(large: Market) -> None:
    query = ProductQuery(quantity=2, fulfilment="delivery", origin=Point(*JAKARTA), sort="price_asc")
    steps = plan(large, query, FilterKeys(), None, BY_PRICE)
    assert any("ix_product_search_price" in step for step in steps)
    if large.database.dialect == "sqlite":
        assert len([step for step in steps if "USING INTEGER PRIMARY KEY" in step]) == 2
    else:
        assert any("pk_products" in step for step in steps) and any("suppliers" in step for step in steps)
        assert not any("Seq Scan on products" in step or "Sort" in step for step in steps)


def test_products_are_read_by_their_ids_and_not_near_the_buyer(large: Market) -> None:
    query = ProductQuery(product_ids=(1, 2, 3), origin=Point(*JAKARTA), radius_km=100.0, sort="distance")
    first, *_ = plan(large, query, FilterKeys(product_ids=query.product_ids), None)
    assert "PRIMARY KEY" in first or "pk_product_search" in first


def test_a_quantity_that_no_product_has_is_known_from_an_index(large: Market) -> None:
    with large.reading() as session:
        assert ids_with_stock(session, 10**9, 1000) == [] and ids_with_stock(session, 2, 1000) is None
        explain = "EXPLAIN QUERY PLAN " if large.database.dialect == "sqlite" else "EXPLAIN "
        steps = run(session, explain + STOCKED, {"quantity": 10**9, "max_products": 9})
        assert any("ix_products_on_hand" in str(row[-1]) for row in steps)


@pytest.mark.parametrize("is_rare", [False, True])
def test_attributes_are_looked_up_by_product_behind_the_text(large: Market, is_rare: bool) -> None:
    ram = AttributeFilter("ram_gb", "gte", (16.0,))
    query, rare = ProductQuery("gaming", attributes=(ram,)), (ram,) if is_rare else ()
    steps = plan(large, query, FilterKeys(rare_attributes=rare), GAMING)
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
        keys = FilterKeys(rare_attributes=rare_filters(session, [few], 100))
        assert rare_filters(session, [few, AttributeFilter("color", "ne", keys=("hitam",))], 0) == ()
    steps = plan(large, ProductQuery(attributes=(few,)), keys, None, "ORDER BY p.product_id LIMIT 20")
    assert any("ix_product_attributes_name_number" in step for step in steps)
    assert not any("Seq Scan" in step or "SCAN p" in step for step in steps)


def test_the_best_rated_products_come_from_an_index_and_only_they_are_looked_up(large: Market) -> None:
    query = ProductQuery("gaming", max_price=10**9)
    steps = plan(large, query, FilterKeys(), None, "ORDER BY p.rating_rank DESC, p.product_id DESC LIMIT 80")
    assert any("ix_product_search_rating" in step for step in steps)
    assert not any("TEMP B-TREE" in step or "Sort" in step for step in steps)
    index = choose_backend(large.database)
    with large.reading() as session:
        ids = [product_id for [product_id] in run(session, "SELECT product_id FROM product_search LIMIT 100")]
        matching = index.matching(session, GAMING, ids)
        source = index.match_source(GAMING)
        every = {product_id for [product_id] in run(session, source.select("p.product_id"), source.values)}
        assert matching == every & set(ids) and 0 < len(matching) < 100
        estimate = index.estimate(session, GAMING, 100)
    assert estimate is not None and len(every) / 2 < estimate < len(every) * 2
