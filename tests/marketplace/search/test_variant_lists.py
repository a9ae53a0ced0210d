"""A list shows one product of each group of variants, once, whatever is asked for and however it is read."""

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, update

from tests.marketplace.search.conftest import BANDUNG, JAKARTA, SURABAYA, Catalogue
from tis.marketplace.kit.geo import Point
from tis.marketplace.market import Market
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.search.query import AttributeFilter, PageRequest, ProductQuery, SearchLimits, Sort
from tis.marketplace.search.sql import run
from tis.marketplace.search.vocabulary_cache import expire_categories
from tis.marketplace.tables import Category, Lexeme, Product, ProductGroup, Supplier

_NUM_PRODUCTS = 60
_COLORS, _SIZES = ("merah", "hitam", "biru"), (39, 40, 41, 42)
HERE = Point(*JAKARTA)


def group_of(catalogue: Catalogue, product_ids: list[int], name: str | None = None) -> int:
    """Directly in the tables; `axes` are size and color."""
    with catalogue.market.writing() as session:
        shop = session.get_one(Product, product_ids[0]).supplier_id
        name = name or f"Group of {product_ids[0]}"
        group = ProductGroup(supplier_id=shop, name=name, name_key=name, axes=["size", "color"])
        session.add(group)
        session.flush()
        session.execute(update(Product).where(Product.id.in_(product_ids)).values(group_id=group.id))
        catalogue.search.refresh(session, product_ids)
        return group.id


def _product(chance: random.Random, shop: int, group: int | None) -> dict[str, Any]:
    return {
        "name": chance.choice(["Sepatu lari", "Sandal gunung", "Sepatu kerja"]),
        "shop": shop,
        "price": chance.choice([1000, 2000, 3000, 4000]),
        "rating_rank": chance.choice([3.5, 4.5]),
        "category": chance.choice(["shoes", "shoes", "sandals"]),
        "brand": chance.choice(["Rinjani", "Merapi", None]),
        "on_hand": chance.choice([0, 1, 5, 5]),
        "attributes": {"size": chance.choice(_SIZES), "color": chance.choice(_COLORS)},
        "description": chance.choice(["sepatu ringan", "ringan", None]),
    }


@pytest.fixture(scope="module")
def filled(market_of_backend: Market) -> Iterator[Catalogue]:
    """Nine groups of one to nine variants, and some products alone, of four shops."""
    catalogue, chance = Catalogue(market_of_backend), random.Random(11)
    shops = [catalogue.shop(place=place) for place in (JAKARTA, BANDUNG, SURABAYA, JAKARTA)]
    sizes = [9, 7, 6, 5, 4, 3, 3, 2, 1]
    rows = [
        (_product(chance, shop, number), number)
        for number, size in enumerate(sizes)
        for shop in [chance.choice(shops)]
        for _ in range(size)
    ]
    rows += [(_product(chance, chance.choice(shops), None), -1) for _ in range(_NUM_PRODUCTS - len(rows))]
    chance.shuffle(rows)
    ids = catalogue.put_all(values for values, _ in rows)
    for number in range(len(sizes)):
        group_of(catalogue, [one for one, (_, group) in zip(ids, rows, strict=True) if group == number])
    yield catalogue
    with market_of_backend.writing() as session:
        for table in (Product, ProductGroup, Supplier, Lexeme):
            session.execute(delete(table))


QUERIES = st.builds(
    ProductQuery,
    text=st.sampled_from([None, "sepatu", "sepatu ringan", "sepatu merah", "sandal 42 biru", "sepatu gunung mahal"]),
    sort=st.sampled_from([None, *get_args(Sort)]),
    category=st.sampled_from([None, None, "shoes"]),
    brand=st.sampled_from([None, None, "rinjani"]),
    min_price=st.sampled_from([None, None, 2000]),
    max_price=st.sampled_from([None, None, 3000]),
    available_only=st.booleans(),
    origin=st.just(HERE),
    radius_km=st.sampled_from([None, None, 150.0]),
    exclude_terms=st.sampled_from([(), (), ("hitam",)]),
    tie_order=st.sampled_from([None, "price_asc", "newest", "distance"]),
    attributes=st.sampled_from([(), (), (AttributeFilter("size", "gte", (41.0,)),)]),
)


