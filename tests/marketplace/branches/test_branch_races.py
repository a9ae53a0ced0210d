"""Many buyers at one place of a shop, and units that move while they are wanted: none is sold twice, none is lost."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx2
import pytest
from sqlalchemy import select, text

from tests.marketplace.accounts import all_at_once
from tests.marketplace.branches.places import SpreadShop, add_branch, stock
from tests.marketplace.shop import Shop
from tests.test_status import until
from tis.marketplace.kit.branch_shares import UnitsAt
from tis.marketplace.stock.counters import release_units
from tis.marketplace.tables import Branch, GoodsPlace

pytestmark = pytest.mark.long


@pytest.fixture
def till(internet: httpx2.Client, strict_shop: Shop) -> SpreadShop:
    return SpreadShop(internet, strict_shop)


def hold(client: httpx2.Client, product: int, who: dict[str, str], **wish: Any) -> httpx2.Response:
    return client.post(f"/api/products/{product}/reservations", json={"quantity": 1, **wish}, headers=who)


def buyers(shop: Shop, number: int) -> list[dict[str, str]]:
    return [shop.auth_headers(f"user:{shop.user()}") for _ in range(number)]


def test_one_of_many_buyers_gets_the_last_unit_at_a_place(till: SpreadShop) -> None:
    branch, product = add_branch(till.shop), till.shop.product(on_hand=20)
    till.correct(product, 1, branch)
    wanted = [partial(hold, product=product, who=who, branch_id=branch) for who in buyers(till.shop, 8)]
    answers = [answer.status_code for answer in all_at_once(till.client, *wanted)]
    assert sorted(answers) == [200] + [409] * 7
    assert stock(till.shop, product) == {0: (20, 0), branch: (1, 1)}


def test_buyers_who_name_no_place_get_all_units_of_all_places(till: SpreadShop) -> None:
    branch, product = add_branch(till.shop), till.shop.product(on_hand=3)
    till.correct(product, 3, branch)
    wanted = [partial(hold, product=product, who=who) for who in buyers(till.shop, 8)]
    answers = [answer.status_code for answer in all_at_once(till.client, *wanted)]
    assert sorted(answers) == [200] * 6 + [409] * 2
    assert stock(till.shop, product) == {0: (3, 3), branch: (3, 3)}


def test_transfers_and_holds_of_the_same_units_do_not_both_get_them(till: SpreadShop) -> None:
    branch, product = add_branch(till.shop), till.shop.product(on_hand=0)
    till.correct(product, 4, branch)

    def move(client: httpx2.Client, source: int, target: int) -> httpx2.Response:
        body = {"quantity": 2, "from_branch_id": source, "to_branch_id": target}
        return client.post(f"/api/products/{product}/stock-transfers", json=body, headers=till.seller)

    holds = [partial(hold, product=product, who=who, branch_id=branch) for who in buyers(till.shop, 5)]
    moves = [partial(move, source=branch, target=0), partial(move, source=branch, target=0)]
    answers = all_at_once(till.client, *holds, *moves)
    held, moved = (sum(name in answer.json() for answer in answers) for name in ("unit_price", "places"))
    assert {answer.status_code for answer in answers} <= {200, 409}
    assert stock(till.shop, product) == {0: (2 * moved, 0), branch: (4 - 2 * moved, held)}


def test_a_place_is_not_closed_while_units_come(till: SpreadShop) -> None:
    branch, product = add_branch(till.shop), till.shop.product(on_hand=2)

    def close(client: httpx2.Client) -> httpx2.Response:
        path = f"/api/suppliers/{till.shop.id}/branches/{branch}"
        return client.put(path, json={"is_active": False}, headers=till.seller)

    def bring(client: httpx2.Client) -> httpx2.Response:
        body = {"quantity": 1, "from_branch_id": 0, "to_branch_id": branch}
        return client.post(f"/api/products/{product}/stock-transfers", json=body, headers=till.seller)

    answers = all_at_once(till.client, close, bring)
    assert sorted(answer.status_code for answer in answers) == [200, 409]
    brought = any("places" in answer.json() for answer in answers)
    assert stock(till.shop, product).get(branch, (0, 0)) == (int(brought), 0)


def test_goods_that_come_back_while_their_place_moves_are_where_it_is_now(till: SpreadShop) -> None:
    branch, product = add_branch(till.shop), till.shop.product(on_hand=3)
    till.correct(product, 1, branch)
    till.hold(product, 1, branch_id=branch)
    market = till.shop.market
    is_postgresql = market.database.dialect == "postgresql"
    with ThreadPoolExecutor(1) as pool:
        with market.writing() as session:
            release_units(session, market.search, {UnitsAt(product, branch): 1})
            moved = pool.submit(till.change, branch, latitude=-6.95, longitude=107.65)
            if is_postgresql:
                until(lambda: moved.done() or is_anybody_waiting(till.shop))
        assert moved.result().status_code == 200
    with market.reading() as session:
        [row] = session.scalars(select(GoodsPlace).where(GoodsPlace.branch_id == branch))
        place = session.get_one(Branch, branch)
        assert (row.latitude, row.longitude) == (place.public_latitude, place.public_longitude)


def is_anybody_waiting(shop: Shop) -> bool:
    with shop.market.reading() as session:
        waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        return session.scalar(text(waiting)) is not None
