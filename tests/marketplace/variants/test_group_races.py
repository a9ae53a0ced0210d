"""Several at once: buyers who review variants, members who change the group, and the sums stay right."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
from sqlalchemy import func, select

from tests.marketplace.shop import Shop
from tests.marketplace.variants.test_groups import made_group
from tis.marketplace.kit.ratings import COUNTERS
from tis.marketplace.market import Market
from tis.marketplace.tables import Product, ProductFacts, ProductGroup

_NUM_VARIANTS = 3


def at_once(calls: list[Callable[[], httpx2.Response]]) -> list[int]:
    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result().status_code for future in [pool.submit(call) for call in calls]]


def variants_of(shop: Shop) -> list[int]:
    ids = [shop.product(5) for _ in range(_NUM_VARIANTS)]
    with shop.market.writing() as session:
        shop.market.search.refresh(session, ids)
    return ids


def test_reviews_of_several_variants_at_once_all_count(laptop: httpx2.Client, shop: Shop, open_market: Market) -> None:
    ids = variants_of(shop)
    group = made_group(laptop, shop, ids)["id"]
    buyers = [shop.auth_headers(f"user:{shop.user()}") for _ in range(9)]

    def review(number: int) -> Callable[[], httpx2.Response]:
        path, stars = f"/api/products/{ids[number % _NUM_VARIANTS]}/reviews", {"rating": 1 + number % 5}
        return lambda: laptop.post(path, json=stars, headers=buyers[number])

    assert at_once([review(number) for number in range(len(buyers))]) == [200] * len(buyers)
    with open_market.reading() as session:
        sums = [func.sum(getattr(Product, name)) for name in COUNTERS]
        of_products = tuple(map(int, session.execute(select(*sums).where(Product.group_id == group)).one()))
        kept = session.get_one(ProductGroup, group)
        assert tuple(getattr(kept, name) for name in COUNTERS) == of_products == (25, 9, 0, 0)
        ratings = select(ProductFacts.rating, ProductFacts.rating_rank).where(ProductFacts.product_id.in_(ids))
        assert set(session.execute(ratings)) == {(25 / 9, (5 * 3.5 + 25) / (5 + 9))}


def test_of_two_that_take_the_same_values_at_once_one_gets_them(laptop: httpx2.Client, shop: Shop) -> None:
    first, *others = variants_of(shop)
    group = made_group(laptop, shop, [first])["id"]

    def add(one: int) -> Callable[[], httpx2.Response]:
        new: dict[str, Any] = {"product_id": one, "values": {"ukuran": "44", "warna": "biru"}}
        return lambda: laptop.post(f"/api/product-groups/{group}/variants", json=new)

    assert sorted(at_once([add(one) for one in others])) == [200, 409]
    assert len(laptop.get(f"/api/product-groups/{group}").json()["variants"]) == 2


def test_a_group_is_gone_with_its_last_variants_that_leave_at_once(
    laptop: httpx2.Client, shop: Shop, open_market: Market
) -> None:
    ids = variants_of(shop)
    group = made_group(laptop, shop, ids)["id"]
    leaving: list[Callable[[], httpx2.Response]] = [
        lambda: laptop.delete(f"/api/products/{ids[0]}"),
        lambda: laptop.delete(f"/api/product-groups/{group}/variants/{ids[1]}"),
        lambda: laptop.delete(f"/api/products/{ids[2]}"),
    ]
    assert at_once(leaving) == [200, 200, 200]
    with open_market.reading() as session:
        assert session.get(ProductGroup, group) is None
        assert list(session.scalars(select(Product.group_id).where(Product.id.in_(ids)))) == [None] * _NUM_VARIANTS
