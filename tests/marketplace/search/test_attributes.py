"""Attributes as filters and facets, with every full-text backend."""

from typing import Any

import pytest
from sqlalchemy import delete, select

from tests.marketplace.search.conftest import JAKARTA, Catalogue
from tis.marketplace.columns import now
from tis.marketplace.kit.geo import Point
from tis.marketplace.products.attribute_parameters import read_filters
from tis.marketplace.search.query import AttributeFacet, FacetName, FacetValue, NumberRange, ProductQuery
from tis.marketplace.tables import Product, ProductAttribute

BOTH = pytest.mark.parametrize("text", ["teko", None])


def facets_of(catalogue: Catalogue, *parameters: tuple[str, str], **filters: Any) -> dict[str, AttributeFacet]:
    query = ProductQuery(attributes=read_filters(parameters), **filters)
    with catalogue.market.reading() as session:
        facets = catalogue.search.facets(session, query, ["attributes"]).facets["attributes"]
    return {one.name: one for one in facets if isinstance(one, AttributeFacet)}


def counts(facet: AttributeFacet) -> dict[str, int]:
    return {one.value: one.count for one in facet.values}


def names(catalogue: Catalogue, *parameters: tuple[str, str], text: str | None = None, **filters: Any) -> list[str]:
    return sorted(catalogue.names(text, attributes=read_filters(parameters), **filters))


@BOTH
@pytest.mark.parametrize("max_rare", [0, 100])
def test_filters_find_the_same_whether_few_or_many_products_pass(
    catalogue: Catalogue, text: str | None, max_rare: int
) -> None:
    catalogue.limit_search(max_products_of_rare_attributes=max_rare)
    for liters in (0.5, "1,5 liter", 2, "2 l", None, "besar"):
        catalogue.put(f"Teko {liters}", attributes={"isi_l": liters, "warna": "merah"})
    catalogue.put("Teko ungu", attributes={"warna": "ungu"}, on_hand=0)
    assert names(catalogue, ("attr.isi_l>", "1.5"), text=text) == ["Teko 1,5 liter", "Teko 2", "Teko 2 l"]
    assert names(catalogue, ("attr.isi_l", "2"), ("attr.isi_l", "besar"), text=text) == [
        "Teko 2",
        "Teko 2 l",
        "Teko besar",
    ]
    assert names(catalogue, ("attr.isi_l.ne", "2"), text=text) == [
        "Teko 0.5",
        "Teko 1,5 liter",
        "Teko None",
        "Teko besar",
    ]
    assert names(catalogue, ("attr.isi_l.lt", "1"), ("attr.warna", "MERAH"), text=text) == ["Teko 0.5"]
    assert names(catalogue, ("attr.warna", "ungu"), text=text) == []
    assert names(catalogue, ("attr.warna", "ungu"), text=text, available_only=False) == ["Teko ungu"]
    assert catalogue.find(text, attributes=read_filters([("attr.isi_l.gt", "0")]), limit=2).total == 4


@pytest.mark.parametrize("sort", ["price_asc", "newest", "rating", "distance", "relevance"])
def test_every_order_filters_by_attributes(catalogue: Catalogue, sort: str) -> None:
    for number in range(3):
        catalogue.put(f"Teko {number}", attributes={"isi_l": number})
    found = names(catalogue, ("attr.isi_l>", "1"), text="teko", sort=sort, origin=Point(*JAKARTA), radius_km=9.0)
    assert found == ["Teko 1", "Teko 2"]


def test_the_rows_of_attributes_are_those_of_the_products(catalogue: Catalogue) -> None:
    def rows() -> dict[int, dict[str, str]]:
        with catalogue.market.reading() as session:
            found: dict[int, dict[str, str]] = {}
            for row in session.scalars(select(ProductAttribute)):
                found.setdefault(row.product_id, {})[row.name] = row.text_key
            return found

    one, other = (catalogue.put(f"Teko {color}", attributes={"Warna": color, "isi_l": 2}) for color in ("a", "b"))
    catalogue.change(one, attributes={"warna": "c", "warna ": "d", "tutup": True, "x": None, "★": 1})
    assert rows() == {one: {"warna": "c", "tutup": "true"}, other: {"warna": "b", "isi_l": "2"}}
    catalogue.change(one, name="Teko lain")
    catalogue.change(other, deleted_at=now())
    assert rows() == {one: {"warna": "c", "tutup": "true"}}
    catalogue.change(other, deleted_at=None)
    catalogue.change(one, attributes={})
    assert rows() == {other: {"warna": "b", "isi_l": "2"}}
    with catalogue.market.writing() as session:
        session.execute(delete(Product))
    assert rows() == {}


