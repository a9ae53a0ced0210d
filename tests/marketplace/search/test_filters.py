"""Filters of a list, with and without a text."""

import pytest

from tests.marketplace.search.conftest import BANDUNG, Catalogue
from tis.marketplace.search.query import FacetValue, ProductQuery

BOTH = pytest.mark.parametrize("text", ["teko", None])


@BOTH
def test_prices_ratings_condition_brand_and_supplier(catalogue: Catalogue, text: str | None) -> None:
    shop = catalogue.shop()
    catalogue.put("Teko A", price=1000, rating_sum=9, rating_count=2, brand="Maspion", shop=shop)
    catalogue.put("Teko B", price=2000, granted_rating=4.0, condition="used")
    catalogue.put("Teko C", price=3000, brand="maspion ")
    for filters, names in (
        ({"min_price": 2000}, ["Teko B", "Teko C"]),
        ({"max_price": 2000}, ["Teko A", "Teko B"]),
        ({"min_price": 1001, "max_price": 2999}, ["Teko B"]),
        ({"min_rating": 4}, ["Teko A", "Teko B"]),
        ({"min_rating": 4.5}, ["Teko A"]),
        ({"condition": "used"}, ["Teko B"]),
        ({"brand": "MASPION"}, ["Teko A", "Teko C"]),
        ({"supplier_id": shop}, ["Teko A"]),
        ({"supplier_id": shop, "brand": "philips"}, []),
    ):
        assert sorted(catalogue.names(text, **filters)) == names, filters


@BOTH
def test_part_of_a_city_name_is_enough_and_wildcards_are_escaped(catalogue: Catalogue, text: str | None) -> None:
    for city in ("Jakarta", "Jakarta Selatan", "Bandung", "100% Kota_"):
        catalogue.put(f"Teko {city}", shop=catalogue.shop(city))
    assert sorted(catalogue.names(text, city="jakarta")) == ["Teko Jakarta", "Teko Jakarta Selatan"]
    assert catalogue.names(text, city="Jakarta  SELATAN") == ["Teko Jakarta Selatan"]
    assert catalogue.names(text, city="%") == catalogue.names(text, city="kota_") == ["Teko 100% Kota_"]
    for city in ("_a", "!", "Palu"):
        assert catalogue.names(text, city=city) == []


@BOTH
def test_a_city_with_many_products_is_filtered_in_the_same_way(catalogue: Catalogue, text: str | None) -> None:
    catalogue.limit_search(max_products_of_rare_cities=1)
    for city in ("Jakarta", "Jakarta Selatan", "Ja%karta"):
        catalogue.put(f"Teko {city}", shop=catalogue.shop(city))
    assert sorted(catalogue.names(text, city="jakarta")) == ["Teko Jakarta", "Teko Jakarta Selatan"]
    assert sorted(catalogue.names(text, city="a")) == ["Teko Ja%karta", "Teko Jakarta", "Teko Jakarta Selatan"]
    assert catalogue.names(text, city="%") == ["Teko Ja%karta"]


SHOPS_IN = [
    *("Bandung", "Kota Bandung", "Kab. Bandung", "Bandung Barat", "bdg", "Ruko Bandung Blok A", "Cimahi"),
    *("Jakarta Selatan", "Jkt", "Solo", "Solok", "Batu", "Batu Bara"),
]
CITY_FILTERS: dict[str, tuple[str, ...]] = {
    "bandung": ("Bandung", "Bandung Barat", "Kab. Bandung", "Kota Bandung", "Ruko Bandung Blok A", "bdg"),
    "KOTA BANDUNG": ("Bandung", "Kota Bandung", "bdg"),
    "Kabupaten Bandung": ("Bandung", "Kab. Bandung"),
    "Jawa Barat": ("Bandung", "Bandung Barat", "Cimahi", "Kab. Bandung", "Kota Bandung", "bdg"),
    "west java": ("Bandung", "Bandung Barat", "Cimahi", "Kab. Bandung", "Kota Bandung", "bdg"),
    "jakarta": ("Jakarta Selatan", "Jkt"),
    "DKI": ("Jakarta Selatan", "Jkt"),
    "South Jakarta": ("Jakarta Selatan",),
    "jaksel": ("Jakarta Selatan",),
    "jabodetabek": ("Jakarta Selatan", "Jkt"),
    "Surakarta": ("Solo",),
    "solo": ("Solo",),
    "solok": ("Solok",),
    "batu": ("Batu",),
    "Ruko": ("Ruko Bandung Blok A",),
    "ung": ("Bandung", "Bandung Barat", "Kab. Bandung", "Kota Bandung", "Ruko Bandung Blok A"),
    "Medan": (),
    "Bali": (),
}


