"""The order of what the assistant offers."""

import random
from dataclasses import replace
from typing import Any

import pytest

from tests.marketplace.search.conftest import BANDUNG, JAKARTA, SURABAYA, Catalogue
from tis.marketplace.assistant.finding import find_goods
from tis.marketplace.assistant.goods import ProductCard
from tis.marketplace.assistant.goods_search import GoodsSearch
from tis.marketplace.assistant.ranking import ranked, score
from tis.marketplace.assistant.viewers import Preferences, Viewer
from tis.marketplace.kit.geo import Point
from tis.marketplace.reading.structured_query import StructuredQuery
from tis.marketplace.search.product_rows import ProductRow
from tis.marketplace.search.query import Candidate

NO_VIEWER = Viewer()
SHOP = {"shop_city": "Jakarta", "raw_created_at": "2026-01-01T00:00:00+00:00"}


def candidate(product_id: int = 1, **values: Any) -> Candidate:
    columns = {"id": product_id, "name": "Teko", "brand": "Asus", "price": 100, "condition": "new", **SHOP}
    row: Any = dict.fromkeys(ProductRow._fields)
    features = {"tier": 0, "distance_km": None, "price_fit": None, "rating": None, "available_quantity": 5}
    own = {name: values.pop(name) for name in list(values) if name in features}
    return Candidate(product=ProductRow(**(row | columns | values)), **(features | own))


def order(query: StructuredQuery, *candidates: Candidate, viewer: Viewer = NO_VIEWER) -> list[int]:
    return [one.product.id for one in ranked(candidates, query, viewer)]


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({"tier": 0}, {"tier": 2}),
        ({"distance_km": 2.0}, {"distance_km": 60.0}),
        ({"price_fit": 1.0}, {"price_fit": 0.0}),
        ({"rating": 4.8}, {"rating": 3.0}),
        ({"rating": 4.0}, {"rating": None}),
        ({"available_quantity": 9}, {"available_quantity": 1}),
    ],
)
def test_each_part_of_the_score_counts(better: dict[str, Any], worse: dict[str, Any]) -> None:
    query = StructuredQuery(max_price=1000)
    assert order(query, candidate(1, **worse), candidate(2, **better)) == [2, 1]
    for one in (better, worse):
        assert 0 <= score(candidate(**one), query) <= 1


@pytest.mark.parametrize(
    ("said", "better", "worse"),
    [
        ({"near_user": True}, {"distance_km": 2.0}, {"distance_km": 40.0, "rating": 5.0}),
        ({"intent": "recommend"}, {"rating": 4.9, "distance_km": 20.0}, {"rating": 3.2, "distance_km": 2.0}),
        ({"quantity": 10}, {"available_quantity": 25}, {"available_quantity": 10, "rating": 3.9}),
    ],
)
def test_what_the_buyer_speaks_of_weighs_more(
    said: dict[str, Any], better: dict[str, Any], worse: dict[str, Any]
) -> None:
    assert order(StructuredQuery(**said), candidate(1, **worse), candidate(2, **better)) == [2, 1]


@pytest.mark.parametrize(
    ("sort", "expected"),
    [("price_asc", [1, 2, 3]), ("price_desc", [3, 2, 1]), ("rating", [2, 3, 1]), ("newest", [3, 1, 2])]
    + [("distance", [3, 2, 1])],
)
def test_an_order_that_is_asked_for_is_obeyed(sort: Any, expected: list[int]) -> None:
    found = (
        candidate(1, price=10, rating=3.0, distance_km=9.0, raw_created_at="2026-01-02T00:00:00+00:00"),
        candidate(2, price=20, rating=4.5, distance_km=8.0, tier=3),
        candidate(3, price=30, rating=4.0, distance_km=7.0, tier=9, raw_created_at="2026-01-03T00:00:00+00:00"),
    )
    assert order(StructuredQuery(sort=sort), *found) == expected


def test_nothing_makes_up_for_words_that_are_missing() -> None:
    near_and_good = candidate(1, tier=30, distance_km=0.1, rating=5.0)
    found = [near_and_good, candidate(2, tier=25, distance_km=900.0, rating=1.0)]
    best = ranked(found, StructuredQuery(near_user=True), NO_VIEWER, by_tier=True)
    assert [one.product.id for one in best] == [2, 1]


