"""Filters of several values, exclusions, and those that read stock and shop; with and without a text."""

import pytest

from tests.marketplace.search.conftest import BANDUNG, JAKARTA, SURABAYA, Catalogue
from tis.marketplace.kit.geo import Point
from tis.marketplace.search.candidates import candidate_query
from tis.marketplace.search.filter_keys import FilterKeys
from tis.marketplace.search.query import FacetName, FacetValue, PageRequest, ProductQuery
from tis.marketplace.search.sql import run

pytestmark = pytest.mark.long

BOTH = pytest.mark.parametrize("text", ["teko", None])


def values_of(catalogue: Catalogue, name: FacetName, **filters: object) -> dict[str, int]:
    with catalogue.market.reading() as session:
        facets = catalogue.search.facets(session, ProductQuery(**filters), [name]).facets  # type: ignore[arg-type]
    return {one.value: one.count for one in facets[name] if isinstance(one, FacetValue)}


@BOTH
def test_of_several_brands_any_is_found_and_an_excluded_one_never(catalogue: Catalogue, text: str | None) -> None:
    catalogue.put_all([{"name": f"Teko {brand}", "brand": brand} for brand in ("Asus", "Lenovo", "HP", None)])
    for filters, names in (
        ({"brands": ("ASUS", "lenovo")}, ["Teko Asus", "Teko Lenovo"]),
        ({"brand": "asus", "brands": ("hp",)}, ["Teko Asus", "Teko HP"]),
        ({"exclude_brands": ("asus", " HP")}, ["Teko Lenovo", "Teko None"]),
        ({"brands": ("asus", "hp"), "exclude_brands": ("Asus",)}, ["Teko HP"]),
        ({"brand": "asus", "exclude_brands": ("Asus",)}, []),
    ):
        assert sorted(catalogue.names(text, **filters)) == names, filters


@BOTH
@pytest.mark.parametrize("max_rare", [1000, 1])
def test_cities_are_added_and_provinces_narrow_them(catalogue: Catalogue, text: str | None, max_rare: int) -> None:
    catalogue.limit_search(max_products_of_rare_cities=max_rare)
    cities = ("Bandung", "Bandung Barat", "Cimahi", "Jakarta Selatan", "Kota Jambi", "Muaro Jambi", "Jogja", "Ruko 5")
    catalogue.put_all([{"name": f"Teko {city}", "shop": catalogue.shop(city)} for city in cities])
    expected: list[tuple[dict[str, object], list[str]]] = [
        ({"cities": ("cimahi", "jaksel")}, ["Cimahi", "Jakarta Selatan"]),
        ({"city": "cimahi", "cities": ("ruko",)}, ["Cimahi", "Ruko 5"]),
        ({"provinces": ("Jambi",)}, ["Kota Jambi", "Muaro Jambi"]),
        ({"provinces": ("Yogyakarta", "DKI Jakarta")}, ["Jakarta Selatan", "Jogja"]),
        ({"cities": ("bandung", "jaksel"), "provinces": ("jabar",)}, ["Bandung", "Bandung Barat"]),
        ({"cities": ("bandung",), "provinces": ("Bali",)}, []),
        ({"cities": ("bandung", "cimahi"), "exclude_cities": ("bandung barat",)}, ["Bandung", "Cimahi"]),
        ({"provinces": ("jabar",), "exclude_cities": ("bandung",)}, ["Cimahi"]),
        ({"city": "jogja", "exclude_cities": ("Yogyakarta",)}, []),
        ({"exclude_cities": ("jabar", "kota jambi", "ruko")}, ["Jakarta Selatan", "Jogja", "Muaro Jambi"]),
    ]
    for filters, found in expected:
        assert sorted(catalogue.names(text, **filters)) == [f"Teko {city}" for city in found], filters


