"""Tables are made by migration, and a migration can be taken back."""

import threading

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, inspect

from tis.database.database import Database
from tis.marketplace.market import MIGRATIONS, migrate
from tis.marketplace.tables import Category, Table


def tables_of(url: str) -> set[str]:
    engine = create_engine(url)
    try:
        return set(inspect(engine).get_table_names())
    finally:
        engine.dispose()


def test_migrations_run_up_down_and_up_again(database_url: str) -> None:
    database = Database(database_url)
    migrate(database)
    first = tables_of(database_url)
    assert first >= {"suppliers", "products", "users"} and database.is_migrated(MIGRATIONS)

    database.migrate(MIGRATIONS, "base")
    assert not tables_of(database_url) - {"alembic_version"} and not database.is_migrated(MIGRATIONS)

    migrate(database)
    assert tables_of(database_url) == first
    database.close()


def test_migrated_tables_match_the_models(database_url: str) -> None:
    """With types, defaults and computed columns."""
    database = Database(database_url)
    migrate(database)
    options = {"include_object": _is_in_models, "compare_type": True, "compare_server_default": True}
    with database.reading() as session:
        context = MigrationContext.configure(session.connection(), opts=options)
        differences = [str(one) for one in compare_metadata(context, Table.metadata)]
    if database.dialect == "mysql":  # instead of an index with a condition, longer texts, 0 for false
        own = ("live_sku", "uq_products_supplier_id_sku", "MEDIUMTEXT", "'is_broader'")
        differences = [one for one in differences if not any(name in one for name in own)]
    assert differences == []
    database.close()


def _is_in_models(thing: object, name: str | None, kind: str, reflected: bool, other: object) -> bool:
    """Leaves out tables that only migrations create, such as the full-text index."""
    return not (kind == "table" and reflected and other is None)


def test_the_checks_of_the_models_are_those_of_the_tables(database_url: str) -> None:
    database = Database(database_url)
    migrate(database)
    engine = create_engine(database_url)
    inspector = inspect(engine)
    for table in Table.metadata.sorted_tables:
        wanted = {str(one.name) for one in table.constraints if str(one.name).startswith("ck_")}
        there = {str(one["name"]) for one in inspector.get_check_constraints(table.name)}
        assert wanted <= there, table.name
    engine.dispose()
    database.close()


def test_two_servers_that_start_at_once_migrate_one_after_the_other(database_url: str) -> None:
    databases = [Database(database_url) for _ in range(2)]
    databases[0].migrate(MIGRATIONS, "base")
    threads = [threading.Thread(target=migrate, args=(database,)) for database in databases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for database in databases:
        assert database.is_migrated(MIGRATIONS)
        with database.reading() as session:
            assert session.get(Category, "laptop")
        database.close()
