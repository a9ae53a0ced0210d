"""Pages by `skip` and by cursor, in every sort order."""

import random
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, get_args

import pytest
from sqlalchemy import delete

from tests.marketplace.search.conftest import BANDUNG, JAKARTA, SURABAYA, Catalogue
from tis.marketplace.kit.geo import Point
from tis.marketplace.search.query import PageRequest, ProductQuery, Sort
from tis.marketplace.search.vocabulary_cache import expire_categories
from tis.marketplace.tables import Category

pytestmark = pytest.mark.long

SORTS: list[Sort | None] = [None, *get_args(Sort)]


@pytest.fixture
def filled(catalogue: Catalogue) -> Catalogue:
    """Most products tie in most orders; ties must have a fixed order, too."""
    chance = random.Random(3)
    shops = [catalogue.shop(place=place) for place in (JAKARTA, BANDUNG, SURABAYA, JAKARTA)]
    catalogue.put_all(_random_product(chance, shops, number) for number in range(40))
    return catalogue


def _random_product(chance: random.Random, shops: list[int], number: int) -> dict[str, Any]:
    return {
        "name": chance.choice(["Teko besar", "Cangkir", "Teko kecil"]),
        "shop": chance.choice(shops),
        "price": chance.choice([1000, 2000, 3000]),
        "rating_rank": chance.choice([3.5, 4.5]),
        "tags": chance.choice(["teko", None]),
        "description": f"teko nomor {number}",
    }


def query_for(sort: Sort | None, text: str | None = "teko") -> ProductQuery:
    return ProductQuery(text=text, origin=Point(*JAKARTA), sort=sort)


def pages(catalogue: Catalogue, query: ProductQuery, between: Callable[[], object] = lambda: None) -> Iterator[int]:
    cursor = None
    while True:
        with catalogue.market.reading() as session:
            found = catalogue.search.find(session, query, PageRequest(6, cursor=cursor))
        yield from (hit.product.id for hit in found.hits)
        cursor = found.next_cursor
        if cursor is None:
            return
        between()


@pytest.mark.parametrize("text", ["teko", None])
@pytest.mark.parametrize("sort", SORTS)
def test_all_pages_together_are_the_list(filled: Catalogue, sort: Sort | None, text: str | None) -> None:
    query = query_for(sort, text)
    with filled.market.reading() as session:
        whole = [hit.product.id for hit in filled.search.find(session, query, PageRequest(100)).hits]
        skipped = [
            hit.product.id
            for skip in range(0, 48, 6)
            for hit in filled.search.find(session, query, PageRequest(6, skip)).hits
        ]
    assert len(whole) == len(set(whole)) == 40
    assert list(pages(filled, query)) == skipped == whole


@pytest.mark.parametrize("text", ["teko", None])
@pytest.mark.parametrize("sort", SORTS)
def test_no_product_is_missed_or_repeated_while_others_are_added(
    filled: Catalogue, sort: Sort | None, text: str | None
) -> None:
    query, chance, shop = query_for(sort, text), random.Random(5), [filled.shop(place=BANDUNG)]
    with filled.market.reading() as session:
        at_first = [hit.product.id for hit in filled.search.find(session, query, PageRequest(100)).hits]
    seen = list(pages(filled, query, lambda: filled.put(**_random_product(chance, shop, chance.randrange(1000)))))
    assert len(seen) == len(set(seen))
    assert [product_id for product_id in seen if product_id in at_first] == at_first


def test_the_second_page_has_the_same_spelling_correction_as_the_first(filled: Catalogue) -> None:
    """Even if a product with the misspelt word is added in between."""
    query = ProductQuery(text="tekk", sort="price_asc")
    seen = list(pages(filled, query, lambda: filled.put("Tekk")))
    with filled.market.reading() as session:
        names = {hit.product.name for hit in filled.search.find(session, ProductQuery("tekk"), PageRequest(9)).hits}
    assert names == {"Tekk"} and len(seen) == 40


def test_each_sort_orders_by_its_column(catalogue: Catalogue) -> None:
    for name, price, rank in (("Teko A", 3000, 4.0), ("Teko B", 1000, 5.0), ("Teko C", 2000, 3.0)):
        catalogue.put(name, price=price, rating_rank=rank)
    for text in ("teko", None):
        assert catalogue.names(text, sort="price_asc") == ["Teko B", "Teko C", "Teko A"]
        assert catalogue.names(text, sort="price_desc") == ["Teko A", "Teko C", "Teko B"]
        assert catalogue.names(text, sort="rating") == ["Teko B", "Teko A", "Teko C"]
        assert catalogue.names(text, sort="newest") == ["Teko C", "Teko B", "Teko A"]
    assert catalogue.names() == ["Teko A", "Teko B", "Teko C"]


def test_a_total_is_exact_up_to_a_limit(catalogue: Catalogue) -> None:
    catalogue.limit_search(max_counted=3)
    for _ in range(3):
        catalogue.put("Teko")
    assert [(found.total, found.total_is_exact) for found in (catalogue.find("teko"), catalogue.find())] == [
        (3, True)
    ] * 2
    catalogue.put("Teko")
    assert [(found.total, found.total_is_exact) for found in (catalogue.find("teko"), catalogue.find())] == [
        (3, False)
    ] * 2


def test_a_total_is_not_counted_unless_requested(catalogue: Catalogue) -> None:
    catalogue.put("Teko")
    with catalogue.market.reading() as session:
        found = catalogue.search.find(session, ProductQuery("teko"), PageRequest(5, with_total=False))
    assert found.total is None and len(found.hits) == 1


def test_a_cursor_does_not_grow_with_the_names_of_a_category(catalogue: Catalogue) -> None:
    with catalogue.market.writing() as session:
        session.add(Category(slug="trunk", name_id="Batang", name_en="Trunk"))
        session.flush()
        session.add_all(Category(slug=f"{n}x", name_id=f"{n} y", name_en=f"{n} z", parent="trunk") for n in range(101))
        expire_categories(session)
    try:
        for number in range(101):
            catalogue.put("Teko", category=f"{number} y")
            catalogue.put("Teko", category=f"{number} z")
        for sort in (None, "price_asc"):
            query = ProductQuery(category="trunk", sort=sort)
            assert len(list(islice(pages(catalogue, query), 13))) == 13
    finally:
        with catalogue.market.writing() as session:
            session.execute(delete(Category).where(Category.parent == "trunk"))
            session.execute(delete(Category).where(Category.slug == "trunk"))
            expire_categories(session)
