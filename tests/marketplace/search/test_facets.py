"""Facets: how many products each value of a filter would leave."""

from typing import Any

import pytest

from tests.marketplace.search.conftest import BANDUNG, Catalogue
from tis.marketplace.kit.principal import Principal
from tis.marketplace.market import Market
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.search.query import (
    FacetCounts,
    FacetName,
    Facets,
    FacetValue,
    PageRequest,
    PriceRange,
    ProductQuery,
)
from tis.marketplace.taxonomy.service import add_category, delete_category

ADMIN = Principal("user:1", user_id=1, is_admin=True)
BOTH = pytest.mark.parametrize("text", ["teko", None])


def facets_of(catalogue: Catalogue, *names: FacetName, **filters: object) -> Facets:
    with catalogue.market.reading() as session:
        return catalogue.search.facets(session, ProductQuery(**filters), names).facets  # type: ignore[arg-type]


@BOTH
def test_facets_count_the_products_that_each_value_would_leave(catalogue: Catalogue, text: str | None) -> None:
    bandung = catalogue.shop("Bandung", BANDUNG)
    catalogue.put("Teko A", category="Dapur", brand="Maspion", price=40_000)
    catalogue.put("Teko B", category="Dapur", price=60_000, shop=bandung)
    catalogue.put("Teko C", category="Hobi", brand="MASPION", price=50_000)
    catalogue.put("Teko D", category="Hobi", brand="Philips", price=25_000_000)
    catalogue.put("Teko E", category="Hobi", on_hand=0)
    facets = facets_of(catalogue, "price", "category", "brand", "city", text=text)
    assert list(facets) == ["price", "category", "brand", "city"]
    assert facets["category"] == [FacetValue("dapur", "Dapur", 2), FacetValue("hobi", "Hobi", 2)]
    brands = [(one.value, one.count) for one in facets["brand"] if isinstance(one, FacetValue)]
    assert brands == [("maspion", 2), ("philips", 1)]
    assert facets["city"] == [FacetValue("jakarta", "Jakarta", 3), FacetValue("bandung", "Bandung", 1)]
    assert facets["price"] == [PriceRange(0, 49_999, 1), PriceRange(50_000, 99_999, 2), PriceRange(20_000_000, None, 1)]


@BOTH
def test_filtering_by_a_facet_value_finds_as_many_products_as_it_counted(
    catalogue: Catalogue, text: str | None
) -> None:
    for category, price in (("fan", 49_999), ("Kipas angin", 50_000), ("hobi", 99_999), ("hobi", 100_000)):
        catalogue.put("Teko", category=category, price=price)
    facets = facets_of(catalogue, "category", "price", text=text)
    values = {one.value: one.count for one in facets["category"] if isinstance(one, FacetValue)}
    assert values == {"fan": 2, "hobi": 2}
    for value, count in values.items():
        assert catalogue.find(text, category=value).total == count
    for one in facets["price"]:
        assert isinstance(one, PriceRange)
        assert catalogue.find(text, min_price=one.least, max_price=one.most).total == one.count


@BOTH
def test_a_facet_ignores_only_the_filter_of_its_own_name(catalogue: Catalogue, text: str | None) -> None:
    catalogue.put("Teko A", category="dapur", brand="maspion", price=40_000)
    catalogue.put("Teko B", category="dapur", brand="philips", price=60_000)
    catalogue.put("Teko C", category="hobi", brand="philips", price=60_000)
    facets = facets_of(catalogue, "category", "brand", "price", text=text, category="dapur", brand="maspion")
    assert facets["category"] == [FacetValue("dapur", "dapur", 1)]
    assert facets["brand"] == [FacetValue("maspion", "maspion", 1), FacetValue("philips", "philips", 1)]
    assert facets["price"] == [PriceRange(0, 49_999, 1)]
    cheap = facets_of(catalogue, "price", "category", text=text, max_price=50_000)
    assert cheap["price"] == [PriceRange(0, 49_999, 1), PriceRange(50_000, 99_999, 2)]
    assert cheap["category"] == [FacetValue("dapur", "dapur", 1)]