def ids_of(catalogue: Catalogue, query: ProductQuery, limit: int = 100, skip: int = 0) -> list[int]:
    with catalogue.market.reading() as session:
        return [hit.product.id for hit in catalogue.search.find(session, query, PageRequest(limit, skip)).hits]


def by_cursor(catalogue: Catalogue, query: ProductQuery, limit: int) -> list[int]:
    found, cursor = list[int](), None
    while True:
        with catalogue.market.reading() as session:
            page = catalogue.search.find(session, query, PageRequest(limit, cursor=cursor))
        found += [hit.product.id for hit in page.hits]
        assert len(page.hits) == limit or page.next_cursor is None
        cursor = page.next_cursor
        if cursor is None:
            return found


def first_of_each(rows: list[int], groups: dict[int, int]) -> list[int]:
    seen: dict[int, int] = {}
    for one in rows:
        seen.setdefault(groups.get(one, -one), one)
    return list(seen.values())


def groups_in(catalogue: Catalogue) -> dict[int, int]:
    with catalogue.market.reading() as session:
        return {product.id: product.group_id for product in session.query(Product) if product.group_id is not None}


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=QUERIES, limit=st.integers(1, 9), max_sorted=st.sampled_from([0, 2000]))
def test_paging_through_a_list_shows_each_group_once_and_all_of_them(
    filled: Catalogue, query: ProductQuery, limit: int, max_sorted: int
) -> None:
    filled.search = ProductSearch(filled.market.search.index, SearchLimits(max_sorted=max_sorted, max_walked=15))
    whole = ids_of(filled, query)
    assert by_cursor(filled, query, limit) == whole
    assert [one for skip in range(0, len(whole), limit) for one in ids_of(filled, query, limit, skip)] == whole
    groups = groups_in(filled)
    assert len({groups.get(one, -one) for one in whole}) == len(whole)
    with filled.market.reading() as session:
        found = filled.search.find(session, query, PageRequest(1))
        all_rows = filled.search.find(session, replace(query, shows_all_variants=True), PageRequest(100))
    assert (found.total, found.total_is_exact) == (len(whole), True)
    if found.relaxed == all_rows.relaxed:
        assert whole == first_of_each([hit.product.id for hit in all_rows.hits], groups)


@pytest.mark.parametrize("text", ["sandal 42 biru", "sepatu gunung mahal sekali"])
def test_goods_that_are_near_in_meaning_are_of_each_group_once(filled: Catalogue, text: str) -> None:
    query, groups = ProductQuery(text, available_only=False), groups_in(filled)
    with filled.market.reading() as session:
        near = run(session, "SELECT product_id, words_digest FROM product_search ORDER BY words_digest")
        fused = filled.search.fused(session, query, [(one, digest) for one, digest in near])
    with filled.market.reading() as session:
        page = filled.search.find(session, query, PageRequest(100), fused)
    whole = [hit.product.id for hit in page.hits]
    assert fused and page.total == len(whole) == len({groups.get(one, -one) for one in whole})
    found, cursor = list[int](), None
    while cursor or not found:
        with filled.market.reading() as session:
            page = filled.search.find(session, query, PageRequest(3, cursor=cursor), () if cursor else fused)
        found += [hit.product.id for hit in page.hits]
        cursor = page.next_cursor
    assert found == whole


def test_the_best_match_stands_for_its_group(filled: Catalogue) -> None:
    ids = filled.put_all(
        {
            "name": "Boot Semeru",
            "shop": filled.default_shop,
            "price": price,
            "attributes": {"size": size, "color": color},
        }
        for size, color, price in ((41, "merah", 900), (42, "hitam", 800), (42, "merah", 950), (40, "hitam", 850))
    )
    group = group_of(filled, ids, "Boot Semeru")
    hit, *others = filled.find("boot semeru 42 merah").hits
    assert hit.product.id == ids[2] and hit.product.attributes == {"size": 42, "color": "merah"}
    assert not {one.product.id for one in others}.intersection(ids)
    assert hit.variants and (hit.variants.group_id, hit.variants.count) == (group, 4)
    assert (hit.variants.price_from, hit.variants.price_to) == (800, 950)
    assert hit.variants.options == {"size": ["40", "41", "42"], "color": ["merah", "hitam"]}
    assert filled.find("boot semeru", sort="price_asc").hits[0].product.id == ids[1]
    every = filled.find("boot semeru", shows_all_variants=True, sort="price_asc").hits
    assert [one.product.id for one in every][:4] == [ids[1], ids[3], ids[0], ids[2]]
    assert {one.product.id for one in filled.find(product_ids=tuple(ids[:2])).hits} == set(ids[:2])
    filled.change(ids[1], on_hand=0)
    hit, *_ = filled.find("boot semeru", sort="price_asc").hits
    assert hit.product.id == ids[3] and hit.variants and (hit.variants.count, hit.variants.price_from) == (3, 850)