@pytest.mark.parametrize("max_rare", [1000, 1])
def test_a_city_is_found_by_every_name_of_it_and_by_its_province(catalogue: Catalogue, max_rare: int) -> None:
    catalogue.limit_search(max_products_of_rare_cities=max_rare)
    catalogue.put_all([{"name": f"Teko {city}", "shop": catalogue.shop(city)} for city in SHOPS_IN])
    for text in ("teko", None):
        for city, found in CITY_FILTERS.items():
            assert sorted(catalogue.names(text, city=city)) == [f"Teko {one}" for one in found], (text, city)


def test_facets_are_of_the_cities_that_the_filter_finds(catalogue: Catalogue) -> None:
    for number, city in enumerate(("Solo", "Solok", "Kota Surakarta")):
        catalogue.put("Teko", shop=catalogue.shop(city), brand=f"Merek {number}")
    for max_rare in (1000, 1):
        catalogue.limit_search(max_products_of_rare_cities=max_rare)
        with catalogue.market.reading() as session:
            counts = catalogue.search.facets(session, ProductQuery("teko", city="solo"), ["brand", "city"])
        assert [one.label for one in counts.facets["brand"] if isinstance(one, FacetValue)] == ["Merek 0", "Merek 2"]
        assert len(counts.facets["city"]) == 3


@BOTH
def test_any_name_of_a_category_filters_by_it(catalogue: Catalogue, text: str | None) -> None:
    catalogue.put("Teko listrik", category="Rice Cooker")
    catalogue.put("Teko nasi", category="rice-cooker")
    catalogue.put("Teko kopi", category="Serba-serbi")
    for name in ("rice-cooker", "Rice cooker", "RICE COOKER", "penanak nasi", "magic com"):
        assert sorted(catalogue.names(text, category=name)) == ["Teko listrik", "Teko nasi"], name
    assert catalogue.names(text, category="serba-serbi") == ["Teko kopi"]
    assert catalogue.names(text, category="serba") == []


@BOTH
def test_a_seller_may_use_any_name_of_a_category(catalogue: Catalogue, text: str | None) -> None:
    catalogue.put("Teko A", category="laptop")
    catalogue.put("Teko B", category="Notebook")
    for name in ("laptop", "notebook", "Komputer Jinjing"):
        assert sorted(catalogue.names(text, category=name)) == ["Teko A", "Teko B"], name


@BOTH
def test_unavailable_products_are_listed_only_with_available_only_false(catalogue: Catalogue, text: str | None) -> None:
    catalogue.put("Teko A")
    catalogue.put("Teko B", on_hand=0)
    catalogue.put("Teko C", is_available=False)
    catalogue.put("Teko D", on_hand=3, reserved=3)
    assert catalogue.names(text) == ["Teko A"]
    assert sorted(catalogue.names(text, available_only=False)) == ["Teko A", "Teko B", "Teko C", "Teko D"]


def test_a_hit_has_all_columns_of_the_product_and_its_supplier(catalogue: Catalogue) -> None:
    shop = catalogue.shop("Bandung", BANDUNG, delivery_radius_km=12.5, courier_enabled=False)
    product_id = catalogue.put("Teko", shop=shop, attributes={"liter": 2}, sku="T-1", tags="a,b", granted_rating=4.5)
    [hit] = catalogue.find("teko").hits
    product = hit.product
    assert (product.id, product.attributes, product.sku, product.tags) == (product_id, {"liter": 2}, "T-1", "a,b")
    assert (product.supplier.city, product.supplier.courier_enabled) == ("Bandung", False)
    assert product.supplier.delivery_radius_km == 12.5 and product.is_available is True
    assert product.created_at.tzinfo is not None and product.deleted_at is None
