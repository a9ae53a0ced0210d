"""An order that a text asks for decides among what matches equally well; pages and large tiers keep the list."""

from typing import get_args

import pytest

from tests.marketplace.search.conftest import Catalogue
from tests.marketplace.search.test_keyset_paging import pages
from tests.marketplace.search.test_ranking import HERE, hits, many, sizes
from tis.marketplace.kit.geo import Point
from tis.marketplace.search.product_rows import ProductRow
from tis.marketplace.search.query import ProductQuery, SearchHit, Sort

__all__ = ["many"]  # a fixture


def tier_of(product: ProductRow) -> int:
    return 0 if product.name == "Teko" else 1


def place(hit: SearchHit, order: Sort) -> tuple[float, int]:
    number = hit.product.id
    match order:
        case "price_asc":
            return hit.product.price, number
        case "price_desc":
            return -hit.product.price, -number
        case "newest":
            return -hit.product.created_at.timestamp(), -number
        case _:
            assert hit.distance_km is not None
            return hit.distance_km, number


@pytest.mark.parametrize("order", ["price_asc", "price_desc", "newest", "distance"])
@pytest.mark.parametrize("origin", [None, HERE], ids=["nowhere", "here"])
def test_a_better_match_is_first_and_then_the_order(many: Catalogue, order: Sort, origin: Point | None) -> None:
    if order == "distance" and origin is None:
        pytest.skip("nothing is near without a place")
    query = ProductQuery("teko", origin=origin, tie_order=order)
    for _ in sizes(many):
        found = hits(many, query)
        expected = sorted(found, key=lambda hit: (tier_of(hit.product), *place(hit, order)))
        assert [hit.product.id for hit in found] == [hit.product.id for hit in expected] and len(found) > 40
        assert list(pages(many, query)) == [hit.product.id for hit in found]


def test_nearness_without_a_place_changes_nothing(many: Catalogue) -> None:
    plain, near = (hits(many, ProductQuery("teko", tie_order=order)) for order in (None, "distance"))
    assert [hit.product.id for hit in plain] == [hit.product.id for hit in near]


def test_the_orders_are_those_of_the_api() -> None:
    assert {"price_asc", "price_desc", "newest", "distance"} < set(get_args(Sort))
