"""Products by id, counts, and products with how well each fits."""

import pytest

from tests.marketplace.search.conftest import BANDUNG, JAKARTA, Catalogue
from tis.marketplace.columns import now
from tis.marketplace.kit.geo import Point
from tis.marketplace.search.query import Candidate, ProductQuery, price_fit

BOTH = pytest.mark.parametrize("text", ["teko", None])


def candidates(catalogue: Catalogue, query: ProductQuery, limit: int = 200) -> list[Candidate]:
    with catalogue.market.reading() as session:
        return catalogue.search.candidates(session, query, limit)


def test_products_are_looked_up_in_the_order_of_their_ids(catalogue: Catalogue) -> None:
    sold_out, there = catalogue.put("Teko A", on_hand=0), catalogue.put("Teko B")
    deleted = catalogue.put("Teko C")
    catalogue.change(deleted, deleted_at=now())
    closed_shop = catalogue.shop("Bandung")
    of_closed = catalogue.put("Teko D", shop=closed_shop)
    catalogue.change_shop(closed_shop, status="suspended")
    with catalogue.market.reading() as session:
        look_up = catalogue.search.lookup
        hits = look_up(session, [there, 2**63 - 1, of_closed, sold_out, deleted, there], Point(*JAKARTA))
        assert [hit.product.name for hit in hits] == ["Teko B", "Teko A"]
        assert [round(hit.distance_km or 0) for hit in hits] == [0, 0]
        assert look_up(session, []) == [] and look_up(session, [there])[0].distance_km is None
        with pytest.raises(ValueError, match="at most 100"):
            look_up(session, range(101))
    catalogue.change_shop(closed_shop, status="active")
    with catalogue.market.reading() as session:
        assert len(catalogue.search.lookup(session, [of_closed])) == 1


@BOTH
def test_a_count_is_exact_up_to_its_limit(catalogue: Catalogue, text: str | None) -> None:
    catalogue.put_all([{"name": "Teko", "brand": "HP"}] * 3 + [{"name": "Teko listrik"}])
    with catalogue.market.reading() as session:
        for limit, expected in ((4, (4, True)), (10, (4, True)), (3, (3, False))):
            found = catalogue.search.count(session, ProductQuery(text), limit)
            assert (found.count, found.is_exact) == expected
        assert catalogue.search.count(session, ProductQuery(text, brand="hp")).count == 3
        assert catalogue.search.count(session, ProductQuery("teko zzzz")).count == 0
        assert catalogue.search.count(session, ProductQuery("teko di bawah 50rb")).count == 0
        assert catalogue.search.count(session, ProductQuery("---")).count == 0


def test_candidates_have_the_order_of_the_search_and_their_features(catalogue: Catalogue) -> None:
    bandung = catalogue.shop("Bandung", BANDUNG)
    catalogue.put("Teko", price=80, rating_sum=10, rating_count=2, on_hand=9, reserved=4)
    catalogue.put("Lap", description="untuk teko", price=100, shop=bandung)
    catalogue.put("Teko mahal", price=101)
    query = ProductQuery("teko", max_price=100, origin=Point(*JAKARTA))
    first, second = candidates(catalogue, query)
    assert [first.product.name, second.product.name] == ["Teko", "Lap"]
    assert first.tier < second.tier and (first.price_fit, second.price_fit) == (1.0, 0.0)
    assert first.available_quantity == 5 and first.rating and 3 < first.rating < 5 and second.rating is None
    assert round(first.distance_km or 0) == 0 and round(second.distance_km or 0) == 116
    [only] = candidates(catalogue, query, limit=1)
    assert only == first
    by_price = candidates(catalogue, ProductQuery("teko", max_price=100, sort="price_desc"))
    assert [(one.product.name, one.tier) for one in by_price] == [("Lap", second.tier), ("Teko", first.tier)]
    assert candidates(catalogue, ProductQuery("---")) == []


def test_candidates_without_words_or_prices(catalogue: Catalogue) -> None:
    catalogue.put("Teko")
    [one] = candidates(catalogue, ProductQuery(category="goods"))
    assert (one.tier, one.price_fit, one.distance_km) == (0, None, None)
    assert candidates(catalogue, ProductQuery("teko", category="nothing", sort="price_asc")) == []


@pytest.mark.parametrize(
    ("price", "least", "most", "fit"),
    [
        (70, None, 100, 1.0),
        (80, None, 100, 1.0),
        (90, None, 100, 0.5),
        (100, None, 100, 0.0),
        (100, 100, None, 0.0),
        (110, 100, None, 0.5),
        (120, 100, None, 1.0),
        (95, 90, 100, 1.0),
        (100, 100, 100, 1.0),
        (5, 0, None, 1.0),
        (5, None, None, None),
    ],
)
def test_a_price_fits_where_the_limit_is_far(price: int, least: int | None, most: int | None, fit: float) -> None:
    assert price_fit(price, least, most) == (fit if fit is None else pytest.approx(fit))
