"""A supplier that moves, closes or opens: one statement per table, and nobody else waits."""

import threading
from typing import Any

import pytest
from sqlalchemy import update

from tests.marketplace.search.conftest import BANDUNG, JAKARTA, Catalogue, lock_supplier
from tests.marketplace.search.test_index import assert_index_agrees
from tis.marketplace.columns import now
from tis.marketplace.kit.geo import Point
from tis.marketplace.market import Market
from tis.marketplace.search.query import ProductQuery
from tis.marketplace.tables import Product, ProductFacts, Supplier


@pytest.mark.parametrize(
    ("values", "written"),
    [
        ({"business_name": "Toko Baru"}, {"suppliers", "product_words"}),
        ({"name": "Wati"}, {"suppliers"}),
        ({"latitude": -6.21}, {"suppliers", "product_search"}),
        (
            {"latitude": -6.9, "longitude": 107.6, "city_key": "bandung"},
            {"suppliers", "product_search", "product_words"},
        ),
        ({"status": "suspended"}, {"suppliers", "product_search"}),
        ({"deleted_at": now()}, {"suppliers", "product_search"}),
    ],
    ids=lambda value: ",".join(sorted(value)),
)
def test_a_change_of_a_shop_is_one_statement_per_table(
    market: Market, values: dict[str, Any], written: set[str]
) -> None:
    catalogue = Catalogue(market)
    shop = catalogue.shop()
    for number in range(5):
        catalogue.put(f"Teko {number}", shop=shop)
    statements: list[str] = []
    with market.writing() as session:
        connection: Any = session.connection().connection.dbapi_connection
        connection.set_trace_callback(statements.append)
        supplier = lock_supplier(session, shop)
        for name, value in values.items():
            setattr(supplier, name, value)
        market.search.refresh_supplier(session, shop)
        connection.set_trace_callback(None)
    # For every row that a trigger changes, SQLite names the statement again.
    statements = list(dict.fromkeys(statements))
    writes = [one.split()[1] for one in statements if one.startswith(("UPDATE", "INSERT INTO product_w", "DELETE"))]
    assert sorted(writes) == sorted(written)
    assert not any(" products " in one for one in statements), "no product is read"
    assert_index_agrees(catalogue)


def test_the_public_place_follows_an_update_that_bypasses_the_orm(catalogue: Catalogue) -> None:
    shop = catalogue.shop(shows_place=False)
    catalogue.put("Teko", shop=shop)
    for values, place in (
        ({"latitude": -6.91754, "longitude": 107.61914}, (-6.92, 107.62)),
        ({"shows_place": True}, (-6.918, 107.619)),
    ):
        with catalogue.market.writing() as session:
            lock_supplier(session, shop)
            session.execute(update(Supplier).where(Supplier.id == shop).values(**values))
            catalogue.search.refresh_supplier(session, shop)
        with catalogue.market.reading() as session:
            supplier, facts = session.get_one(Supplier, shop), session.query(ProductFacts).one()
            assert (supplier.public_latitude, supplier.public_longitude) == place
            assert (facts.latitude, facts.longitude) == place
    origin = Point(*BANDUNG)
    assert (
        catalogue.names("teko", origin=origin, radius_km=2) == catalogue.names(origin=origin, radius_km=2) == ["Teko"]
    )
    assert catalogue.names("teko", origin=Point(*JAKARTA), radius_km=20) == []


def test_nobody_finds_products_of_a_closed_shop_even_sold_out_ones(catalogue: Catalogue) -> None:
    shop = catalogue.shop()
    catalogue.put("Teko", shop=shop)
    catalogue.put("Teko habis", shop=shop, on_hand=0)
    for changes, count in (({"status": "suspended"}, 0), ({"status": "active"}, 2), ({"deleted_at": now()}, 0)):
        catalogue.change_shop(shop, **changes)
        for text in ("teko", None):
            assert len(catalogue.names(text, available_only=False)) == count
        with catalogue.market.reading() as session:
            counted = catalogue.search.facets(session, ProductQuery(available_only=False), ["category"]).facets[
                "category"
            ]
        assert len(counted) == bool(count)
    assert_index_agrees(catalogue)


def test_stock_that_changes_while_a_shop_is_closed_is_found_when_it_opens(catalogue: Catalogue) -> None:
    shop = catalogue.shop()
    product = catalogue.put("Teko", shop=shop)
    catalogue.change_shop(shop, status="suspended")
    catalogue.change(product, on_hand=0, name="Cangkir")
    added = catalogue.put("Cangkir baru", shop=shop)
    catalogue.change_shop(shop, status="active")
    assert catalogue.names("cangkir") == ["Cangkir baru"] and added
    assert_index_agrees(catalogue)


def test_buyers_of_a_shop_do_not_wait_while_it_moves(catalogue: Catalogue) -> None:
    if catalogue.market.database.dialect == "sqlite":
        pytest.skip("SQLite has one writer")
    shop = catalogue.shop()
    product = catalogue.put("Teko", shop=shop)
    sold = threading.Event()

    def sell() -> None:
        with catalogue.market.writing() as session:
            session.execute(update(Product).where(Product.id == product).values(on_hand=Product.on_hand - 1))
        sold.set()

    with catalogue.market.writing() as session:
        lock_supplier(session, shop).latitude = -6.9
        catalogue.search.refresh_supplier(session, shop)
        threading.Thread(target=sell).start()
        assert sold.wait(10), "the sale is committed while the move is not"
