"""The large catalogue is deterministic and realistic."""

from pathlib import Path

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from tests.databases import new_sqlite
from tis.database.database import Database
from tis.marketplace.market import Market, MarketRules
from tis.marketplace.seed.large_catalogue import count_catalogue, insert_catalogue
from tis.marketplace.tables import PriceChange, Product, StockMovement, Supplier

pytestmark = pytest.mark.long


def market_with(url: str, products: int) -> Market:
    market = Market(Database(url), MarketRules())
    with market.writing() as session:
        insert_catalogue(session, market.search, products)
    return market


def names_in(session: Session) -> list[str]:
    return list(session.scalars(select(Product.name).order_by(Product.sku)))


def test_the_catalogue_has_one_supplier_per_fifty_products(database_url: str) -> None:
    market = market_with(database_url, 2000)
    with market.reading() as session:
        assert count_catalogue(session) == 2000
        assert session.scalar(select(func.count()).select_from(Supplier)) == 40
        assert session.scalar(select(func.count(func.distinct(Product.category_key)))) == 29
        # Some of everything that a search must leave out.
        for hidden in (Product.on_hand == 0, ~Product.is_available, Product.deleted_at.is_not(None)):
            assert 10 < (session.scalar(select(func.count()).where(hidden)) or 0) < 300
    market.close()


def test_stock_and_prices_have_a_history(market: Market) -> None:
    with market.writing() as session:
        insert_catalogue(session, market.search, 500)
    with market.reading() as session:
        movements = select(StockMovement.product_id, func.sum(StockMovement.delta)).group_by(StockMovement.product_id)
        moved = {product_id: int(delta) for product_id, delta in session.execute(movements)}
        products = session.scalars(select(Product)).all()
        assert all(moved.get(product.id, 0) == product.on_hand for product in products)
        priced = dict(iter(session.execute(select(PriceChange.product_id, PriceChange.price))))
        assert priced == {product.id: product.price for product in products}


def test_the_same_number_makes_the_same_catalogue(market: Market, tmp_path: Path) -> None:
    with market.writing() as session:
        insert_catalogue(session, market.search, 300)
    other = market_with(new_sqlite(tmp_path, "other.db"), 300)
    with market.reading() as one, other.reading() as another:
        assert names_in(one) == names_in(another)
    other.close()
