"""The goods of an answer: found by the search, within every limit of the query."""

from datetime import timedelta
from typing import Any

from sqlalchemy import update

from tests.marketplace.search.conftest import BANDUNG, JAKARTA, SURABAYA, Catalogue
from tis.marketplace.assistant.answer_texts import render_answer
from tis.marketplace.assistant.finding import find_goods, still_wanted
from tis.marketplace.assistant.goods import FoundGoods
from tis.marketplace.assistant.goods_search import GoodsSearch
from tis.marketplace.assistant.limit_texts import relaxation_text
from tis.marketplace.assistant.viewers import Viewer
from tis.marketplace.columns import now
from tis.marketplace.kit.geo import Point
from tis.marketplace.reading.structured_query import ComparedThings, StructuredQuery
from tis.marketplace.tables import Promotion

IN_BANDUNG = Viewer(origin=Point(*BANDUNG))


def find(catalogue: Catalogue, viewer: Viewer = IN_BANDUNG, **fields: Any) -> FoundGoods:
    with catalogue.market.reading() as session:
        return find_goods(GoodsSearch(catalogue.search, session, viewer), StructuredQuery(**fields))


def names(found: FoundGoods) -> list[str]:
    return [card.name for card in found.cards]


def test_a_named_place_filters_and_the_place_of_the_viewer_only_measures(catalogue: Catalogue) -> None:
    for city, place in (("Jakarta", JAKARTA), ("Bandung", BANDUNG)):
        catalogue.put(f"Teko {city}", shop=catalogue.shop(city, place))
    in_jakarta = find(catalogue, text="teko", cities=["Jakarta"])
    assert names(in_jakarta) == ["Teko Jakarta"] and in_jakarta.total == 1
    assert in_jakarta.cards[0].distance_km == 116.2
    assert names(find(catalogue, text="teko")) == ["Teko Bandung", "Teko Jakarta"]
    assert names(find(catalogue, text="teko", near_user=True, radius_km=50)) == ["Teko Bandung"]
    around_jakarta = find(catalogue, text="teko", cities=["Jakarta"], radius_km=50)
    assert names(around_jakarta) == ["Teko Jakarta"] and around_jakarta.cards[0].distance_km == 116.2


def test_where_a_named_place_has_nothing_the_nearest_elsewhere_is_said(catalogue: Catalogue) -> None:
    catalogue.put("Teko B", shop=catalogue.shop("Bandung", BANDUNG), price=90)
    catalogue.put("Teko S", shop=catalogue.shop("Surabaya", SURABAYA), price=90)
    catalogue.put("Teko mahal", shop=catalogue.shop("Jakarta", JAKARTA), price=110)
    places: tuple[dict[str, Any], ...] = ({"cities": ["Jakarta"]}, {"provinces": ["DKI Jakarta"]})
    for place in places:
        found = find(catalogue, text="teko", max_price=100, **place)
        assert found.cards == [] and found.total == 0 and "Jakarta" in str(found.nearest_place)
        assert [card.name for card in found.nearest] == ["Teko B", "Teko S"]
        near = found.nearest[0]
        assert near.distance_km and near.distance_km > 100 and near.fulfilment is None


def test_relaxations_were_tried_and_each_finds_what_it_counts(catalogue: Catalogue) -> None:
    cimahi = catalogue.shop("Cimahi", (-6.8722, 107.5423))
    for price, shop in ((120, None), (150, None), (900, None), (90, cimahi)):
        catalogue.put("Teko", price=price, **({"shop": shop} if shop else {"shop": catalogue.shop("Bandung", BANDUNG)}))
    found = find(catalogue, text="teko", max_price=100, cities=["Bandung"])
    said = [(one.without, one.query.max_price, one.query.cities, one.query.radius_km) for one in found.relaxations]
    assert said == [
        ("max_price", 125, ["Bandung"], None),
        ("max_price", 150, ["Bandung"], None),
        ("city", 100, ["Bandung"], 40.0),
        ("max_price", None, ["Bandung"], None),
    ]
    with catalogue.market.reading() as session:
        for one in found.relaxations:
            again = find_goods(GoodsSearch(catalogue.search, session, IN_BANDUNG), one.query)
            assert again.total == one.count == len(again.cards)