@BOTH
def test_facets_count_texts_by_frequency_and_numbers_by_size(catalogue: Catalogue, text: str | None) -> None:
    for ram, color in ((16, "Hitam"), ("8 GB", "hitam"), (16.0, "Putih"), (None, "Hitam"), (4, None)):
        catalogue.put("Teko", attributes={"ram_gb": ram, "color": color})
    catalogue.put("Teko", attributes={"ram_gb": 64}, on_hand=0)
    facets = facets_of(catalogue, text=text)
    assert list(facets) == ["color", "ram_gb"]
    assert facets["ram_gb"] == AttributeFacet(
        "ram_gb",
        "RAM (GB)",
        4,
        [FacetValue("4", "4", 1), FacetValue("8", "8", 1), FacetValue("16", "16", 2)],
        least=4,
        most=16,
    )
    assert counts(facets["color"]) == {"hitam": 3, "putih": 1}
    assert {one.label for one in facets["color"].values} <= {"Hitam", "hitam", "Putih"}
    for value, count in counts(facets["ram_gb"]).items():
        assert len(names(catalogue, ("attr.ram_gb", value), text=text)) == count


@BOTH
def test_an_attribute_facet_ignores_the_filters_on_its_own_name(catalogue: Catalogue, text: str | None) -> None:
    for ram, color in ((8, "hitam"), (16, "hitam"), (16, "putih"), (32, "putih")):
        catalogue.put("Teko", attributes={"ram_gb": ram, "color": color}, category=color)
    facets = facets_of(catalogue, ("attr.ram_gb>", "16"), ("attr.color", "putih"), text=text)
    assert counts(facets["ram_gb"]) == {"16": 1, "32": 1}  # of the white ones
    assert counts(facets["color"]) == {"hitam": 1, "putih": 2}  # of those with 16 and more
    assert counts(facets_of(catalogue, text=text, category="putih")["ram_gb"]) == {"16": 1, "32": 1}
    query = ProductQuery(text=text, attributes=read_filters([("attr.ram_gb>", "16")]))
    others: list[FacetName] = ["category", "attributes", "price"]
    with catalogue.market.reading() as session:
        found = catalogue.search.facets(session, query, others).facets
    assert list(found) == others
    assert {one.value: one.count for one in found["category"] if isinstance(one, FacetValue)} == {
        "hitam": 1,
        "putih": 2,
    }


def test_many_numbers_are_counted_in_ranges_that_the_filters_take(catalogue: Catalogue) -> None:
    weights = [number / 4 for number in range(30)] * 2 + ["berat"]
    catalogue.put_all({"name": "Teko", "attributes": {"weight_kg": weight}} for weight in weights)
    facet = facets_of(catalogue, text="teko")["weight_kg"]
    assert (facet.values, facet.least, facet.most, facet.count) == ([], 0, 7.25, 61)
    assert facet.ranges is not None and facet.ranges[0] == NumberRange(0, 1.25, 12)
    assert [one.count for one in facet.ranges] == [12] * 5
    for one in facet.ranges:
        own = [("attr.weight_kg.gte", str(one.least)), ("attr.weight_kg.lte", str(one.most))]
        assert catalogue.find("teko", attributes=read_filters(own)).total == one.count


def test_facets_are_bounded(catalogue: Catalogue) -> None:
    catalogue.put_all(
        {"name": "Teko", "attributes": {f"a{name}": f"nilai {number}" for name in range(1 + number // 2)}}
        for number in range(25)
    )
    facets = facets_of(catalogue, text="teko")
    assert list(facets) == [f"a{name}" for name in range(10)]
    assert len(facets["a0"].values) == 20 and facets["a0"].count == 25
    assert list(facets_of(catalogue, ("attr.a12.ne", "x"), text="teko"))[0] == "a12"
    assert len(facets_of(catalogue, ("attr.a12.ne", "x"), text="teko")) == 10
    catalogue.limit_search(max_faceted_with_attributes=5)
    with catalogue.market.reading() as session:
        cut = catalogue.search.facets(session, ProductQuery("teko"), ["attributes", "price"])
    assert not cut.are_exact


def test_without_matches_there_are_no_attributes(catalogue: Catalogue) -> None:
    catalogue.put("Teko", attributes={"isi_l": 2})
    assert facets_of(catalogue, text="!!!") == {} == facets_of(catalogue, category="none")
