"""Every database gives the same lists: of 300 products and 40 judged queries, two pages each."""

import csv
import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.marketplace.mariadb import MariaDB
from tests.marketplace.postgres import Postgres
from tests.marketplace.search.conftest import SECRET
from tests.serving import REPOSITORY
from tis.database.database import Database
from tis.marketplace.kit.fields import key_of
from tis.marketplace.kit.geo import Point
from tis.marketplace.market import Market, MarketRules
from tis.marketplace.places.gazetteer import gazetteer
from tis.marketplace.search.backends.text_index import TextIndex
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.search.query import PageRequest, ProductQuery, SearchLimits
from tis.marketplace.tables import Product, Supplier

pytestmark = pytest.mark.long

_FOLDER = REPOSITORY / "benchmarks" / "judged_queries"
_NUM_PRODUCTS, _NUM_QUERIES, _PAGE = 300, 40, 5
_HERE = Point(-6.2088, 106.8456)
VARIANTS: list[dict[str, Any]] = [
    {},
    {"origin": _HERE},
    {"sort": "price_asc"},
    {"sort": "rating", "max_price": 2_000_000},
    {"origin": _HERE, "sort": "distance"},
    {"sort": "newest", "available_only": False},
    {"origin": _HERE, "radius_km": 60.0},
    {"sort": "price_desc", "min_rating": 4.0},
    {"origin": Point(-7.2575, 112.7521), "condition": "new"},
    {"city": "Jawa Barat"},
]


def read_products() -> list[dict[str, str]]:
    with (_FOLDER / "catalogue.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return random.Random(7).sample(rows, _NUM_PRODUCTS)


def read_queries() -> list[ProductQuery]:
    lines = (_FOLDER / "seen.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line)["query"] for line in lines]
    chosen = texts[:: len(texts) // _NUM_QUERIES][:_NUM_QUERIES]
    # Two ways each, so that every filter and order is there with and without rare words.
    return [
        ProductQuery(text, **VARIANTS[(number + shift) % len(VARIANTS)])
        for number, text in enumerate(chosen)
        for shift in (0, 1)
    ]


def filled_market(url: str, index: TextIndex | None = None) -> Market:
    market = Market(Database(url), MarketRules(jwt_secret=SECRET))
    if index:
        market.search = ProductSearch(index)
    shops: dict[str, Supplier] = {}
    start = datetime(2026, 1, 1, tzinfo=UTC)
    with market.writing() as session:
        products = []
        for number, row in enumerate(read_products()):
            if row["shop"] not in shops:
                shops[row["shop"]] = _supplier(row, len(shops))
                session.add(shops[row["shop"]])
                session.flush()
            products.append(_product(row, shops[row["shop"]].id, start + timedelta(minutes=number * 7 % 50)))
        for product in products:
            session.add(product)
            session.flush()  # one by one, so that the ids are the same
        market.search.refresh(session, [product.id for product in products])
    return market


def _supplier(row: dict[str, str], number: int) -> Supplier:
    email = f"shop{number}@example.com"
    [place, *_] = gazetteer().meaning(row["city"]) or gazetteer().meaning(row["province"])
    return Supplier(
        name=row["shop"],
        business_name=row["shop"],
        email=email,
        email_key=email,
        city=row["city"],
        city_key=key_of(row["city"]),
        province=row["province"],
        latitude=place.latitude,
        longitude=place.longitude,
    )


def _product(row: dict[str, str], supplier_id: int, created_at: datetime) -> Product:
    category, rating = row["category"].rpartition("/")[2], float(row["rating"] or 0)
    return Product(
        supplier_id=supplier_id,
        sku=row["sku"],
        name=row["name"],
        description=row["description"],
        brand=row["brand"] or None,
        price=int(row["price"]),
        condition=row["condition"],
        tags=row["tags"],
        category=category,
        category_key=key_of(category),
        attributes=json.loads(row["attributes"] or "{}"),
        on_hand=int(row["stock"] or 0),
        granted_rating=rating,
        rating_rank=rating,
        created_at=created_at,
    )


def two_pages(market: Market, search: ProductSearch, query: ProductQuery) -> list[Any]:
    pages: list[Any] = []
    cursor = None
    with market.reading() as session:
        for _ in range(2):
            found = search.find(session, query, PageRequest(_PAGE, cursor=cursor))
            pages.append([hit.product.id for hit in found.hits])
            pages.append((found.total, found.corrected, found.relaxed))
            if (cursor := found.next_cursor) is None:
                break
    return pages


@pytest.fixture(scope="module")
def on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Market]:
    market = filled_market(f"sqlite:///{tmp_path_factory.mktemp('same')}/market.db")
    yield market
    market.close()


def lists(market: Market) -> dict[ProductQuery, list[Any]]:
    return {query: two_pages(market, market.search, query) for query in read_queries()}


@pytest.fixture(scope="module")
def expected(on_sqlite: Market) -> dict[ProductQuery, list[Any]]:
    return lists(on_sqlite)


def test_the_queries_find_something_and_have_second_pages(expected: dict[ProductQuery, list[Any]]) -> None:
    assert len(expected) == 2 * _NUM_QUERIES
    assert sum(bool(found[0]) for found in expected.values()) > _NUM_QUERIES
    assert sum(len(found) > 2 for found in expected.values()) > _NUM_QUERIES // 3


def test_large_tiers_are_as_small_ones(on_sqlite: Market, expected: dict[ProductQuery, list[Any]]) -> None:
    walking = ProductSearch(on_sqlite.search.index, SearchLimits(max_sorted=0))
    short = [query for query in expected if len((query.text or "").split()) <= 2][::3]
    assert [query for query in short if two_pages(on_sqlite, walking, query) != expected[query]] == []
    assert {bool(query.origin) for query in short} == {True, False}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_other_databases_give_the_lists_of_sqlite(
    request: pytest.FixtureRequest, expected: dict[ProductQuery, list[Any]], kind: str
) -> None:
    server: Postgres | MariaDB = request.getfixturevalue("postgres" if kind == "postgresql" else kind)
    market = filled_market(server.new_database("same_lists"))
    try:
        found = lists(market)
    finally:
        market.close()
    assert [query for query in expected if found[query] != expected[query]] == []


def test_a_database_without_a_text_index_gives_the_same_lists(
    tmp_path: Path, expected: dict[ProductQuery, list[Any]]
) -> None:
    market = filled_market(f"sqlite:///{tmp_path}/market.db", TextIndex(least_function="min"))
    try:
        others = [query for query in list(expected)[::3] if two_pages(market, market.search, query) != expected[query]]
    finally:
        market.close()
    assert others == []
