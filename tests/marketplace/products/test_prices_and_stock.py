"""Price history and stock movements of products."""

from datetime import datetime, timedelta
from itertools import pairwise

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select, update

from tests.marketplace.market_server import MarketServer, new_product
from tis.marketplace.columns import now
from tis.marketplace.products.product_detail import lowest_price_before
from tis.marketplace.tables import PriceChange, Product, StockMovement


def test_the_price_history_is_paged_newest_first(server: MarketServer, anybody: httpx2.Client) -> None:
    path = f"/api/products/{new_product(anybody, server.supplier(), price=100)['id']}"
    for price in (90, 95, 95, 80):
        anybody.put(path, json={"price": price, "name": f"for {price}"})
    anybody.put(path, json={"name": "the price stays"})
    history = anybody.get(f"{path}/price-history").json()
    assert [one["price"] for one in history] == [80, 95, 90, 100]
    moments = [datetime.fromisoformat(one["valid_from"]) for one in history]
    assert all(later >= earlier for later, earlier in pairwise(moments))

    pages, url = [], f"{path}/price-history?limit=3"
    while url:
        answer = anybody.get(url)
        pages.append([one["price"] for one in answer.json()])
        url = answer.links.get("next", {}).get("url", "")
    assert pages == [[80, 95, 90], [100]]
    assert "next" not in anybody.get(f"{path}/price-history?limit=4").links


@pytest.mark.parametrize("query", ["limit=0", "limit=-1", "limit=101", "before=0", "before=x", f"before={2**63}"])
def test_invalid_page_parameters_are_refused(server: MarketServer, anybody: httpx2.Client, query: str) -> None:
    product = new_product(anybody, server.supplier())
    assert anybody.get(f"/api/products/{product['id']}/price-history?{query}").status_code == 422


@pytest.mark.parametrize(
    ("prices", "lowest"),
    [
        ([(0, 100)], None),  # never changed
        ([(10, 100), (0, 80)], 100),
        ([(20, 100), (10, 90), (0, 80)], 90),
        ([(20, 70), (10, 90), (0, 80)], 70),
        ([(200, 70), (0, 80)], 70),  # began long ago, was in force until now
        ([(200, 60), (50, 70), (0, 80)], 70),  # 60 ended before the thirty days
        ([(31, 60), (29, 70), (0, 80)], 60),  # ended within them
        ([(300, 60), (250, 90), (200, 80)], 90),  # counted from the last change, not from today
        ([(220, 60), (210, 90), (200, 80)], 60),
    ],
)
def test_the_lowest_price_of_the_thirty_days_before_the_current_one(
    server: MarketServer, anybody: httpx2.Client, prices: list[tuple[int, int]], lowest: int | None
) -> None:
    product = new_product(anybody, server.supplier())
    with server.market.writing() as session:
        session.query(PriceChange).filter_by(product_id=product["id"]).delete()
        for days_ago, price in prices:
            began = now() - timedelta(days=days_ago)
            session.add(PriceChange(product_id=product["id"], price=price, valid_from=began))
            session.flush()
        assert lowest_price_before(session, product["id"]) == lowest
    assert anybody.get(f"/api/products/{product['id']}").json()["lowest_price_30d"] == lowest


def test_stock_cannot_be_set_below_what_is_reserved(server: MarketServer, anybody: httpx2.Client) -> None:
    product = new_product(anybody, server.supplier(), stock_quantity=10)
    path = f"/api/products/{product['id']}"
    with server.market.writing() as session:
        session.execute(update(Product).where(Product.id == product["id"]).values(reserved=4))
    refused = anybody.put(path, json={"stock_quantity": 3, "price": 1})
    assert (refused.status_code, refused.json()) == (
        409,
        {"detail": "4 units are reserved: stock_quantity cannot be 3."},
    )
    assert anybody.get(path).json()["price"] == product["price"]  # nothing of it was taken
    assert anybody.put(path, json={"stock_quantity": 4}).json()["available_quantity"] == 0


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=st.integers(0, 10**9), steps=st.lists(st.integers(0, 10**9), max_size=5))
def test_stock_on_hand_is_the_sum_of_all_movements(server: MarketServer, first: int, steps: list[int]) -> None:
    with server.as_("open") as anybody:
        product = new_product(anybody, server.supplier(), stock_quantity=first)
        for quantity in steps:
            anybody.put(f"/api/products/{product['id']}", json={"stock_quantity": quantity})
    with server.market.reading() as session:
        moved = select(func.sum(StockMovement.delta)).where(StockMovement.product_id == product["id"])
        assert session.scalar(moved) == [first, *steps][-1] == server.product_row(product["id"]).on_hand
