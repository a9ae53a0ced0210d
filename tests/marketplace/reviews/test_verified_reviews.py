"""Reviews by buyers of a completed sale are marked, and count like three others."""

from typing import Any

import httpx2
import pytest

from tests.marketplace.accounts import all_at_once
from tests.marketplace.shop import Shop
from tests.marketplace.stock.test_reservations import end, reserve
from tis.marketplace.tables import Product


def buy(client: httpx2.Client, shop: Shop, product: int, who: dict[str, str], how: str = "commit") -> str:
    held = str(reserve(client, product, headers=who).json()["id"])
    assert end(client, how, held, **shop.auth_headers(f"supplier:{shop.id}")).status_code == 200
    return held


def write(client: httpx2.Client, product: int, rating: int, who: dict[str, str]) -> dict[str, Any]:
    answer = client.post(f"/api/products/{product}/reviews", json={"rating": rating}, headers=who)
    assert answer.status_code == 200, answer.text
    review: dict[str, Any] = answer.json()
    return review


def user(shop: Shop) -> dict[str, str]:
    return shop.auth_headers(f"user:{shop.user()}")


def rating(client: httpx2.Client, product: int) -> tuple[float | None, int]:
    shown = client.get(f"/api/products/{product}").json()
    return shown["rating"], shown["rating_count"]


def test_only_reviews_after_a_sale_are_marked(internet: httpx2.Client, strict_shop: Shop) -> None:
    product, other = strict_shop.product(on_hand=9), strict_shop.product(on_hand=9)
    bought, refused, elsewhere, nothing = (user(strict_shop) for _ in range(4))
    buy(internet, strict_shop, product, bought)
    buy(internet, strict_shop, product, refused, "refuse")
    buy(internet, strict_shop, other, elsewhere)
    reserve(internet, product, headers=nothing)
    marks = [write(internet, product, 5, who)["verified_purchase"] for who in (bought, refused, elsewhere, nothing)]
    assert marks == [True, False, False, False]
    listed = internet.get(f"/api/products/{product}/reviews").json()
    assert [one["verified_purchase"] for one in listed] == marks[::-1]


def test_a_review_by_a_buyer_counts_like_three_others(internet: httpx2.Client, strict_shop: Shop) -> None:
    product, bought = strict_shop.product(), user(strict_shop)
    buy(internet, strict_shop, product, bought)
    write(internet, product, 1, user(strict_shop))
    mine = write(internet, product, 5, bought)
    assert rating(internet, product) == (4, 2)  # (1 + 3 * 5) / 4
    assert rank(strict_shop, product) == pytest.approx((5 * 3.5 + 16) / 9)
    internet.put(f"/api/reviews/{mine['id']}", json={"rating": 3}, headers=bought)
    assert rating(internet, product) == (2.5, 2)
    assert internet.delete(f"/api/reviews/{mine['id']}", headers=bought).status_code == 200
    assert rating(internet, product) == (1, 1)
    assert rank(strict_shop, product) == pytest.approx((5 * 3.5 + 1) / 6)
    assert write(internet, product, 3, bought)["verified_purchase"] is True
    assert rating(internet, product) == (2.5, 2)


def rank(shop: Shop, product: int) -> float:
    with shop.market.reading() as session:
        return session.get_one(Product, product).rating_rank


def test_a_later_sale_marks_the_review_of_the_buyer_once(internet: httpx2.Client, strict_shop: Shop) -> None:
    product, early = strict_shop.product(on_hand=9), user(strict_shop)
    written = write(internet, product, 5, early)
    write(internet, product, 1, user(strict_shop))
    assert (written["verified_purchase"], rating(internet, product)) == (False, (3, 2))
    for _ in range(2):
        buy(internet, strict_shop, product, early)
        [_, marked] = internet.get(f"/api/products/{product}/reviews").json()
        assert marked == written | {"verified_purchase": True}
        assert rating(internet, product) == (4, 2)


def test_a_hidden_review_of_a_buyer_counts_when_it_is_shown_again(internet: httpx2.Client, strict_shop: Shop) -> None:
    product, early = strict_shop.product(), user(strict_shop)
    admin = strict_shop.auth_headers(f"user:{strict_shop.user(role='admin')}")
    path = f"/api/reviews/{write(internet, product, 5, early)['id']}/status"
    internet.put(path, json={"status": "hidden"}, headers=admin)
    buy(internet, strict_shop, product, early)
    assert rating(internet, product) == (None, 0)
    write(internet, product, 1, user(strict_shop))
    shown = internet.put(path, json={"status": "published"}, headers=admin).json()
    assert (shown["verified_purchase"], rating(internet, product)) == (True, (4, 2))


def test_a_sale_and_a_review_at_once_find_each_other(internet: httpx2.Client, strict_shop: Shop) -> None:
    shop = strict_shop.auth_headers(f"supplier:{strict_shop.id}")
    for _ in range(4):
        product, who = strict_shop.product(), user(strict_shop)
        sold = f"/api/reservations/{reserve(internet, product, headers=who).json()['id']}/commit"
        answers = all_at_once(
            internet,
            lambda client, path=sold: client.post(path, headers=shop),  # type: ignore[misc]
            lambda client, product=product, who=who: client.post(  # type: ignore[misc]
                f"/api/products/{product}/reviews", json={"rating": 5}, headers=who
            ),
        )
        assert [answer.status_code for answer in answers] == [200, 200]
        [review] = internet.get(f"/api/products/{product}/reviews").json()
        assert review["verified_purchase"] is True
        with strict_shop.market.reading() as session:
            row = session.get_one(Product, product)
            assert (row.rating_count, row.rating_sum, row.verified_count, row.verified_sum) == (1, 5, 1, 5)
