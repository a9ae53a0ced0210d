"""The order by relevance: tiers, rings around the buyer, ratings. Small and large tiers give the same lists."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.marketplace.search.conftest import BANDUNG, JAKARTA, SURABAYA, Catalogue
from tests.marketplace.search.test_keyset_paging import pages
from tis.marketplace.kit.geo import Point
from tis.marketplace.search.query import PageRequest, ProductQuery, SearchHit
from tis.marketplace.search.sql import run
from tis.marketplace.search.text_query import Term, TermGroup, TextQuery, match_tiers

pytestmark = pytest.mark.long

# Kilometres from the buyer in Jakarta: 0, 4, 11, 28, 71, 116, 662.
PLACES = [JAKARTA, (-6.24, 106.82), (-6.30, 106.81), (-6.40, 106.68), (-6.80, 106.60), BANDUNG, SURABAYA]
HERE = Point(*JAKARTA)


@pytest.fixture
def many(catalogue: Catalogue) -> Catalogue:
    """Two tiers of `teko` (in the name, in the text), ties of ratings, some sold out."""
    chance = random.Random(11)
    shops = [catalogue.shop(place=place) for place in PLACES]
    catalogue.put_all(
        {
            "name": "Teko" if number % 3 else "Panci",
            "description": "teko" if number % 5 else None,
            "shop": chance.choice(shops),
            "price": chance.choice([1000, 2000]),
            "rating_rank": chance.choice([3.5, 4.0, 4.5]),
            "on_hand": int(number % 7 > 0),
        }
        for number in range(80)
    )
    return catalogue


SMALL: dict[str, int] = {}
LARGE = {"max_sorted": 0}
ENDS_EARLY = {"max_sorted": 0, "max_walked": 5}


def sizes(catalogue: Catalogue) -> Iterator[None]:
    """As a small tier, which is sorted whole, as a large one, and as one in which few of the best rated are found."""
    for limits in (SMALL, LARGE, ENDS_EARLY):
        catalogue.limit_search(**limits)
        yield


def hits(catalogue: Catalogue, query: ProductQuery) -> list[SearchHit]:
    with catalogue.market.reading() as session:
        return catalogue.search.find(session, query, PageRequest(200)).hits


def test_a_better_match_is_first_and_then_the_nearer_ring_and_then_the_better_rated(catalogue: Catalogue) -> None:
    near, farther, far = (catalogue.shop(place=place) for place in (PLACES[1], PLACES[2], BANDUNG))
    for name, shop, rank in (
        ("Teko jauh bagus", far, 5.0),
        ("Teko dekat", near, 3.0),
        ("Teko dekat bagus", near, 4.0),
        ("Teko agak jauh", farther, 4.9),
    ):
        catalogue.put(name, shop=shop, rating_rank=rank)
    catalogue.put("Panci", description="untuk teko", shop=near, rating_rank=5.0)
    for _ in sizes(catalogue):
        assert catalogue.names("teko", origin=HERE) == [
            "Teko dekat bagus", "Teko dekat", "Teko agak jauh", "Teko jauh bagus", "Panci",
        ]  # fmt: skip
        assert catalogue.names("teko", origin=HERE, sort="distance")[:2] == ["Teko dekat", "Teko dekat bagus"]
        assert catalogue.names("teko")[:2] == ["Teko jauh bagus", "Teko agak jauh"]


@pytest.mark.parametrize(
    ("origin", "filters"),
    [(HERE, {}), (HERE, {"max_price": 1000}), (HERE, {"radius_km": 60.0}), (None, {}), (None, {"max_price": 1000})],
    ids=str,
)
def test_large_tiers_give_the_list_that_small_ones_give(
    many: Catalogue, origin: Point | None, filters: dict[str, Any]
) -> None:
    query = ProductQuery("teko", origin=origin, **filters)
    lists = []
    for _ in sizes(many):
        whole = [hit.product.id for hit in hits(many, query)]
        assert list(pages(many, query)) == whole and len(set(whole)) == len(whole)
        lists.append(whole)
    assert lists[0] == lists[1] == lists[2]


def test_the_list_is_sorted_by_tier_ring_rating_and_id(many: Catalogue) -> None:
    found = hits(many, ProductQuery("teko", origin=HERE))
    with many.market.reading() as session:
        rank_of = dict(run(session, "SELECT product_id, rating_rank FROM product_search"))

    def place_in_list(hit: SearchHit) -> tuple[Any, ...]:
        ring = sum((hit.distance_km or 0.0) > edge for edge in (5, 15, 40, 100, 300))
        return hit.product.name != "Teko", ring, -rank_of[hit.product.id], -hit.product.id

    places = [place_in_list(hit) for hit in found]
    assert places == sorted(places) and {ring for _, ring, *_ in places} == {0, 1, 2, 3, 4, 5}


def test_a_page_behind_a_small_tier_may_be_read_as_a_large_one(many: Catalogue) -> None:
    query = ProductQuery("teko", origin=HERE)
    whole = [hit.product.id for hit in hits(many, query)]
    seen, cursor, number, key = [], None, 0, many.search.cursor_key
    while cursor or not number:
        many.limit_search(**(SMALL, LARGE, ENDS_EARLY)[number % 3])
        many.search.cursor_key = key
        number += 1
        with many.market.reading() as session:
            found = many.search.find(session, query, PageRequest(7, cursor=cursor))
        seen += [hit.product.id for hit in found.hits]
        cursor = found.next_cursor
    assert seen == whole and number > 7


def test_the_best_rated_of_a_large_tier_are_first_however_old_they_are(catalogue: Catalogue) -> None:
    best = catalogue.put("Teko", rating_rank=5.0)
    catalogue.put_all({"name": "Teko", "rating_rank": 4.0} for _ in range(30))
    for _ in sizes(catalogue):
        found = catalogue.find("teko", limit=3)
        assert found.hits[0].product.id == best
        assert len(list(pages(catalogue, ProductQuery("teko")))) == 31


def test_a_word_that_few_of_the_best_rated_have_is_found_all_the_same(catalogue: Catalogue) -> None:
    catalogue.put_all({"name": "Panci", "rating_rank": 5.0} for _ in range(120))
    ids = [catalogue.put("Teko", rating_rank=3.0 + number) for number in range(3)]
    for _ in sizes(catalogue):
        assert [hit.product.id for hit in catalogue.find("teko", limit=2).hits] == [ids[2], ids[1]]


def test_products_that_are_added_between_two_pages_are_not_in_the_list(many: Catalogue) -> None:
    query = ProductQuery("teko", origin=HERE)
    for _ in sizes(many):
        at_first = [hit.product.id for hit in hits(many, query)]
        seen = list(pages(many, query, lambda: many.put("Teko", rating_rank=5.0, shop=many.default_shop)))
        assert seen == at_first


def test_only_without_synonyms_the_first_tier_has_all_of_the_second() -> None:
    teko, synonym = Term(("teko",)), Term(("ceret",))
    plain = TextQuery((TermGroup((teko,)),))
    assert [one.is_in_earlier_tier for one in match_tiers(plain)][:3] == [False, True, False]
    for group in (TermGroup((teko, synonym)), TermGroup((teko,), ("§dapur",)), TermGroup((teko,), (), ("¶·teko",))):
        assert not any(one.is_in_earlier_tier for one in match_tiers(TextQuery((group,))))
    of_noun = TextQuery(plain.groups, heads=("§·teko", "§·ceret"))
    assert not any(one.is_in_earlier_tier for one in match_tiers(of_noun))
