"""Searches that users save: listed, run, renamed, switched off, deleted, and told of what they find anew."""

from datetime import timedelta
from typing import Any

import httpx2
import pytest
from sqlalchemy import func, select, update

from tests.marketplace.alerts.buyers import Watched
from tests.marketplace.shop import Shop
from tis.marketplace.columns import now
from tis.marketplace.tables import SavedSearch, SearchFind

AT_ONCE = {"search_news_minutes": 0}


@pytest.fixture
def watched(internet: httpx2.Client, strict_shop: Shop) -> Watched:
    return Watched(internet, strict_shop)


def matches(watched: Watched) -> list[list[int]]:
    """The products of each notice."""
    news = [one for one in watched.told() if one["type"] == "search.match"]
    assert all(one["count"] == len(one["product_ids"].split(",")) for one in news)
    return [[int(number) for number in one["product_ids"].split(",")] for one in news]


def test_a_saved_search_runs_as_it_was_searched(watched: Watched) -> None:
    mine = watched.product(name="Kulkas Sharp", category="refrigerator", brand="Sharp")
    watched.product(name="Kulkas Polytron", category="refrigerator", brand="Polytron")
    parameters = {"q": "kulkas", "supplier_id": watched.shop.id, "brand": "sharp", "max_price": "200000"}
    saved = watched.save(parameters, name="Kulkas kecil").json()
    assert saved["name"] == "Kulkas kecil" and saved["tells"] is True
    assert dict(saved["parameters"]) == {name: str(value) for name, value in parameters.items()}
    assert [one["id"] for one in watched.client.get(saved["path"]).json()] == [mine]
    filters = watched.save({"supplier_id": watched.shop.id, "sort": "price_asc"}).json()
    assert filters["path"].startswith("/api/products?") and watched.client.get(filters["path"]).status_code == 200


@pytest.mark.parametrize("parameters", [{"q": "a\0b"}, {"q": "laptop", "city": "Jak\0arta"}, {"attr.a\0b": "1"}])
def test_a_search_with_a_nul_is_not_saved(watched: Watched, parameters: dict[str, Any]) -> None:
    refused = watched.save(parameters)
    assert (refused.status_code, refused.json()["detail"]) == (422, "A parameter has a NUL character.")


def test_a_saved_search_is_renamed_switched_off_and_deleted_by_its_user_alone(watched: Watched) -> None:
    saved = watched.save({"q": "laptop"}).json()
    path = f"/api/saved-searches/{saved['id']}"
    changed = watched.client.put(path, json={"name": "Kantor", "tells": False}, headers=watched.buyer).json()
    assert (changed["name"], changed["tells"]) == ("Kantor", False)
    stranger = watched.shop.auth_headers(f"user:{watched.shop.user()}")
    assert watched.client.put(path, json={"name": "x"}, headers=stranger).status_code == 404
    assert watched.client.delete(path, headers=stranger).status_code == 404
    newer = watched.save({"q": "mouse"}).json()["id"]

    def ids(**parameters: Any) -> list[int]:
        own = watched.client.get("/api/saved-searches", params=parameters, headers=watched.buyer)
        return [one["id"] for one in own.json()]

    assert ids() == [newer, saved["id"]] and ids(before=newer) == [saved["id"]]
    assert watched.client.delete(path, headers=watched.buyer).json()["name"] == "Kantor"
    assert ids() == [newer]


@pytest.mark.parametrize(
    ("parameters", "status"),
    [
        ({}, 422),
        ({"sort": "newest"}, 422),
        ({"q": "  "}, 422),
        ({"q": "laptop", "colour": "red"}, 422),
        ({"min_price": 9, "max_price": 1}, 422),
        ({"radius_km": 5}, 422),
        ({"q": "a" * 2001}, 422),
    ],
)
def test_what_is_no_search_cannot_be_saved(watched: Watched, parameters: dict[str, Any], status: int) -> None:
    assert watched.save(parameters).status_code == status


def test_a_user_saves_so_many_searches(watched: Watched) -> None:
    for number in range(20):
        assert watched.save({"q": f"laptop {number}"}).status_code == 200
    refused = watched.save({"q": "one more"})
    assert refused.status_code == 409 and "at most 20" in refused.json()["detail"]


def test_the_place_of_the_user_is_kept_roughly(watched: Watched) -> None:
    saved = watched.save({"user_lat": -6.2088123, "user_lon": 106.8456789, "radius_km": 5}).json()
    assert dict(saved["parameters"]) == {"user_lat": "-6.209", "user_lon": "106.846", "radius_km": "5"}
    with watched.shop.market.reading() as session:
        assert session.get_one(SavedSearch, saved["id"]).query["origin"] == {"latitude": -6.209, "longitude": 106.846}