@BOTH
def test_excluded_terms_are_nowhere_in_name_labels_and_text(catalogue: Catalogue, text: str | None) -> None:
    catalogue.synonym("bekas", "second")
    catalogue.put("Teko kulit sintetis")
    catalogue.put("Teko sarung kulit", description="lapisan sintetis")
    catalogue.put("Teko Wi-Fi", tags="pintar")
    catalogue.put("Teko 1,5 liter", description="second, masih bagus")
    everything = ["Teko 1,5 liter", "Teko Wi-Fi", "Teko kulit sintetis", "Teko sarung kulit"]
    for terms, left_out in (
        (("kulit sintetis",), ["Teko kulit sintetis"]),  # these words, one behind the other
        (("sintetis",), ["Teko kulit sintetis", "Teko sarung kulit"]),
        (("PINTAR", "sarung"), ["Teko Wi-Fi", "Teko sarung kulit"]),
        (("wifi",), ["Teko Wi-Fi"]),
        (("wi-fi",), ["Teko Wi-Fi"]),
        (("1.5 L",), ["Teko 1,5 liter"]),
        (("bekas",), []),  # what else it may mean is not excluded
        (("second",), ["Teko 1,5 liter"]),
        (("sint", "---", '" OR *', "' & !"), []),
    ):
        found = catalogue.names(text, exclude_terms=terms)
        assert sorted(found) == [name for name in everything if name not in left_out], terms


@BOTH
def test_an_excluded_term_holds_also_where_few_words_match(catalogue: Catalogue, text: str | None) -> None:
    catalogue.put("Teko listrik merah")
    catalogue.put("Teko listrik hitam")
    text = text and "teko listrik zzz"
    assert catalogue.names(text, exclude_terms=("merah",)) == ["Teko listrik hitam"]


@BOTH
def test_a_sku_is_found_however_it_is_spelt_and_nothing_else_is(catalogue: Catalogue, text: str | None) -> None:
    catalogue.put("Teko A", sku="ASU-ROG G15.001")
    catalogue.put("Teko B", sku="asurogg15001", shop=catalogue.shop("Medan"))
    catalogue.put("Teko C", sku="ASU-ROG-G15-0011", tags="asurogg15001")
    for sku in ("ASU-ROG-G15-001", "asu rog g15 001", "AsuRogG15.001"):
        assert sorted(catalogue.names(text, sku=sku)) == ["Teko A", "Teko B"], sku
    for sku in ("ASU-ROG", "---", "G15"):
        assert catalogue.names(text, sku=sku) == []
    assert catalogue.names(text, sku="asurogg15001", city="medan") == ["Teko B"]


@BOTH
@pytest.mark.parametrize("sort", [None, "distance", "price_desc"])
def test_products_by_their_ids(catalogue: Catalogue, text: str | None, sort: str | None) -> None:
    first, second, third = (catalogue.put(f"Teko {letter}", sku=letter) for letter in "ABC")
    place = {"origin": Point(*JAKARTA), "sort": sort}
    assert sorted(catalogue.names(text, product_ids=(third, first), **place)) == ["Teko A", "Teko C"]
    assert catalogue.names(text, product_ids=(first, second), sku="b", **place) == ["Teko B"]
    assert catalogue.names(text, product_ids=(), **place) == catalogue.names(text, product_ids=(0,), **place) == []
    assert catalogue.names(text, product_ids=(first,), radius_km=1.0, **place) == ["Teko A"]


@BOTH
@pytest.mark.parametrize("max_large", [1000, 1])
def test_a_quantity_is_what_can_be_bought_at_once(catalogue: Catalogue, text: str | None, max_large: int) -> None:
    catalogue.limit_search(max_products_of_large_stock=max_large)
    catalogue.put("Teko A", on_hand=5)
    catalogue.put("Teko B", on_hand=9, reserved=5)
    catalogue.put("Teko C", on_hand=9, is_available=False)
    assert catalogue.names(text, quantity=5) == ["Teko A"]
    assert sorted(catalogue.names(text, quantity=4)) == ["Teko A", "Teko B"]
    assert sorted(catalogue.names(text, quantity=5, available_only=False)) == ["Teko A", "Teko C"]
    assert sorted(catalogue.names(text, quantity=1)) == ["Teko A", "Teko B"]
    assert catalogue.names(text, quantity=10) == catalogue.names(text, quantity=5, product_ids=(0,)) == []