def test_two_filters_are_dropped_where_none_alone_hides_the_goods(catalogue: Catalogue) -> None:
    catalogue.put_all(
        [{"name": "Laptop gaming", "price": 900, "category": "laptop"}, {"name": "Ultrabook", "category": "laptop"}]
    )
    query: dict[str, Any] = {"category": "laptop", "text": "gaming", "max_price": 100, "cities": ["Bandung"]}
    found = find(catalogue, **query)
    [tried] = found.relaxations
    assert (tried.without, tried.count, tried.query.cities, tried.query.max_price) == (
        "max_price and city",
        1,
        [],
        None,
    )
    assert (
        found.cards == []
        and relaxation_text(StructuredQuery(**query), tried, "id") == "Tanpa batas harga, di semua kota"
    )
    [tried] = find(catalogue, **(query | {"text": "ungu", "max_price": None})).relaxations
    text = relaxation_text(StructuredQuery(text="ungu"), tried, "en")
    assert (text, tried.count) == ("Without the words “ungu”, in any city", 2)


def test_products_that_the_buyer_points_at_come_even_if_sold_out(catalogue: Catalogue) -> None:
    ids = catalogue.put_all([{"name": "Teko A", "sku": "A-1"}, {"name": "Teko B", "on_hand": 0}, {"name": "Panci"}])
    found = find(catalogue, product_ids=[ids[1], ids[0]], intent="stock", quantity=3)
    assert [(card.name, card.available_quantity) for card in found.cards] == [("Teko B", 0), ("Teko A", 5)]
    assert names(find(catalogue, product_ids=[ids[2], 10**9])) == ["Panci"]
    # Not "gone": they are there, beyond the limit of the turn before.
    assert len(names(find(catalogue, product_ids=ids, sort="price_desc", max_price=1))) == 3
    assert names(find(catalogue, sku="A-1")) == ["Teko A"]
    sold_out = find(catalogue, text="teko b", intent="stock", in_stock=True)
    assert [(card.name, card.available_quantity) for card in sold_out.cards[: sold_out.total]] == [("Teko B", 0)]


def test_a_comparison_takes_the_best_match_of_each_phrase(catalogue: Catalogue) -> None:
    catalogue.put_all(
        [
            {"name": "Laptop Asus TUF", "brand": "Asus", "category": "laptop"},
            {"name": "Laptop Lenovo LOQ", "brand": "Lenovo", "category": "laptop"},
            {"name": "Tas laptop asus lenovo", "category": "bag"},
        ]
    )
    compare = ComparedThings(items=["laptop asus", "laptop lenovo"])
    assert names(find(catalogue, intent="compare", compare=compare)) == ["Laptop Asus TUF", "Laptop Lenovo LOQ"]
    with_unknown = find(catalogue, intent="compare", compare=ComparedThings(items=["asus", "zzzz"]), category="laptop")
    assert names(with_unknown) == ["Laptop Asus TUF"] and with_unknown.missing == ["zzzz"]


def test_without_words_the_best_rated_and_the_nearest_are_weighed(catalogue: Catalogue) -> None:
    far = catalogue.shop("Surabaya", SURABAYA)
    catalogue.put_all([{"name": f"Teko {n}", "shop": far, "category": "kettle"} for n in range(9)])
    catalogue.put("Teko dekat", shop=catalogue.shop("Bandung", BANDUNG), category="kettle")
    found = find(catalogue, category="kettle")
    assert (
        names(found)[0] == "Teko dekat" and len(found.cards) == 8 and (found.total, found.total_is_exact) == (10, True)
    )
    assert find(catalogue, intent="other", text="halo").cards == []


def test_words_that_few_products_have_are_flagged(catalogue: Catalogue) -> None:
    catalogue.put("Teko listrik merah")
    found = find(catalogue, text="teko ungu mengkilap")
    assert names(found) == ["Teko listrik merah"] and found.unverified_words and found.total == 0
    catalogue.put("Teko ungu mengkilap", shop=catalogue.shop("Surabaya", SURABAYA))
    found = find(catalogue, text="teko ungu mengkilap", viewer=Viewer(origin=Point(*JAKARTA)))
    assert names(found) == ["Teko ungu mengkilap", "Teko listrik merah"]  # although it is farther
    assert found.unverified_words and found.total == 1
    assert find(catalogue, text="teko listrick").corrected == "teko listrik"


def test_few_matches_are_followed_by_others_of_the_category(catalogue: Catalogue) -> None:
    bandung = catalogue.shop("Bandung", BANDUNG)
    catalogue.put("Lenovo Slim", category="laptop", shop=bandung)
    catalogue.put("Asus TUF untuk kuliah", category="laptop", shop=bandung)
    catalogue.put("Tas kuliah", category="bag", shop=bandung)
    found = find(catalogue, category="laptop", text="kuliah")
    assert names(found) == ["Asus TUF untuk kuliah", "Lenovo Slim"] and found.total == 1 and found.unverified_words
    nowhere = find(catalogue, category="laptop", text="lenovo", cities=["Jakarta"])
    assert nowhere.cards == [] and [card.name for card in nowhere.nearest] == ["Lenovo Slim"]
    catalogue.put("Acer Swift", category="laptop", shop=catalogue.shop("Jakarta", JAKARTA))
    partly = find(catalogue, category="laptop", text="lenovo", cities=["Jakarta"])
    assert names(partly) == ["Acer Swift"] and partly.total == 0
    assert [card.name for card in partly.nearest] == ["Lenovo Slim"]


