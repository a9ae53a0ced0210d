"""Fifty buyers order the last unit at once, and two movers move one order: one wins."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.marketplace.shop import Shop
from tis.database.errors import DatabaseUnavailable
from tis.errors import Conflict
from tis.marketplace.kit.principal import Principal
from tis.marketplace.orders.drafting import draft_order
from tis.marketplace.orders.moving import move_order
from tis.marketplace.orders.schemas import OrderForm

NUM_BUYERS = 50


def place(shop: Shop, user_id: int, *products: int) -> str:
    """The number of the order; why there is none."""
    items = [{"product_id": product, "quantity": 1} for product in products]
    form = OrderForm.model_validate({"items": items, "place": {"delivery": "pickup"}})
    while True:
        try:
            with shop.market.writing() as session:
                buyer = Principal(f"user:{user_id}", user_id)
                return draft_order(session, buyer, shop.market.search, form, shop.market.rules).id
        except Conflict as refused:
            return refused.message
        except DatabaseUnavailable:
            continue  # busy: a buyer may be asked to come again


@pytest.mark.slow
def test_one_of_fifty_buyers_gets_the_last_unit(shop: Shop) -> None:
    shop.takes_orders()
    last, plenty = shop.product(on_hand=1), shop.product(on_hand=NUM_BUYERS)
    buyers = [shop.user() for _ in range(NUM_BUYERS)]
    with ThreadPoolExecutor(NUM_BUYERS) as crowd:
        said = list(crowd.map(lambda buyer: place(shop, buyer, plenty, last), buyers))
    refused = [one for one in said if one == f"Only 0 left of product {last}"]
    assert len(refused) == NUM_BUYERS - 1
    for product, columns in ((last, (1, 1)), (plenty, (NUM_BUYERS, 1))):
        assert shop.stock_columns(product) == shop.stock_ledger(product) == columns


@pytest.mark.slow
def test_of_two_movers_at_once_one_wins_and_the_other_reads_the_state(shop: Shop) -> None:
    shop.takes_orders()
    product, user_id = shop.product(on_hand=20), shop.user()
    buyer = Principal(f"user:{user_id}", user_id)
    seller = Principal(f"supplier:{shop.id}", supplier_ids=frozenset([shop.id]))

    def move(order_id: str, who: Principal, target: str) -> str:
        try:
            with shop.market.writing() as session:
                return move_order(session, shop.market.search, who, order_id, target, reason="x").state  # type: ignore[arg-type]
        except Conflict as late:
            return late.message

    with ThreadPoolExecutor(2) as pool:
        for _ in range(5):
            order_id = place(shop, user_id, product)
            said = [pool.submit(move, order_id, *deed) for deed in ((buyer, "cancelled"), (seller, "refused"))]
            first, second = (one.result() for one in said)
            assert {first, second} in (
                {"cancelled", "This order is cancelled: that move is not open."},
                {"refused", "This order is refused: that move is not open."},
            )
    assert shop.stock_columns(product) == shop.stock_ledger(product) == (20, 0)
