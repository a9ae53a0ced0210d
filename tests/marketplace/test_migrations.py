"""Tables are made by migration, and a migration can be taken back."""

import ast
import hashlib
import itertools
import threading
from pathlib import Path
from typing import Any

from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import MetaData, create_engine, delete, func, insert, inspect, select, text

from tests.marketplace.conftest import SECRET
from tis.database.database import Database
from tis.marketplace.market import MIGRATIONS, Market, MarketRules
from tis.marketplace.search.attribute_filter import AttributeFilter
from tis.marketplace.search.index_renewal import IndexRenewal
from tis.marketplace.search.query import PageRequest, ProductQuery
from tis.marketplace.search.supplier_words import index_new_suppliers
from tis.marketplace.tables import (
    Product,
    ProductFacts,
    Reservation,
    Review,
    Supplier,
    SupplierFacts,
    SupplierMember,
    SupplierWord,
    Table,
    User,
)


def tables_of(url: str) -> set[str]:
    engine = create_engine(url)
    try:
        return set(inspect(engine).get_table_names())
    finally:
        engine.dispose()


def test_migrations_run_up_down_and_up_again(database_url: str) -> None:
    database = Database(database_url)
    database.migrate(MIGRATIONS)
    first = tables_of(database_url)
    assert first >= {"suppliers", "products", "users"} and database.is_migrated(MIGRATIONS)

    database.migrate(MIGRATIONS, "base")
    assert not tables_of(database_url) - {"alembic_version"} and not database.is_migrated(MIGRATIONS)

    database.migrate(MIGRATIONS)
    assert tables_of(database_url) == first
    database.close()


def test_migrated_tables_match_the_models(database_url: str) -> None:
    database = Database(database_url)
    database.migrate(MIGRATIONS)
    with database.reading() as session:
        context = MigrationContext.configure(session.connection(), opts={"include_object": _is_in_models})
        differences = [str(one) for one in compare_metadata(context, Table.metadata)]
    if database.dialect == "mysql":  # what migration 0088 does instead of an index with a condition, and longer texts
        own = ("live_sku", "uq_products_supplier_id_sku", "MEDIUMTEXT")
        differences = [one for one in differences if not any(name in one for name in own)]
    assert differences == []
    database.close()


def test_existing_suppliers_get_a_public_place_and_keep_their_members(database_url: str) -> None:
    database = Database(database_url)
    database.migrate(MIGRATIONS, "base")
    database.migrate(MIGRATIONS, "0040")
    shop: dict[str, object] = {"name": "a", "business_name": "b", "city": "c", "city_key": "c"}
    shop |= {"latitude": -6.2345678, "longitude": 106.8765432}
    with database.writing() as session:
        for number, shown in enumerate((False, True), 1):
            email = f"{number}@example.com"
            values = shop | {"id": number, "shows_place": shown, "email": email, "email_key": email}
            session.execute(insert(Supplier).values(**values))
        session.execute(insert(User).values(id=1, name="a"))
        session.execute(insert(SupplierMember).values(supplier_id=1, user_id=1))
    database.migrate(MIGRATIONS)
    with database.reading() as session:
        places = select(Supplier.public_latitude, Supplier.public_longitude).order_by(Supplier.id)
        assert [tuple(place) for place in session.execute(places)] == [(-6.23, 106.88), (-6.235, 106.877)]
        assert session.scalar(select(func.count()).select_from(SupplierMember)) == 1
    database.migrate(MIGRATIONS, "base")
    database.migrate(MIGRATIONS)
    database.close()


def test_the_cell_of_existing_products_is_that_of_the_public_place(database_url: str) -> None:
    """The index is then as a rebuild would make it; the exact place may be in another cell of the grid."""
    market = Market(Database(database_url), MarketRules(jwt_secret=SECRET))
    with market.writing() as session:
        place = {"city": "c", "city_key": "c", "latitude": -6.2, "longitude": 106.999}
        supplier = Supplier(name="a", business_name="b", email="c@example.com", email_key="c@example.com", **place)
        session.add(supplier)
        session.flush()
        product = Product(
            supplier_id=supplier.id, name="Kompas", price=1, on_hand=1, category="tools", category_key="tools"
        )
        session.add(product)
        session.flush()
        market.search.refresh(session, [product.id])
    is_postgresql = market.database.dialect == "postgresql"

    def tokens() -> set[str]:
        column = "array_to_string(tsvector_to_array(words), ' ')" if is_postgresql else "tokens"
        with market.reading() as session:
            return {
                word for word in session.scalar(text(f"SELECT {column} FROM product_words")).split() if word[0] > "~"
            }

    assert tokens() == {"§tools", "§·kompas", "¤335x1148", "¶·b", "¶·c"}
    market.database.migrate(MIGRATIONS, f"-{steps_after('0050')}")
    with market.writing() as session:
        words = "to_tsvector('simple', 'kompas') || array_to_tsvector(ARRAY['§tools', '¤335x1147'])"
        old = f"words = {words}" if is_postgresql else "tokens = '§tools ¤335x1147'"
        session.execute(text(f"UPDATE product_words SET {old}"))
    market.database.migrate(MIGRATIONS)
    assert tokens() == {"§tools", "¤335x1148"}
    with market.reading() as session:
        assert len(market.search.find(session, ProductQuery(text="kompas"), PageRequest(10, 0, None)).hits) == 1
        assert session.scalar(text("SELECT words_digest FROM product_search")) == 0
    market.close()


