"""The numbers of a shop are what happened, by the days of its own time zone."""

from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from sqlalchemy import select

from tests.marketplace.shop import Shop
from tis.marketplace.columns import LocalDay, now
from tis.marketplace.kit.opening_hours import local_time
from tis.marketplace.tables import Reservation, Review, Supplier

_PRICE = 9_000_000


def hold(shop: Shop, product: int, begun: datetime, status: str, quantity: int = 1, accepted: bool = True) -> None:
    ended = None if status == "held" else begun + timedelta(minutes=5)
    with shop.market.writing() as session:
        session.add(
            Reservation(
                id=str(uuid4()),
                product_id=product,
                quantity=quantity,
                status=status,
                created_at=begun,
                accepted_at=begun if accepted else None,
                expires_at=begun + timedelta(minutes=15),
                ended_at=ended,
            )
        )


def numbers(client: httpx2.Client, shop: Shop, weeks: int = 1) -> dict[str, Any]:
    owner = shop.auth_headers(f"supplier:{shop.id}")
    answer = client.get(f"/api/suppliers/{shop.id}/numbers?weeks={weeks}", headers=owner)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def noon(days_ago: int) -> datetime:
    """Of the shop's day, which is hours away from its ends."""
    today = local_time(now(), "WIB")
    return today.replace(hour=12, minute=0, second=0, microsecond=0) - timedelta(days=days_ago)


def test_sales_and_holds_are_counted_on_their_days(internet: httpx2.Client, strict_shop: Shop) -> None:
    product = strict_shop.product(on_hand=50, reserved=1)
    hold(strict_shop, product, noon(1), "committed", quantity=2)
    hold(strict_shop, product, noon(1), "refused", accepted=False)
    hold(strict_shop, product, noon(3), "expired", accepted=False)
    hold(strict_shop, product, noon(3), "held", accepted=False)  # due since days: nobody has swept it
    hold(strict_shop, product, noon(6), "released", quantity=3)
    hold(strict_shop, product, noon(7), "committed")  # of the week before
    found = numbers(internet, strict_shop)
    assert [one["day"] for one in found["days"]] == [str(noon(ago).date()) for ago in range(6, -1, -1)]
    by_day = {one["day"]: one for one in found["days"]}
    yesterday, earlier = by_day[str(noon(1).date())], by_day[str(noon(3).date())]
    assert (yesterday["sales"], yesterday["sold_units"], yesterday["sold_rupiah"]) == (1, 2, 2 * _PRICE)
    assert (yesterday["holds"], yesterday["accepted"], yesterday["refused"]) == (2, 1, 1)
    assert (earlier["holds"], earlier["expired"], earlier["accepted"]) == (2, 2, 0)
    totals = found["totals"]
    assert (totals["holds"], totals["held_units"], totals["released"], totals["sold_units"]) == (5, 8, 1, 2)
    assert (found["previous"]["sold_units"], found["previous"]["sold_rupiah"]) == (1, _PRICE)
    assert found["totals"]["held_rupiah"] == 8 * _PRICE and found["time_zone"] == "WIB"


def test_more_weeks_look_further_back(internet: httpx2.Client, strict_shop: Shop) -> None:
    product = strict_shop.product(on_hand=50)
    hold(strict_shop, product, noon(7), "committed")
    hold(strict_shop, product, noon(83), "committed")
    hold(strict_shop, product, noon(84), "committed")
    assert [numbers(internet, strict_shop, weeks)["totals"]["sales"] for weeks in (1, 2, 12)] == [0, 1, 2]
    assert len(numbers(internet, strict_shop, 12)["days"]) == 84
    for weeks in (0, 13):
        path = f"/api/suppliers/{strict_shop.id}/numbers?weeks={weeks}"
        assert internet.get(path, headers=strict_shop.auth_headers(f"supplier:{strict_shop.id}")).status_code == 422


@pytest.mark.parametrize("hours", [7, 8, 9])
def test_a_day_begins_at_midnight_of_the_zone(hours: int, strict_shop: Shop) -> None:
    product = strict_shop.product()
    midnight = datetime(2026, 3, 1, tzinfo=UTC) - timedelta(hours=hours)
    for moment in (midnight - timedelta(microseconds=1), midnight, midnight + timedelta(hours=23, minutes=59)):
        hold(strict_shop, product, moment, "released")
    with strict_shop.market.reading() as session:
        days = select(LocalDay(Reservation.created_at, hours)).where(Reservation.product_id == product)
        found = list(session.scalars(days.order_by(Reservation.created_at)))
    assert found == [date(2026, 2, 28), date(2026, 3, 1), date(2026, 3, 1)]


def test_a_shop_in_the_east_counts_its_own_days(internet: httpx2.Client, strict_shop: Shop) -> None:
    with strict_shop.market.writing() as session:
        session.get_one(Supplier, strict_shop.id).time_zone = "WIT"
    found = numbers(internet, strict_shop)
    assert (found["time_zone"], found["last_day"]) == ("WIT", str(local_time(now(), "WIT").date()))


def test_best_goods_and_goods_that_will_soon_be_gone(internet: httpx2.Client, strict_shop: Shop) -> None:
    names = {"Kipas": (2, 1), "Lampu": (9, 10), "Meja": (100, 3), "Kursi": (0, 0)}
    goods = {name: strict_shop.product(on_hand=left, name=name) for name, (left, _) in names.items()}
    for name, (_, sold) in names.items():
        if sold:
            hold(strict_shop, goods[name], noon(1), "committed", quantity=sold)
    found = numbers(internet, strict_shop)
    assert [(one["name"], one["units"]) for one in found["best_goods"]] == [("Lampu", 10), ("Meja", 3), ("Kipas", 1)]
    # Two of one kind are left, nine of another that sells ten in a week. What never sells is no news.
    assert [(one["name"], one["available_quantity"]) for one in found["nearly_out"]] == [("Kipas", 2), ("Lampu", 9)]


def test_reviews_are_counted_and_those_that_wait_for_an_answer(internet: httpx2.Client, strict_shop: Shop) -> None:
    product = strict_shop.product()
    for ago, rating, said in ((1, 5, None), (2, 4, "Terima kasih"), (20, 1, None)):
        author = strict_shop.user()
        with strict_shop.market.writing() as session:
            row = Review(product_id=product, user_id=author, rating=rating, created_at=noon(ago), answer=said)
            session.add(row)
    assert numbers(internet, strict_shop)["reviews"] == {"number": 2, "mean_rating": 4.5, "unanswered": 2}
    empty = numbers(internet, Shop(strict_shop.market))
    assert empty["reviews"] == {"number": 0, "mean_rating": None, "unanswered": 0} and empty["best_goods"] == []
