"""Low stock once per fall, reviews, and holds that end soon once for each end."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import httpx2
import pytest
from sqlalchemy import select, update

from tests.marketplace.notices.test_notice_stream import hold, kept
from tests.marketplace.shop import Shop
from tests.marketplace.stock.test_reservations import end, reserve
from tis.marketplace.columns import now
from tis.marketplace.notices.preferences import save_preferences
from tis.marketplace.stock.reminders import tell_ends_soon
from tis.marketplace.tables import Reservation

BEFORE_END = timedelta(minutes=5)


@pytest.fixture
def seller(strict_shop: Shop) -> dict[str, str]:
    return strict_shop.auth_headers(f"supplier:{strict_shop.id}")


@pytest.fixture
def buyer(strict_shop: Shop) -> dict[str, str]:
    return strict_shop.auth_headers(f"user:{strict_shop.user()}")


def of_kind(client: httpx2.Client, headers: dict[str, str], kind: str) -> list[dict[str, object]]:
    return [one for one in kept(client, headers) if one["type"] == kind]


def test_low_stock_is_told_once_and_again_only_after_it_rose(
    internet: httpx2.Client, strict_shop: Shop, seller: dict[str, str], buyer: dict[str, str]
) -> None:
    with strict_shop.market.writing() as session:
        save_preferences(session, f"supplier:{strict_shop.id}", {"low_stock_below": 3})
    product = strict_shop.product(on_hand=5)
    holds = [hold(internet, product, buyer) for _ in range(4)]  # 4, 3, 2, 1 are left
    [low] = of_kind(internet, seller, "stock.low")
    assert (low["product_id"], low["available"], low["role"]) == (product, 2, "shop")
    end(internet, "release", holds[0], **buyer)
    hold(internet, product, buyer)
    assert len(of_kind(internet, seller, "stock.low")) == 1, "two were left: it had not risen"
    for one in holds[1:]:
        end(internet, "release", one, **buyer)
    hold(internet, product, buyer)
    hold(internet, product, buyer)
    assert len(of_kind(internet, seller, "stock.low")) == 2
    assert of_kind(internet, buyer, "stock.low") == []


def test_a_shop_that_set_no_limit_is_told_nothing(
    internet: httpx2.Client, strict_shop: Shop, seller: dict[str, str], buyer: dict[str, str]
) -> None:
    hold(internet, strict_shop.product(on_hand=1), buyer)
    assert of_kind(internet, seller, "stock.low") == []


def test_of_many_buyers_one_makes_the_stock_low(
    internet: httpx2.Client, strict_shop: Shop, seller: dict[str, str]
) -> None:
    with strict_shop.market.writing() as session:
        save_preferences(session, f"supplier:{strict_shop.id}", {"low_stock_below": 6})
    product = strict_shop.product(on_hand=10)
    buyers = [strict_shop.auth_headers(f"user:{strict_shop.user()}") for _ in range(10)]
    with ThreadPoolExecutor(5) as threads:
        answers = list(threads.map(lambda headers: reserve(internet, product, headers=headers), buyers))
    assert {one.status_code for one in answers} == {200}
    [low] = of_kind(internet, seller, "stock.low")
    assert low["available"] == 5


def test_a_shop_hears_of_a_review(internet: httpx2.Client, strict_shop: Shop, seller: dict[str, str]) -> None:
    product, author = strict_shop.product(), strict_shop.auth_headers(f"user:{strict_shop.user()}")
    review = internet.post(f"/api/products/{product}/reviews", json={"rating": 4}, headers=author).json()
    [told] = of_kind(internet, seller, "review.written")
    assert (told["review_id"], told["product_id"], told["rating"]) == (review["id"], product, 4)
    assert kept(internet, author) == []


def expires_in(shop: Shop, reservation_id: str, made_before: timedelta, ends_in: timedelta) -> None:
    with shop.market.writing() as session:
        times = {"created_at": now() - made_before, "expires_at": now() + ends_in}
        session.execute(update(Reservation).where(Reservation.id == reservation_id).values(**times))


def remind(shop: Shop) -> int:
    with shop.market.writing() as session:
        return tell_ends_soon(session, BEFORE_END)


def test_a_buyer_hears_once_that_a_hold_ends_soon(
    internet: httpx2.Client, strict_shop: Shop, seller: dict[str, str], buyer: dict[str, str]
) -> None:
    product = strict_shop.product()
    near, far, short = (hold(internet, product, buyer) for _ in range(3))
    expires_in(strict_shop, near, timedelta(minutes=11), timedelta(minutes=4))
    expires_in(strict_shop, far, timedelta(minutes=5), timedelta(minutes=10))
    expires_in(strict_shop, short, timedelta(), timedelta(minutes=1))
    with ThreadPoolExecutor(4) as threads:  # as many servers would
        for done in [threads.submit(remind, strict_shop) for _ in range(4)]:
            done.result()
    assert [one["reservation_id"] for one in of_kind(internet, buyer, "hold.ends_soon")] == [near]
    assert of_kind(internet, seller, "hold.ends_soon") == []


def test_a_hold_that_the_shop_made_longer_has_another_end(
    internet: httpx2.Client, strict_shop: Shop, seller: dict[str, str], buyer: dict[str, str]
) -> None:
    held = hold(internet, strict_shop.product(), buyer)
    expires_in(strict_shop, held, timedelta(minutes=11), timedelta(minutes=4))
    assert remind(strict_shop) == 1 and remind(strict_shop) == 0
    assert end(internet, "accept", held, **seller).status_code == 200
    assert remind(strict_shop) == 0, "fifteen minutes are left again"
    expires_in(strict_shop, held, timedelta(minutes=20), timedelta(minutes=4))
    assert remind(strict_shop) == 1
    assert len(of_kind(internet, buyer, "hold.ends_soon")) == 2


def test_a_reminder_and_its_mark_are_one_transaction(
    internet: httpx2.Client, strict_shop: Shop, buyer: dict[str, str]
) -> None:
    held = hold(internet, strict_shop.product(), buyer)
    expires_in(strict_shop, held, timedelta(minutes=11), timedelta(minutes=4))
    with pytest.raises(RuntimeError), strict_shop.market.writing() as session:
        assert tell_ends_soon(session, BEFORE_END) == 1
        raise RuntimeError
    with strict_shop.market.reading() as session:
        assert session.scalar(select(Reservation.reminded_at).where(Reservation.id == held)) is None
    assert of_kind(internet, buyer, "hold.ends_soon") == []
    remind(strict_shop)
    remind(strict_shop)
    assert len(of_kind(internet, buyer, "hold.ends_soon")) == 1