def test_existing_products_are_found_by_their_attributes_soon_after_the_start(database_url: str) -> None:
    market = Market(Database(database_url), MarketRules(jwt_secret=SECRET))
    market.database.migrate(MIGRATIONS)
    with market.writing() as session:
        place = {"city": "c", "city_key": "c", "latitude": -6.2, "longitude": 106.9}
        shop = Supplier(name="a", business_name="b", email="d@example.com", email_key="d@example.com", **place)
        session.add(shop)
        session.flush()
        goods = {"supplier_id": shop.id, "price": 1, "on_hand": 1, "category": "fan", "category_key": "fan"}
        rows = [Product(name="Kipas", attributes=some, **goods) for some in ({"daun": 3}, {})]
        session.add_all(rows)
        session.flush()
        ids = [row.id for row in rows]
        market.search.refresh(session, ids)
    market.database.migrate(MIGRATIONS, f"-{steps_after('0095')}")
    market.database.migrate(MIGRATIONS)
    query = ProductQuery(attributes=(AttributeFilter("daun", "gte", (3.0,)),))

    def found() -> list[int]:
        with market.reading() as session:
            return [hit.product.id for hit in market.search.find(session, query, PageRequest(10)).hits]

    assert found() == []
    with market.reading() as session:
        outdated = session.scalars(select(ProductFacts.product_id).where(ProductFacts.words_digest == 0)).all()
        assert ids[0] in outdated
    IndexRenewal(market.reading, market.writing, market.search).renew_some()
    assert found() == ids[:1]
    market.close()


def test_existing_suppliers_are_found_by_their_words_and_rating(database_url: str) -> None:
    """As if they were written by today's code."""
    database = Database(database_url)
    database.migrate(MIGRATIONS, "base")
    database.migrate(MIGRATIONS, "0090")
    with database.writing() as session:
        for number, name in enumerate(("Toko Toko Jaya", "Kios Été"), 1):
            email = f"{number}@example.com"
            place = {"city": "Jakarta", "city_key": "jakarta", "province": "Banten" if number == 2 else None}
            values = {"id": number, "name": "a", "business_name": name, "email": email, "email_key": email, **place}
            session.execute(insert(Supplier).values(latitude=-6.2, longitude=106.8, **values))
        goods = {"name": "Kipas", "price": 1, "category": "fan", "category_key": "fan"}
        rated = {"rating_sum": 9, "rating_count": 2, "verified_sum": 5, "verified_count": 1}
        for number in (1, 2):
            session.execute(insert(Product).values(id=number, supplier_id=1, **goods, **rated))
        session.execute(insert(Product).values(id=3, supplier_id=2, **goods))
    database.migrate(MIGRATIONS)

    def found_by() -> list[list[tuple[Any, ...]]]:
        with database.reading() as session:
            tables = (select(SupplierWord.word, SupplierWord.supplier_id, SupplierWord.scope), select(SupplierFacts))
            words, facts = (session.execute(table).all() for table in tables)
        columns = [(one.supplier_id, one.name_key, one.stars, one.weight) for [one] in facts]
        return [sorted(map(tuple, words)), sorted(columns)]

    migrated = found_by()
    assert ("toko", 1, 0) in migrated[0] and ("banten", 2, 1) in migrated[0]
    assert migrated[1] == [(1, "jaya toko", 38, 8), (2, "ete kios", 0, 0)]
    with database.writing() as session:
        session.execute(delete(SupplierFacts))
        index_new_suppliers(session)
    assert found_by() == migrated
    database.migrate(MIGRATIONS, "base")
    database.migrate(MIGRATIONS)
    database.close()


def steps_after(revision: str) -> int:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    return len(list(ScriptDirectory.from_config(config).iterate_revisions("head", revision)))


FIRST_WORDS = "b5ba341f4a1b671adc2c06408549a90a460a9e577dd34a3090b71618e8dfbf7a"


def test_the_first_categories_and_synonyms_are_frozen(tmp_path: Path) -> None:
    """Databases that exist were filled with them: what changes later is a migration of its own."""
    database = Database(f"sqlite:///{tmp_path}/market.db")
    database.migrate(MIGRATIONS, "0020")
    with database.reading() as session:
        tables = ("SELECT slug, parent, name_id, name_en FROM categories", "SELECT term, means, category FROM synonyms")
        rows = [sorted(map(str, session.execute(text(table)))) for table in tables]
    database.close()
    assert hashlib.sha256("\n".join(itertools.chain(*rows)).encode()).hexdigest() == FIRST_WORDS