def test_a_category_without_goods_becomes_words(catalogue: Catalogue) -> None:
    catalogue.put("Kulkas Sharp", category="Elektronik Rumah")
    catalogue.put("Teko Sharp", category="Elektronik Rumah")
    assert names(find(catalogue, category="refrigerator", brands=[])) == ["Kulkas Sharp"]
    assert names(find(catalogue, category="refrigerator", text="kulkas")) == ["Kulkas Sharp"]
    assert names(find(catalogue, category="refrigerator", text="sharp"))[0] == "Kulkas Sharp"
    assert names(find(catalogue, category="tools", text="teko")) == ["Teko Sharp"]


def kept(catalogue: Catalogue, ids: list[int], viewer: Viewer = IN_BANDUNG, **fields: Any) -> list[int]:
    with catalogue.market.reading() as session:
        return still_wanted(GoodsSearch(catalogue.search, session, viewer), ids, StructuredQuery(**fields))


def test_what_changed_meanwhile_is_not_offered_against_the_limits(catalogue: Catalogue) -> None:
    cheap, dear, sold_out, deleted = catalogue.put_all(
        [
            {"name": "Teko", "price": 90},
            {"name": "Panci", "price": 110},
            {"name": "Wajan", "on_hand": 0},
            {"name": "Lap"},
        ]
    )
    catalogue.change(deleted, deleted_at=now())
    ids = [dear, sold_out, cheap, deleted]
    assert kept(catalogue, ids, text="teko", max_price=100) == [cheap]
    assert kept(catalogue, ids, text="teko", cities=["Jakarta"], sort="price_asc") == [dear, cheap]
    assert kept(catalogue, ids, cities=["Bandung"]) == kept(catalogue, [], max_price=100) == []
    assert kept(catalogue, ids, intent="stock", text="wajan") == [dear, sold_out, cheap]
    assert kept(catalogue, ids, product_ids=[sold_out, dear], max_price=100_000_000) == [dear, sold_out, cheap]
    assert kept(catalogue, ids, compare=ComparedThings(product_ids=ids), max_price=1) == ids


def test_what_is_compared_may_be_sold_out(catalogue: Catalogue) -> None:
    catalogue.put_all([{"name": "Teko Merapi"}, {"name": "Teko Rinjani", "on_hand": 0}])
    compare = ComparedThings(items=["teko merapi", "teko rinjani"])
    assert names(find(catalogue, intent="compare", compare=compare)) == ["Teko Merapi", "Teko Rinjani"]


def test_goods_on_promotion_are_found_with_the_price_before_and_the_lowest_of_30_days(catalogue: Catalogue) -> None:
    ids = {name: catalogue.put(name, price=price) for name, price in (("Teko A", 100), ("Teko B", 80), ("Teko C", 90))}
    moment = now()
    periods = {"begins_at": moment - timedelta(hours=1), "ends_at": moment + timedelta(hours=1)}
    with catalogue.market.writing() as session:
        for name, state in (("Teko B", "running"), ("Teko C", "scheduled")):
            promotion = Promotion(product_id=ids[name], supplier_id=catalogue.default_shop, price=80, state=state)
            promotion.begins_at, promotion.ends_at = periods["begins_at"], periods["ends_at"]
            promotion.lowest_before = 95 if state == "running" else None
            session.add(promotion)
    catalogue.change(ids["Teko B"], normal_price=110)
    found = find(catalogue, text="teko", on_promotion=True)
    assert names(found) == ["Teko B"] and found.total == 1
    shown = found.cards[0].promotion
    assert shown is not None
    assert (shown.normal_price, shown.lowest_price_30d, shown.discount_percent) == (110, 95, 15)
    said = "\n".join(render_answer(found, (), StructuredQuery(text="teko", on_promotion=True), IN_BANDUNG).sentences)
    assert "Rp 80" in said and "biasanya Rp 110, terendah 30 hari sebelumnya Rp 95" in said
    assert "yang sedang promo" in said
    assert {card.promotion is None for card in find(catalogue, text="teko").cards} == {True, False}

    catalogue.change(ids["Teko B"], normal_price=None)
    with catalogue.market.writing() as session:
        session.execute(update(Promotion).values(state="ended"))
    none = find(catalogue, text="teko", on_promotion=True)
    assert none.cards == [] and [(one.without, one.count) for one in none.relaxations] == [("on_promotion", 3)]
    assert relaxation_text(StructuredQuery(text="teko"), none.relaxations[0], "id") == "Tanpa promo"