def test_preferences_only_break_ties() -> None:
    likes = Viewer(preferences=Preferences(brands=["acer"], condition="used", max_price=90, city="Kota Bandung"))
    other, liked = candidate(1), candidate(2, brand="ACER", condition="used", price=90, shop_city="Bandung")
    query = StructuredQuery()
    assert order(query, other, liked) == [1, 2] and order(query, other, liked, viewer=likes) == [2, 1]
    better = replace(other, rating=4.9)
    assert order(query, better, liked, viewer=likes) == [1, 2]
    assert order(StructuredQuery(sort="price_desc"), other, liked, viewer=likes) == [1, 2]


BRANDS = ("Asus", "Acer", "HP", None)
CITIES = {"Jakarta": JAKARTA, "Bandung": BANDUNG, "Surabaya": SURABAYA}


def test_hard_limits_are_never_broken(catalogue: Catalogue) -> None:
    """Over a random catalogue and random queries."""
    dice = random.Random(20)
    shops = [catalogue.shop(city, place) for city, place in CITIES.items() for _ in range(2)]
    catalogue.put_all(
        {
            "name": dice.choice(("Laptop gaming", "Laptop kantor merah", "Tas laptop")),
            "shop": dice.choice(shops),
            "brand": dice.choice(BRANDS),
            "price": dice.randint(1, 20),
            "on_hand": dice.randint(0, 9),
            "condition": dice.choice(("new", "used")),
            "granted_rating": dice.choice((None, 2.0, 4.5)),
            "category": dice.choice(("laptop", "bag")),
        }
        for _ in range(100)
    )
    num_cards = 0
    for _ in range(40):
        fields = _random_fields(dice)
        viewer = Viewer(
            origin=Point(*dice.choice(list(CITIES.values()))) if dice.random() < 0.6 else None,
            preferences=Preferences(brands=["hp"], max_price=3, city="Surabaya", condition="used"),
        )
        with catalogue.market.reading() as session:
            found = find_goods(GoodsSearch(catalogue.search, session, viewer), StructuredQuery(**fields))
        for card in [*found.cards, *found.nearest]:
            assert broken_limits(card, fields, is_elsewhere=card in found.nearest) == [], (fields, card)
        num_cards += len(found.cards)
    assert num_cards > 60


def _random_fields(dice: random.Random) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "text": dice.choice(("", "laptop", "laptop gaming", "laptop ungu")),
        "category": dice.choice((None, "laptop", "bag")),
        "brands": dice.choice(([], ["asus"], ["asus", "acer"])),
        "exclude_brands": dice.choice(([], ["hp"])),
        "exclude_terms": dice.choice(([], ["merah"])),
        "min_price": dice.choice((None, 4)),
        "max_price": dice.choice((None, 12)),
        "cities": dice.choice(([], [], ["Bandung"], ["Bandung", "Jakarta"])),
        "exclude_cities": dice.choice(([], ["Surabaya"])),
        "min_rating": dice.choice((None, None, 4.0)),
        "condition": dice.choice((None, None, "new")),
        "quantity": dice.choice((None, 3)),
        "sort": dice.choice((None, "price_asc", "rating", "distance", "newest")),
    }
    if dice.random() < 0.3:
        fields |= {"near_user": True, "radius_km": 30.0}
    return fields


def broken_limits(card: ProductCard, fields: dict[str, Any], *, is_elsewhere: bool = False) -> list[str]:
    brand = (card.brand or "").casefold()
    is_far = fields.get("radius_km") is not None and (card.distance_km or 0) > 31 and not is_elsewhere
    limits = {
        "category": fields["category"] not in (None, card.category),
        "brands": bool(fields["brands"]) and brand not in fields["brands"],
        "exclude_brands": brand in fields["exclude_brands"],
        "exclude_terms": any(term in card.name for term in fields["exclude_terms"]),
        "min_price": card.price < (fields["min_price"] or 0),
        "max_price": card.price > (fields["max_price"] or 99),
        "cities": bool(fields["cities"]) and card.city not in fields["cities"] and not is_elsewhere,
        "exclude_cities": card.city in fields["exclude_cities"],
        "min_rating": (card.rating or 0) < (fields["min_rating"] or 0),
        "condition": fields["condition"] not in (None, card.condition),
        "quantity": card.available_quantity < (fields["quantity"] or 1),
        "radius_km": is_far,
    }
    return [name for name, is_broken in limits.items() if is_broken]