def test_new_goods_that_match_are_told_together_and_once(watched: Watched) -> None:
    watched.product(name="Kipas lama", category="fan")
    saved = watched.save({"q": "kipas", "supplier_id": watched.shop.id, "max_price": 100_000}).json()
    first, second = (watched.product(name=f"Kipas {name}", category="fan") for name in ("meja", "dinding"))
    watched.product(name="Kipas mahal", category="fan", price=100_001)
    watched.product(name="Meja")
    watched.product(name="Kipas habis", category="fan", stock_quantity=0)
    watched.look(**AT_ONCE)
    assert matches(watched) == [[second, first]]
    assert watched.told()[0]["saved_search_id"] == saved["id"]
    watched.change(first, price=50_000)
    watched.look(**AT_ONCE)
    assert len(matches(watched)) == 1


def test_what_its_sentence_says_filters_too(watched: Watched) -> None:
    watched.save({"q": "kipas di bawah 50rb", "supplier_id": watched.shop.id})
    watched.product(name="Kipas meja", category="fan", price=60_000)
    cheap = watched.product(name="Kipas tangan", category="fan", price=40_000)
    watched.look(**AT_ONCE)
    assert matches(watched) == [[cheap]]


def test_a_match_that_fell_below_the_highest_price_is_told(watched: Watched) -> None:
    dear, cheap = watched.product(name="TV besar", price=200_000), watched.product(name="TV kecil", price=90_000)
    watched.save({"supplier_id": watched.shop.id, "max_price": 100_000})
    watched.change(cheap, price=80_000)  # it matched before
    watched.change(dear, price=150_000)
    watched.look(**AT_ONCE)
    assert matches(watched) == []
    for price in (99_000, 95_000):
        watched.change(dear, price=price)
    watched.look(**AT_ONCE)
    assert matches(watched) == [[dear]]


def test_goods_whose_promotion_begins_are_told_to_who_looks_for_promotions(watched: Watched) -> None:
    ids = [watched.product(name=f"Kipas {name}", category="fan", price=60_000) for name in ("meja", "besar", "kecil")]

    def promote(product: int) -> None:
        body = {"price": 50_000, "ends_at": (now() + timedelta(hours=9)).isoformat()}
        made = watched.client.post(f"/api/products/{product}/promotions", json=body, headers=watched.seller)
        assert made.status_code == 200, made.text

    promote(ids[0])  # before it was saved
    watched.save({"q": "kipas yang lagi promo", "supplier_id": watched.shop.id})
    watched.change(ids[0], description="Baru dicat")
    promote(ids[1])
    watched.look(**AT_ONCE)
    assert matches(watched) == [[ids[1]]]


def test_news_of_a_search_wait_for_each_other(watched: Watched) -> None:
    saved = watched.save({"supplier_id": watched.shop.id}).json()["id"]
    first = watched.product()
    watched.look()
    more = [watched.product(), watched.product()]
    watched.look()
    assert matches(watched) == [[first]]
    with watched.shop.market.writing() as session:
        earlier = now().replace(year=2020)
        session.execute(update(SavedSearch).where(SavedSearch.id == saved).values(told_at=earlier))
    watched.look()
    assert matches(watched) == [[first], more[::-1]]


def test_what_is_sold_out_again_when_it_would_be_told_is_left_out(watched: Watched) -> None:
    saved = watched.save({"supplier_id": watched.shop.id}).json()["id"]
    gone, kept = watched.product(), watched.product()
    watched.watch()._look()
    watched.change(gone, stock_quantity=0)
    watched.look(**AT_ONCE)
    assert matches(watched) == [[kept]]
    watched.change(gone, stock_quantity=1)
    watched.look(**AT_ONCE)
    assert matches(watched) == [[kept], [gone]]
    with watched.shop.market.reading() as session:
        finds = select(func.count()).where(SearchFind.saved_search_id == saved, SearchFind.told_at.is_(None))
        assert session.scalar(finds) == 0


def test_a_search_that_is_switched_off_tells_nothing_of_that_time(watched: Watched) -> None:
    saved = watched.save({"supplier_id": watched.shop.id}, tells=False).json()["id"]
    missed = watched.product()
    watched.look(**AT_ONCE)
    watched.client.put(f"/api/saved-searches/{saved}", json={"tells": True}, headers=watched.buyer)
    watched.change(missed, name="Another name")
    told = watched.product()
    watched.look(**AT_ONCE)
    assert matches(watched) == [[told]]


def test_many_searches_and_changes_are_looked_at_some_at_a_time(watched: Watched) -> None:
    for number in range(7):
        watched.save({"supplier_id": watched.shop.id, "max_price": 100_000 + number})
    products = [watched.product(price=100_000 + number) for number in range(9)]
    watched.look(searches=2, changes=4, **AT_ONCE)
    told = [one for batch in matches(watched) for one in batch]
    assert {number: told.count(number) for number in products} == dict(
        zip(products, [7, 6, 5, 4, 3, 2, 1, 0, 0], strict=True)
    )
