"""A catalogue that a test fills. Each test runs with every full-text backend."""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from tests.databases import new_sqlite
from tests.marketplace.postgres import Postgres
from tis.database.database import Database
from tis.marketplace.kit.fields import key_of
from tis.marketplace.market import Market, MarketRules
from tis.marketplace.products.service import lock_supplier_shared
from tis.marketplace.search.backends.text_index import TextIndex
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.search.query import PageRequest, ProductQuery, SearchLimits, SearchResults
from tis.marketplace.search.vocabulary_cache import expire_categories
from tis.marketplace.tables import Lexeme, Product, ProductGroup, Supplier, Synonym

SECRET = "a secret of the tests, long enough to be taken"
JAKARTA, BANDUNG, SURABAYA = (-6.2088, 106.8456), (-6.9175, 107.6191), (-7.2575, 112.7521)
_numbers = itertools.count(1)


def lock_supplier(session: Session, supplier_id: int) -> Supplier:
    """As every caller that changes a supplier."""
    return session.get_one(Supplier, supplier_id, with_for_update={"key_share": True})


@dataclass
class Catalogue:
    market: Market
    default_shop: int | None = None
    search: ProductSearch = field(init=False)

    def __post_init__(self) -> None:
        self.search = self.market.search

    def limit_search(self, **limits: Any) -> None:
        self.search = ProductSearch(self.market.search.index, SearchLimits(**limits))

    def shop(self, city: str = "Jakarta", place: tuple[float, float] = JAKARTA, **values: Any) -> int:
        email = f"shop{next(_numbers)}@example.com"
        latitude, longitude = place
        row = Supplier(
            name="Budi",
            email=email,
            email_key=email,
            city=city,
            city_key=key_of(city),
            **{"business_name": f"Toko {city}", "latitude": latitude, "longitude": longitude, "shows_place": True}
            | values,
        )
        with self.market.writing() as session:
            session.add(row)
            session.flush()
            return row.id

    def put(self, name: str, **values: Any) -> int:
        [product_id] = self.put_all([{"name": name, **values}])
        return product_id

    def put_all(self, products: Iterable[dict[str, Any]]) -> list[int]:
        """In one transaction, in the order of their ids."""
        rows = [self._row(**product) for product in products]
        with self.market.writing() as session:
            for shop in sorted({row.supplier_id for row in rows}):
                lock_supplier_shared(session, shop)  # as every caller that adds products
            session.add_all(rows)
            session.flush()
            ids = [row.id for row in rows]
            self.search.refresh(session, ids)
        return ids

    def _row(self, name: str, shop: int | None = None, category: str = "goods", **values: Any) -> Product:
        if shop is None:
            shop = self.default_shop = self.default_shop or self.shop()
        columns = {"price": 1_000_000, "on_hand": 5, **values}
        return Product(supplier_id=shop, name=name, category=category, category_key=key_of(category), **columns)

    def change(self, product_id: int, **values: Any) -> None:
        with self.market.writing() as session:
            if "deleted_at" in values:
                lock_supplier_shared(
                    session, select(Product.supplier_id).where(Product.id == product_id).scalar_subquery()
                )
            row = session.get_one(Product, product_id, with_for_update={"key_share": True})
            for name, value in values.items():
                setattr(row, name, value)
            self.search.refresh(session, [product_id])

    def change_shop(self, supplier_id: int, **values: Any) -> None:
        with self.market.writing() as session:
            row = lock_supplier(session, supplier_id)
            for name, value in values.items():
                setattr(row, name, value)
            self.search.refresh_supplier(session, supplier_id)

    def synonym(self, term: str, means: str, category: str | None = None) -> None:
        with self.market.writing() as session:
            session.merge(Synonym(term=term, means=means, category=category))
            expire_categories(session)

    def find(self, text: str | None = None, *, limit: int = 50, skip: int = 0, **values: Any) -> SearchResults:
        with self.market.reading() as session:
            query = self.search.read(session, ProductQuery(text=text, **values)).query
            return self.search.find(session, query, PageRequest(limit, skip))

    def names(self, text: str | None = None, **values: Any) -> list[str]:
        return [hit.product.name for hit in self.find(text, **values).hits]


@pytest.fixture(scope="module", params=["sqlite", "like", pytest.param("postgresql", marks=pytest.mark.slow)])
def market_of_backend(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Market]:
    if request.param == "postgresql":
        postgres: Postgres = request.getfixturevalue("postgres")
        url = postgres.new_market(f"search_{next(_numbers)}")
    else:
        url = new_sqlite(tmp_path_factory.mktemp("search"))
    market = Market(Database(url), MarketRules(jwt_secret=SECRET))
    if request.param == "like":
        market.search = ProductSearch(TextIndex(least_function="min"))
    yield market
    market.close()


@pytest.fixture
def catalogue(market_of_backend: Market) -> Iterator[Catalogue]:
    yield Catalogue(market_of_backend)
    with market_of_backend.writing() as session:
        for table in (Product, ProductGroup, Supplier, Lexeme):
            session.execute(delete(table))