def test_facets_without_matches_are_empty(catalogue: Catalogue) -> None:
    assert facets_of(catalogue, "brand", "price", text="zzyzx") == {"brand": [], "price": []}
    assert facets_of(catalogue, "brand", text="!!!") == {"brand": []}
    assert facets_of(catalogue, text="teko") == {}


def test_facets_of_a_relaxed_search_count_its_hits(catalogue: Catalogue) -> None:
    catalogue.put("Teko", category="dapur")
    assert catalogue.names("teko zzyzx") == ["Teko"]
    assert facets_of(catalogue, "category", text="teko zzyzx") == {"category": [FacetValue("dapur", "dapur", 1)]}


def test_facets_use_the_same_relaxed_words_as_the_list(catalogue: Catalogue) -> None:
    """Although another category has a product with all words."""
    catalogue.put("Teko merah", category="hobi")
    catalogue.put("Teko biru", category="dapur")
    assert catalogue.names("teko merah", category="dapur") == ["Teko biru"]
    facets = facets_of(catalogue, "category", "city", text="teko merah", category="dapur")
    assert facets["city"] == [FacetValue("jakarta", "Jakarta", 1)]
    assert facets["category"] == [FacetValue("dapur", "dapur", 1), FacetValue("hobi", "hobi", 1)]


def test_a_text_with_filters_is_matched_once_for_all_facets(market: Market) -> None:
    catalogue = Catalogue(market)
    for _ in range(2):
        catalogue.put("Teko A", category="dapur", brand="maspion")
    query = ProductQuery("teko", category="dapur", brand="maspion", city="Jakarta", max_price=2_000_000)
    statements: list[str] = []
    with catalogue.market.reading() as session:
        catalogue.search.facets(session, query, ["category"])
        connection: Any = session.connection().connection.dbapi_connection
        connection.set_trace_callback(statements.append)
        catalogue.search.facets(session, query, ("category", "brand", "city", "price"))
        connection.set_trace_callback(None)
    assert sum(one.startswith("WITH counted") for one in statements) == 1
    assert sum("MATCH" in one for one in statements) == 2, "for the facets; do all words match"
    assert not any("FROM categories" in statement for statement in statements), "they are cached"


@BOTH
def test_of_many_candidates_only_so_many_are_counted(catalogue: Catalogue, text: str | None) -> None:
    for number in range(4):
        catalogue.put("Teko", category="dapur", brand=f"merek {number}")
    catalogue.limit_search(max_faceted=3)
    with catalogue.market.reading() as session:
        counted = catalogue.search.facets(session, ProductQuery(text), ["category"])
        assert counted == FacetCounts({"category": [FacetValue("dapur", "dapur", 3)]}, are_exact=False)
        few = catalogue.search.facets(session, ProductQuery(text, brand="merek 1"), ["category"])
        assert few == FacetCounts({"category": [FacetValue("dapur", "dapur", 1)]})


def test_another_server_counts_by_a_new_category_at_once(catalogue: Catalogue) -> None:
    other = ProductSearch(catalogue.market.search.index)
    catalogue.put("Teko", category="Ketel")
    query = ProductQuery(category="kettles")
    with catalogue.market.reading() as session:
        assert other.find(session, query, PageRequest()).hits == []
    with catalogue.market.writing() as session:
        add_category(session, ADMIN, {"slug": "kettles", "parent": None, "name_id": "Ketel", "name_en": "Kettles"})
    with catalogue.market.reading() as session:
        assert len(other.find(session, query, PageRequest()).hits) == 1
    with catalogue.market.writing() as session:
        delete_category(session, ADMIN, "kettles")
    with catalogue.market.reading() as session:
        assert other.find(session, query, PageRequest()).hits == []
