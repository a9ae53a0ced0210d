"""Tables are made by migration, and a migration can be taken back."""

import threading

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, func, insert, inspect, select

from tis.database.database import Database
from tis.marketplace.market import MIGRATIONS
from tis.marketplace.tables import Supplier, SupplierMember, Table, User


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
    if database.dialect == "mysql":
        pytest.skip("Alembic reads its types back under other names")
    with database.reading() as session:
        context = MigrationContext.configure(session.connection(), opts={"include_object": _is_in_models})
        assert compare_metadata(context, Table.metadata) == []
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