def test_facets_count_a_group_once_for_each_value_that_it_has(catalogue: Catalogue) -> None:
    shop = catalogue.shop()
    rows = [(41, "merah", 40_000), (42, "merah", 60_000), (42, "hitam", 60_000)]
    grouped = catalogue.put_all(
        {
            "name": "Boot",
            "shop": shop,
            "price": price,
            "brand": "Semeru",
            "category": "boots",
            "attributes": {"size": size, "color": color},
        }  # fmt: skip
        for size, color, price in rows
    )
    group_of(catalogue, grouped)
    catalogue.put("Boot", shop=shop, price=60_000, brand="Semeru", category="boots", attributes={"size": 42})
    query = ProductQuery("boot", supplier_id=shop)
    with catalogue.market.reading() as session:
        counts = catalogue.search.facets(session, query, ["category", "brand", "price", "attributes"])
        alone = catalogue.search.facets(session, query, ["brand"])
        of_all = catalogue.search.facets(session, replace(query, shows_all_variants=True), ["brand"])
    found = {name: [(one.value, one.count) for one in counts.facets[name]] for name in ("category", "brand")}  # type: ignore[union-attr]
    assert found == {"category": [("boots", 2)], "brand": [("semeru", 2)]}
    assert [one.count for one in alone.facets["brand"]] == [2] and [one.count for one in of_all.facets["brand"]] == [4]
    assert [(one.least, one.count) for one in counts.facets["price"]] == [(0, 1), (50_000, 2)]  # type: ignore[union-attr]
    attributes = {
        one.name: (one.count, [(value.value, value.count) for value in one.values])  # type: ignore[union-attr]
        for one in counts.facets["attributes"]
    }
    assert attributes == {"size": (2, [("41", 1), ("42", 2)]), "color": (1, [("hitam", 1), ("merah", 1)])}
    with catalogue.market.reading() as session:
        assert catalogue.search.count_by_category(session, ["boots"]) == {"boots": 2}


def test_a_group_in_two_categories_counts_once_in_what_has_both(catalogue: Catalogue) -> None:
    with catalogue.market.writing() as session:
        session.add(Category(slug="footwear", name_id="Alas kaki", name_en="Footwear"))
        session.flush()
        session.add_all(Category(slug=one, name_id=one, name_en=one, parent="footwear") for one in ("clogs", "mules"))
        expire_categories(session)
    shop = catalogue.shop()
    try:
        group_of(
            catalogue, catalogue.put_all({"name": "X", "shop": shop, "category": one} for one in ("clogs", "mules"))
        )
        catalogue.put("Y", shop=shop, category="footwear")
        with catalogue.market.reading() as session:
            found = catalogue.search.facets(session, ProductQuery(supplier_id=shop), ["category"]).facets["category"]
            counts = catalogue.search.count_by_category(session, ["footwear", "clogs", "mules"])
            total = catalogue.search.find(session, ProductQuery(category="footwear"), PageRequest()).total
        assert counts == {"footwear": 2, "clogs": 1, "mules": 1} and total == 2
        assert {one.value: one.count for one in found} == counts  # type: ignore[union-attr]
    finally:
        with catalogue.market.writing() as session:
            session.execute(delete(Category).where(Category.parent == "footwear"))
            session.execute(delete(Category).where(Category.slug == "footwear"))
            expire_categories(session)


def test_a_total_of_many_variants_is_counted_further(catalogue: Catalogue) -> None:
    catalogue.limit_search(max_counted=3)
    shop = catalogue.shop()
    for _ in range(3):
        group_of(catalogue, catalogue.put_all({"name": "Boot", "shop": shop} for _ in range(9)))
    for text in ("boot", None):
        found = catalogue.find(text, supplier_id=shop)
        assert (found.total, found.total_is_exact, len(found.hits)) == (3, True, 3)
    catalogue.put("Boot", shop=shop)
    for text in ("boot", None):
        found = catalogue.find(text, supplier_id=shop)
        assert (found.total, found.total_is_exact) == (3, False)
