"""`tis seed --size` makes a market that looks like one, the same for the same seed, and indexed."""

from pathlib import Path
from statistics import median
from typing import Any

import pytest
from sqlalchemy import func, select

from tests.databases import new_sqlite
from tests.marketplace.conftest import SECRET
from tis.cli.main import main
from tis.database.database import Database
from tis.marketplace.feeds.feed_log import read_moment
from tis.marketplace.market import Market, MarketRules
from tis.marketplace.search.query import PageRequest, ProductQuery
from tis.marketplace.seed import commands
from tis.marketplace.tables import PriceChange, Product, Review, StockMovement, Supplier, User


@pytest.fixture
def market(database_url: str) -> Any:
    market = Market(Database(database_url), MarketRules(jwt_secret=SECRET))
    commands.bring_up_to_date(market.database)
    yield market
    market.close()


def rows_of(market: Market) -> list[tuple[Any, ...]]:
    """What does not depend on the ids that the database gives."""
    goods = select(Product.sku, Product.name, Product.price, Product.on_hand, Product.rating_sum, Supplier.email)
    reviews = select(Product.sku, Review.rating, Review.body, User.email)
    with market.reading() as session:
        found = session.execute(goods.join(Supplier).order_by(Product.sku)).all()
        said = session.execute(
            reviews.join(Product, Product.id == Review.product_id).join(User).order_by(Product.sku, User.email)
        ).all()
    return [tuple(row) for row in [*found, *said]]


def test_a_market_is_made_once_and_is_whole(market: Market) -> None:
    assert commands.add_market(market.database, 600, 7).startswith("Added a made-up market of 600 products")
    assert "there already" in commands.add_market(market.database, 600, 7)
    with pytest.raises(commands.SeedingRefused, match="--reset"):
        commands.add_market(market.database, 601, 7)
    with market.reading() as session:
        assert session.scalar(select(func.count()).select_from(Product)) == 600
        assert session.scalar(select(func.count()).select_from(Supplier)) == 12
        assert (session.scalar(select(func.count(func.distinct(Supplier.city)))) or 0) > 5
        counted = dict(iter(session.execute(select(Review.product_id, func.count()).group_by(Review.product_id))))
        products = session.scalars(select(Product)).all()
        assert {one.id: one.rating_count for one in products if one.rating_count} == counted
        assert 0.15 < len(counted) / 600 < 0.5
        prices: dict[str, list[int]] = {}
        for one in products:
            prices.setdefault(one.category, []).append(one.price)
        assert median(prices["smartphone"]) > 10 * median(prices["phone-case"])
        moved = dict(iter(session.execute(select(StockMovement.product_id, StockMovement.delta))))
        assert moved == {one.id: one.on_hand for one in products if one.on_hand}
        assert session.scalar(select(func.count()).select_from(PriceChange)) == 600
    with market.reading() as session:
        found = market.search.find(session, ProductQuery(text="smartphone"), PageRequest(limit=5))
        assert found.hits and all("phone" in hit.product.category for hit in found.hits)
    assert read_moment(market).latest > 0


def test_the_same_seed_makes_the_same_market(tmp_path: Path) -> None:
    made = []
    for name, seed in (("a.db", 1), ("b.db", 1), ("c.db", 2)):
        market = Market(Database(new_sqlite(tmp_path, name)), MarketRules(jwt_secret=SECRET))
        commands.add_market(market.database, 120, seed)
        made.append(rows_of(market))
        market.close()
    assert made[0] == made[1] != made[2]


def test_the_command_adds_it_to_the_sample(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path}/market.db"
    main(["seed", "--size", "50", "--seed", "3", "--database-url", url])
    said = capsys.readouterr().out
    assert "Added a made-up market of 50 products" in said and "5 suppliers" in said
    main(["seed", "--size", "50", "--seed", "3", "--database-url", url])
    assert "the made-up market of 50 products is there already" in capsys.readouterr().out.lower()