@BOTH
@pytest.mark.parametrize("sort", [None, "distance"])
def test_the_shop_offers_the_way_of_fulfilment(catalogue: Catalogue, text: str | None, sort: str | None) -> None:
    shops = (
        ("near", JAKARTA, {"delivery_radius_km": 10.0, "pickup_enabled": False}),
        ("far", BANDUNG, {"delivery_radius_km": 10.0}),
        ("wide", BANDUNG, {"delivery_radius_km": 200.0, "pickup_enabled": False}),
        ("open", SURABAYA, {"pickup_enabled": False}),
        ("none", JAKARTA, {"courier_enabled": False}),
    )
    for name, place, terms in shops:
        catalogue.put(f"Teko {name}", shop=catalogue.shop(name, place, **terms))
    everywhere = sorted(catalogue.names(text, fulfilment="delivery"))
    assert everywhere == ["Teko far", "Teko near", "Teko open", "Teko wide"]
    here = {"origin": Point(*JAKARTA), "sort": sort}
    assert sorted(catalogue.names(text, fulfilment="delivery", **here)) == ["Teko near", "Teko open", "Teko wide"]
    assert sorted(catalogue.names(text, fulfilment="pickup", **here)) == ["Teko far", "Teko none"]
    assert catalogue.names(text, fulfilment="delivery", radius_km=50.0, **here) == ["Teko near"]


@BOTH
def test_a_facet_ignores_the_filters_of_its_name_but_not_the_exclusions(catalogue: Catalogue, text: str | None) -> None:
    for city, brand in (("Bandung", "Asus"), ("Cimahi", "Lenovo"), ("Medan", "HP"), ("Bandung", "HP")):
        catalogue.put("Teko", shop=catalogue.shop(city), brand=brand)
    brands = values_of(catalogue, "brand", text=text, brands=("asus",), exclude_brands=("hp",))
    assert brands == {"asus": 1, "lenovo": 1}
    cities = values_of(catalogue, "city", text=text, city="medan", provinces=("jabar",), exclude_cities=("cimahi",))
    assert cities == {"bandung": 2}
    assert values_of(catalogue, "city", text=text, brands=("hp", "asus")) == {"bandung": 2, "medan": 1}
    assert values_of(catalogue, "brand", text=text, cities=("bandung", "medan")) == {"hp": 2, "asus": 1}


def test_a_cursor_belongs_to_all_filters(catalogue: Catalogue) -> None:
    catalogue.put_all([{"name": "Teko", "brand": "Asus"}] * 3)
    filters = {"brands": ("asus", "hp"), "exclude_terms": ("merah",), "cities": ("jakarta",), "quantity": 2}
    seen, cursor = list[int](), None
    with catalogue.market.reading() as session:
        for _ in range(3):
            query = ProductQuery("teko", **filters)  # type: ignore[arg-type]
            page = catalogue.search.find(session, query, PageRequest(limit=1, cursor=cursor))
            seen += [hit.product.id for hit in page.hits]
            cursor = page.next_cursor
    assert len(set(seen)) == 3 and cursor is None


def test_of_too_many_cities_to_name_parts_are_compared(catalogue: Catalogue) -> None:
    catalogue.put_all([{"name": city, "shop": catalogue.shop(city)} for city in ("Ruko_1", "Ruko 2", "Blok 3")])
    for cities, names in ((("ruko", "blok"), ["Blok 3", "Ruko 2", "Ruko_1"]), (("_", "3"), ["Blok 3", "Ruko_1"])):
        query = ProductQuery(cities=cities)
        candidates = candidate_query(catalogue.search.index, query, FilterKeys(), None, None)
        with catalogue.market.reading() as session:
            rows = run(session, candidates.select("p.product_id"), candidates.values)
            found = catalogue.search.lookup(session, [product_id for [product_id] in rows])
        assert sorted(hit.product.name for hit in found) == names


def test_a_place_in_the_text_is_a_filter_unless_one_is_given(catalogue: Catalogue) -> None:
    for city in ("Medan", "Cimahi"):
        catalogue.put(f"Teko {city}", shop=catalogue.shop(city))
    assert catalogue.names("teko di Medan") == ["Teko Medan"]
    assert catalogue.names("teko di Medan", exclude_cities=("medan",)) == []
    assert catalogue.names("teko di Medan", exclude_cities=("cimahi",)) == ["Teko Medan"]
    for given in ({"cities": ("cimahi",)}, {"provinces": ("jabar",)}, {"city": "cimahi"}):
        assert set(catalogue.names("teko di Medan", **given)) <= {"Teko Cimahi"}
