"""Promotions as buyers and shops see them: prices, periods, units, and what else happens to the product."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from sqlalchemy import select, update

from tests.marketplace.market_server import MarketServer, new_product
from tests.marketplace.stock.test_reservations import end, reserve
from tis.marketplace.columns import now
from tis.marketplace.promotions.service import PromotionSweep
from tis.marketplace.tables import AuditEntry, PriceChange, Promotion, Reservation

HOUR = timedelta(hours=1)


class Promoter:
    """A shop with one product of 100,000, whose prices the test moves in time."""

    def __init__(self, server: MarketServer, client: httpx2.Client, **values: Any) -> None:
        self.server, self.client = server, client
        self.shop = server.supplier()
        made = {"price": 100_000, "stock_quantity": 9, "sku": "A-1", **values}
        self.product = new_product(client, self.shop, **made)["id"]
        self.path = f"/api/products/{self.product}"

    def promote(self, price: int = 80_000, begins: timedelta | None = None, **said: Any) -> httpx2.Response:
        body = {"price": price, "ends_at": (now() + 10 * HOUR).isoformat(), **said}
        body |= {} if begins is None else {"begins_at": (now() + begins).isoformat()}
        return self.client.post(f"{self.path}/promotions", json=body)

    def promoted(self, *values: Any, **said: Any) -> int:
        answer = self.promote(*values, **said)
        assert answer.status_code == 200, answer.text
        return int(answer.json()["id"])

    def move(self, promotion: int, **times: timedelta) -> None:
        """As if it had been set so."""
        values = {name: now() + ahead for name, ahead in times.items()}
        with self.server.market.writing() as session:
            session.execute(update(Promotion).where(Promotion.id == promotion).values(**values))

    def sweep(self) -> int:
        market = self.server.market
        return PromotionSweep(market.reading, market.writing, market.search).move_due()

    def shown(self) -> dict[str, Any]:
        answer = self.client.get(self.path)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def listed(self, **parameters: Any) -> list[dict[str, Any]]:
        answer = self.client.get("/api/products", params={"supplier_id": self.shop, **parameters})
        assert answer.status_code == 200, answer.text
        return list(answer.json())

    def row(self, promotion: int) -> dict[str, Any]:
        found = self.client.get(f"/api/suppliers/{self.shop}/promotions").json()
        return next(one for one in found if one["id"] == promotion)

    def history(self) -> list[int]:
        return [one["price"] for one in self.client.get(f"{self.path}/price-history").json()]


@pytest.fixture
def promoter(server: MarketServer, anybody: httpx2.Client) -> Promoter:
    return Promoter(server, anybody)


def test_a_promotion_is_shown_with_the_normal_price_and_the_lowest_of_30_days_before(promoter: Promoter) -> None:
    made = promoter.promote(80_000)
    view, shown = made.json(), promoter.shown()
    assert made.status_code == 200 and view["state"] == "running" and view["lowest_price_30d"] == 100_000
    assert (shown["price"], shown["lowest_price_30d"], shown["version"]) == (80_000, 100_000, 2)
    assert shown["promotion"] == {
        "id": view["id"],
        "normal_price": 100_000,
        "lowest_price_30d": 100_000,
        "discount_percent": 20,
        "begins_at": view["begins_at"],
        "ends_at": view["ends_at"],
    }
    [listed] = promoter.listed()
    assert (listed["price"], listed["promotion"]) == (80_000, shown["promotion"])
    assert promoter.history() == [80_000, 100_000]


def test_filters_sorts_facets_and_comparisons_see_the_price_of_the_promotion(
    promoter: Promoter, anybody: httpx2.Client
) -> None:
    other = new_product(anybody, promoter.shop, price=90_000)["id"]
    promoter.promoted(80_000)
    assert [one["id"] for one in promoter.listed(max_price=85_000)] == [promoter.product]
    assert [one["id"] for one in promoter.listed(sort="price_asc")] == [promoter.product, other]
    counted = anybody.get("/api/products/facets", params={"supplier_id": promoter.shop, "facets": "price"}).json()
    assert sum(one["count"] for one in counted["price"] if one["most"] is not None and one["most"] < 100_000) == 2
    compared = anybody.get("/api/products/compare", params={"ids": f"{promoter.product},{other}"}).json()
    assert compared["rows"][0] == {"field": "price", "label": "Harga", "values": [80_000, 90_000], "best": 0}
    assert compared["products"][0]["promotion"]["normal_price"] == 100_000
    mine = anybody.get(f"/api/suppliers/{promoter.shop}/products", params={"sort": "price_asc"}).json()
    assert [(one["price"], bool(one["promotion"])) for one in mine] == [(80_000, True), (90_000, False)]


def test_what_was_as_cheap_within_30_days_shows_no_discount(promoter: Promoter, anybody: httpx2.Client) -> None:
    for price in (75_000, 100_000):
        anybody.put(promoter.path, json={"price": price})
    promoter.promoted(80_000)
    shown = promoter.shown()
    assert shown["promotion"]["lowest_price_30d"] == shown["lowest_price_30d"] == 75_000
    assert shown["promotion"]["discount_percent"] is None and shown["promotion"]["normal_price"] == 100_000


def test_a_second_promotion_counts_from_the_price_of_the_first(promoter: Promoter, anybody: httpx2.Client) -> None:
    first = promoter.promoted(80_000)
    assert anybody.post(f"/api/promotions/{first}/end").json()["end_reason"] == "stopped"
    second = promoter.promote(78_000).json()
    assert (second["lowest_price_30d"], second["discount_percent"]) == (80_000, 2)


def test_a_promotion_begins_and_ends_by_itself(promoter: Promoter) -> None:
    promotion = promoter.promoted(80_000, HOUR)
    assert promoter.shown()["promotion"] is None and promoter.row(promotion)["state"] == "scheduled"
    assert promoter.sweep() == 0
    promoter.move(promotion, begins_at=-HOUR)
    assert promoter.sweep() == 1
    [listed] = promoter.listed(max_price=80_000)
    assert listed["promotion"]["id"] == promotion and promoter.row(promotion)["state"] == "running"
    promoter.move(promotion, begins_at=-3 * HOUR, ends_at=-HOUR)
    assert promoter.sweep() == 1 and promoter.sweep() == 0
    assert [(one["price"], one["promotion"]) for one in promoter.listed()] == [(100_000, None)]
    row = promoter.row(promotion)
    assert (row["state"], row["end_reason"], row["ended_at"]) == ("ended", "over", row["ends_at"])
    assert promoter.history() == [100_000, 80_000, 100_000]


def test_the_page_and_a_hold_are_exact_before_the_sweep(promoter: Promoter, anybody: httpx2.Client) -> None:
    promotion = promoter.promoted(80_000, HOUR)
    promoter.move(promotion, begins_at=timedelta(seconds=-1))
    shown = promoter.shown()
    assert (shown["price"], shown["promotion"]["lowest_price_30d"]) == (80_000, 100_000)
    assert [one["price"] for one in promoter.listed()] == [100_000]  # the search is told by the sweep, or by the hold
    assert reserve(anybody, promoter.product).json()["unit_price"] == 80_000
    assert [one["price"] for one in promoter.listed(max_price=80_000)] == [80_000]

    promoter.move(promotion, begins_at=-HOUR, ends_at=timedelta(seconds=-1))
    shown = promoter.shown()
    assert (shown["price"], shown["promotion"]) == (100_000, None)
    assert reserve(anybody, promoter.product).json()["unit_price"] == 100_000
    assert [one["price"] for one in promoter.listed(min_price=100_000)] == [100_000]


def test_the_history_has_the_times_of_the_promotion_and_not_of_the_sweep(promoter: Promoter) -> None:
    promotion = promoter.promoted(80_000, HOUR)
    promoter.move(promotion, begins_at=timedelta(minutes=-2))
    promoter.sweep()
    begun = promoter.row(promotion)["begins_at"]
    changes = promoter.client.get(f"{promoter.path}/price-history").json()
    assert [(one["price"], one["valid_from"] == begun) for one in changes] == [(80_000, True), (100_000, False)]
    with promoter.server.market.reading() as session:
        actors = session.scalars(select(PriceChange.actor).where(PriceChange.product_id == promoter.product)).all()
    assert actors == [None, None]


def test_a_promotion_that_no_server_saw_leaves_no_price(promoter: Promoter) -> None:
    promotion = promoter.promoted(80_000, HOUR)
    promoter.move(promotion, begins_at=-3 * HOUR, ends_at=-HOUR)
    assert promoter.sweep() == 1
    assert promoter.history() == [100_000] and promoter.row(promotion)["end_reason"] == "over"


def test_one_promotion_takes_the_place_of_another_in_the_same_moment(promoter: Promoter) -> None:
    middle = (now() + HOUR).isoformat()
    first = promoter.promoted(80_000, ends_at=middle)
    second = promoter.promoted(70_000, begins_at=middle)
    promoter.move(first, begins_at=-3 * HOUR, ends_at=-HOUR)
    with promoter.server.market.writing() as session:
        ended = select(Promotion.ends_at).where(Promotion.id == first).scalar_subquery()
        session.execute(update(Promotion).where(Promotion.id == second).values(begins_at=ended))
        was = update(PriceChange).where(PriceChange.product_id == promoter.product)
        session.execute(was.values(valid_from=now() - 5 * HOUR))
    promoter.sweep()
    assert promoter.history() == [70_000, 80_000, 100_000]
    assert promoter.shown()["promotion"]["lowest_price_30d"] == 80_000


@pytest.mark.parametrize(
    ("said", "status", "why"),
    [
        ({"price": 100_000}, 409, "A promotion is below the normal price, 100000."),
        ({"price": 0}, 422, "price"),
        ({"ends_at": "2020-01-01T00:00:00Z"}, 422, "not in the future"),
        ({"ends_at": "2026-12-12T00:00:00"}, 422, "ends_at"),  # without a time zone
        ({"ends_at": "2099-12-12T00:00:00Z"}, 422, "within 366 days"),
        ({"max_units": 0}, 422, "max_units"),
        ({"discount": 20}, 422, "discount"),
    ],
)
def test_what_is_no_promotion_is_refused(promoter: Promoter, said: dict[str, Any], status: int, why: str) -> None:
    refused = promoter.promote(**said)
    assert refused.status_code == status and why in refused.text
    assert promoter.shown()["promotion"] is None


def test_promotions_of_a_product_do_not_overlap(promoter: Promoter) -> None:
    promoter.promoted(80_000, 2 * HOUR)
    refused = promoter.promote(70_000, HOUR)
    assert refused.status_code == 409 and "at that time" in refused.json()["detail"]
    begin = promoter.client.get(f"/api/suppliers/{promoter.shop}/promotions").json()[0]["begins_at"]
    assert promoter.promote(70_000, HOUR, ends_at=begin).status_code == 200  # up to the begin of the next


def test_of_two_members_who_promote_at_once_one_wins(promoter: Promoter) -> None:
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda price: promoter.promote(price).status_code, (80_000, 70_000, 60_000, 50_000)))
    assert sorted(answers) == [200, 409, 409, 409]
    assert len(promoter.history()) == 2


def test_the_same_key_makes_one_promotion(promoter: Promoter, anybody: httpx2.Client) -> None:
    body = {"price": 80_000, "ends_at": "2027-03-01T00:00:00Z"}
    sent = [
        anybody.post(f"{promoter.path}/promotions", json=body, headers={"Idempotency-Key": f"p{promoter.product}"})
        for _ in range(2)
    ]
    assert sent[0].json() == sent[1].json() and sent[1].headers["idempotent-replayed"] == "true"


def test_a_shop_changes_the_normal_price_while_a_promotion_is_in_force(
    promoter: Promoter, anybody: httpx2.Client
) -> None:
    promotion = promoter.promoted(80_000)
    changed = anybody.put(promoter.path, json={"price": 110_000}).json()
    assert (changed["price"], changed["promotion"]["normal_price"]) == (80_000, 110_000)
    assert promoter.history() == [80_000, 100_000]
    refused = anybody.put(promoter.path, json={"price": 80_000})
    assert refused.status_code == 409 and "must be more than 80000" in refused.json()["detail"]
    promoter.client.post(f"/api/promotions/{promotion}/end")
    assert promoter.shown()["price"] == 110_000 and promoter.history() == [110_000, 80_000, 100_000]


def test_a_price_that_falls_below_a_promotion_to_come_makes_it_void(promoter: Promoter, anybody: httpx2.Client) -> None:
    promotion = promoter.promoted(80_000, HOUR)
    assert anybody.put(promoter.path, json={"price": 70_000}).json()["price"] == 70_000
    promoter.move(promotion, begins_at=-HOUR)
    assert promoter.shown()["price"] == 70_000
    promoter.sweep()
    assert promoter.row(promotion)["end_reason"] == "not_lower"
    assert promoter.shown()["promotion"] is None and promoter.history() == [70_000, 100_000]


def test_a_change_of_many_products_means_the_normal_price(promoter: Promoter, anybody: httpx2.Client) -> None:
    promoter.promoted(80_000)
    path = f"/api/suppliers/{promoter.shop}/products/bulk"
    refused = anybody.post(path, json={"products": [{"id": promoter.product, "price": 79_000}]})
    assert refused.status_code == 409
    assert [(one["field"], "80000" in one["message"]) for one in refused.json()["errors"]] == [("price", True)]
    done = anybody.post(path, json={"products": [{"id": promoter.product, "price": 120_000}]}).json()
    assert done["products"][0]["changes"] == {"price": [100_000, 120_000]}
    same = anybody.post(path, json={"products": [{"id": promoter.product, "price": 120_000}]}).json()
    assert (same["changed"], same["unchanged"]) == (0, 1)
    assert promoter.shown()["promotion"]["normal_price"] == 120_000


def test_a_change_of_many_products_begins_what_is_due(promoter: Promoter, anybody: httpx2.Client) -> None:
    promotion = promoter.promoted(80_000, HOUR)
    promoter.move(promotion, begins_at=-HOUR)
    path = f"/api/suppliers/{promoter.shop}/products/bulk"
    assert anybody.post(path, json={"products": [{"id": promoter.product, "price": 120_000}]}).status_code == 200
    [listed] = promoter.listed()
    assert (listed["price"], listed["promotion"]["normal_price"]) == (80_000, 120_000)
    assert promoter.history()[0] == 80_000


def test_a_sheet_shows_and_takes_the_normal_price(promoter: Promoter, anybody: httpx2.Client) -> None:
    promoter.promoted(80_000)
    path = f"/api/suppliers/{promoter.shop}/products"
    sheet = anybody.get(f"{path}/export").text
    assert ",100000," in sheet and "80000" not in sheet

    def sent(text: str) -> dict[str, Any]:
        answer = anybody.post(f"{path}/import", content=text.encode(), headers={"Content-Type": "text/csv"})
        return dict(answer.json())

    assert sent(sheet)["unchanged"] == 1
    assert sent(sheet.replace("100000", "130000"))["updated"] == 1
    shown = promoter.shown()
    assert (shown["price"], shown["promotion"]["normal_price"]) == (80_000, 130_000)
    assert [one["field"] for one in sent(sheet.replace("100000", "80000"))["errors"]] == ["price"]


def test_a_deleted_product_loses_its_promotions(promoter: Promoter, anybody: httpx2.Client) -> None:
    promotion, later = promoter.promoted(80_000), promoter.promoted(70_000, 20 * HOUR, ends_at="2027-03-01T00:00:00Z")
    anybody.delete(promoter.path)
    restored = anybody.post(f"{promoter.path}/restore").json()
    assert (restored["price"], restored["promotion"]) == (100_000, None)
    assert {promoter.row(one)["end_reason"] for one in (promotion, later)} == {"deleted"}
    assert promoter.history() == [100_000, 80_000, 100_000]


def test_a_promotion_is_ended_once_and_called_off_before_it_begins(promoter: Promoter, anybody: httpx2.Client) -> None:
    to_come = promoter.promoted(80_000, HOUR)
    off = anybody.post(f"/api/promotions/{to_come}/end").json()
    assert (off["state"], off["end_reason"]) == ("ended", "stopped") and promoter.history() == [100_000]
    running = promoter.promoted(80_000)
    first, again = (anybody.post(f"/api/promotions/{running}/end").json() for _ in range(2))
    assert first == again and promoter.history() == [100_000, 80_000, 100_000]
    assert anybody.post(f"/api/promotions/{10**9}/end").status_code == 404
    with promoter.server.market.reading() as session:
        ended = AuditEntry.action == "promotion.end", AuditEntry.entity_id == str(running)
        assert len(session.scalars(select(AuditEntry).where(*ended)).all()) == 1


def test_units_of_a_promotion_are_counted_and_come_back(promoter: Promoter, anybody: httpx2.Client) -> None:
    promotion = promoter.promoted(80_000, max_units=3)
    first = reserve(anybody, promoter.product, 2).json()
    assert first["unit_price"] == 80_000 and promoter.row(promotion)["units_taken"] == 2
    refused = reserve(anybody, promoter.product, 2)
    assert (refused.status_code, refused.json()) == (
        409,
        {"detail": "Only 1 units are left at the price of the promotion."},
    )
    assert reserve(anybody, promoter.product, 1).json()["unit_price"] == 80_000
    assert promoter.row(promotion)["state"] == "sold_out"
    assert [(one["price"], one["promotion"]) for one in promoter.listed()] == [(100_000, None)]
    assert reserve(anybody, promoter.product, 2).json()["unit_price"] == 100_000

    end(anybody, "release", first["id"])
    assert promoter.sweep() == 1
    assert [one["price"] for one in promoter.listed()] == [80_000]
    assert promoter.row(promotion)["units_taken"] == 1
    assert promoter.history() == [80_000, 100_000, 80_000, 100_000]


def test_a_promotion_never_gives_more_units_than_it_has(promoter: Promoter, anybody: httpx2.Client) -> None:
    anybody.put(promoter.path, json={"stock_quantity": 100})
    promoter.promoted(80_000, max_units=5)
    with ThreadPoolExecutor(8) as pool:
        prices = [one.json()["unit_price"] for one in pool.map(lambda _: reserve(anybody, promoter.product), range(12))]
    assert sorted(prices) == [80_000] * 5 + [100_000] * 7


def test_units_that_the_shop_leaves_out_of_an_order_are_units_of_the_promotion_again(
    promoter: Promoter, anybody: httpx2.Client
) -> None:
    promotion = promoter.promoted(80_000, max_units=3)
    assert anybody.put(f"/api/suppliers/{promoter.shop}/order-rules", json={"takes_orders": True}).status_code == 200
    body = {"items": [{"product_id": promoter.product, "quantity": 3}], "place": {"delivery": "pickup"}}
    order = anybody.post("/api/orders", json=body).json()["id"]
    assert promoter.row(promotion)["state"] == "sold_out"
    part = {"lines": [{"position": 1, "quantity": 1}]}
    assert anybody.post(f"/api/orders/{order}/accept", json=part).status_code == 200
    assert promoter.sweep() == 1
    assert (promoter.row(promotion)["state"], promoter.row(promotion)["units_taken"]) == ("running", 1)
    assert anybody.post(f"/api/orders/{order}/cancel", json={"reason": "x"}).status_code == 200
    assert promoter.row(promotion)["units_taken"] == 0


def test_a_hold_keeps_the_price_of_the_promotion_when_that_is_over(promoter: Promoter, anybody: httpx2.Client) -> None:
    promotion = promoter.promoted(80_000)
    held = reserve(anybody, promoter.product).json()
    anybody.post(f"/api/promotions/{promotion}/end")
    assert end(anybody, "commit", held["id"]).json()["unit_price"] == 80_000
    with promoter.server.market.reading() as session:
        assert session.get_one(Reservation, held["id"]).promotion_id == promotion


def test_promotions_are_listed_by_state_and_product_newest_first(promoter: Promoter, anybody: httpx2.Client) -> None:
    other = new_product(anybody, promoter.shop, price=50_000)["id"]
    mine = [promoter.promoted(80_000), promoter.promoted(70_000, 20 * HOUR, ends_at="2027-03-01T00:00:00Z")]
    body = {"price": 40_000, "ends_at": datetime(2027, 1, 1, tzinfo=UTC).isoformat()}
    others = anybody.post(f"/api/products/{other}/promotions", json=body).json()["id"]
    path = f"/api/suppliers/{promoter.shop}/promotions"

    def ids(**parameters: Any) -> list[int]:
        return [one["id"] for one in anybody.get(path, params=parameters).json()]

    assert ids() == [others, *reversed(mine)] and ids(state="scheduled") == mine[1:]
    assert ids(product_id=promoter.product) == [*reversed(mine)] and ids(before=others, limit=1) == mine[1:]
    assert "next" in anybody.get(path, params={"limit": 2}).links