def test_no_migration_reads_a_file() -> None:
    for path in (MIGRATIONS / "versions").glob("*.py"):
        used = {node.id for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Name)}
        assert not used & {"open", "Path", "__file__", "files"}, path.name


def _is_in_models(thing: object, name: str | None, kind: str, reflected: bool, other: object) -> bool:
    """Leaves out tables that only migrations create, such as the full-text index."""
    return not (kind == "table" and reflected and other is None)


def test_two_servers_that_start_at_once_migrate_one_after_the_other(database_url: str) -> None:
    databases = [Database(database_url) for _ in range(2)]
    databases[0].migrate(MIGRATIONS, "base")
    threads = [threading.Thread(target=database.migrate, args=(MIGRATIONS,)) for database in databases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(database.is_migrated(MIGRATIONS) for database in databases)
    for database in databases:
        database.close()


def test_existing_reservations_get_the_price_of_their_day_and_buyers_are_marked(database_url: str) -> None:
    database = Database(database_url)
    database.migrate(MIGRATIONS, "base")
    database.migrate(MIGRATIONS, "0050")
    with database.writing() as session:
        tables = MetaData()
        tables.reflect(session.connection(), only=list(_A_SALE))
        for name, rows in _A_SALE.items():
            if database.dialect == "mysql":  # read back, its JSON is text
                rows = [{column: "{}" if value == {} else value for column, value in row.items()} for row in rows]
            session.execute(insert(tables.tables[name]), rows)
    database.migrate(MIGRATIONS)
    with database.reading() as session:
        prices = select(Reservation.id, Reservation.supplier_id, Reservation.unit_price).order_by(Reservation.id)
        assert [tuple(row) for row in session.execute(prices)] == [("early", 1, 1000), ("late", 1, 2000)]
        marks = select(Review.user_id, Review.verified_purchase).order_by(Review.user_id)
        assert [tuple(row) for row in session.execute(marks)] == [(1, True), (2, False)]
        product, facts = session.get_one(Product, 1), session.get_one(ProductFacts, 1)
        assert (product.rating_sum, product.rating_count, product.verified_sum, product.verified_count) == (6, 2, 5, 1)
        assert product.rating_rank == facts.rating_rank == (5 * 3.5 + 1 + 3 * 5) / 9 and facts.rating == 4
        assert session.scalar(select(func.count()).select_from(SupplierMember)) == 0
    database.migrate(MIGRATIONS, "base")
    database.migrate(MIGRATIONS)
    database.close()


def _day(number: int) -> str:
    return f"2026-11-{number:02}T00:00:00.000000Z"


_CHANGED = {"version": 1, "updated_at": _day(1)}
_USER = {"name": "a", "role": "user", "ai_access_enabled": False, "created_at": _day(1), **_CHANGED}
_PLACE: dict[str, Any] = {"city": "c", "city_key": "c", "latitude": 0, "longitude": 0}
_SHOP = {"name": "a", "business_name": "b", "status": "active", "shows_place": False, "pickup_enabled": True}
_SHOP |= {"courier_enabled": True, "registration_date": _day(1), "email": "e", "email_key": "e", **_PLACE, **_CHANGED}
_PRODUCT = {"name": "a", "price": 2000, "on_hand": 9, "reserved": 0, "category": "c", "category_key": "c"}
_PRODUCT |= {"condition": "new", "attributes": {}, "is_available": True, "rating_sum": 6, "rating_count": 2}
_PRODUCT |= {"rating_rank": 3.5, "created_at": _day(1), "supplier_id": 1, **_CHANGED}
_FACTS: dict[str, Any] = {
    "product_id": 1,
    "supplier_id": 1,
    "sellable": 1,
    "price": 2000,
    "rating": 3,
    "rating_rank": 3.5,
}
_FACTS |= {"created_us": 0, "condition": "new", "category_key": "c", "city_key": "c", "words_digest": 0}
_REVIEW = {"product_id": 1, "status": "published", "created_at": _day(9), "updated_at": _day(9)}
_HELD = {"product_id": 1, "quantity": 1, "expires_at": _day(9)}
# As version 0050 had it: the price rose between two reservations, and both buyers wrote a review.
_A_SALE: dict[str, list[dict[str, Any]]] = {
    "users": [{"id": 1, **_USER}, {"id": 2, **_USER}],
    "suppliers": [{"id": 1, "public_latitude": 0, "public_longitude": 0, **_SHOP}],
    "products": [{"id": 1, **_PRODUCT}],
    "product_search": [{**_FACTS, "latitude": 0, "longitude": 0}],
    "price_history": [
        {"product_id": 1, "price": 1000, "valid_from": _day(2)},
        {"product_id": 1, "price": 2000, "valid_from": _day(4)},
    ],
    "stock_reservations": [
        {"id": "early", "actor": "user:1", "status": "committed", "created_at": _day(3), **_HELD},
        {"id": "late", "actor": "user:2", "status": "expired", "created_at": _day(5), **_HELD},
    ],
    "reviews": [{"user_id": 1, "rating": 5, **_REVIEW}, {"user_id": 2, "rating": 1, **_REVIEW}],
}
