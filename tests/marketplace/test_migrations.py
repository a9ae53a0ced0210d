"""Tables are made by migration, and a migration can be taken back."""

import sys
from contextlib import ExitStack
from subprocess import PIPE, Popen

import pytest
from sqlalchemy import create_engine, func, inspect, select, text

from tests.marketplace.conftest import SECRET
from tis.database.database import Database
from tis.database.errors import DatabaseUnavailable
from tis.marketplace.market import MIGRATIONS, Market, MarketRules, migrate
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


# What no model can say, by database.
_ONLY_MIGRATED = {
    "sqlite": set(),
    "postgresql": {  # compared byte by byte
        ("columns", "lexicon", "term"),
        ("columns", "product_attributes", "name"),
        ("columns", "product_attributes", "text_key"),
        ("columns", "supplier_words", "word"),
    },
    "mysql": {  # longer texts, and a unique index without a condition
        ("columns", "conversation_messages", "content"),
        ("columns", "products", "description"),
        ("columns", "products", "live_sku"),
        ("indexes", "products", "uq_products_supplier_id_sku"),
        ("unique_constraints", "products", "uq_products_supplier_id_sku"),
    },
}


@pytest.mark.filterwarnings("ignore:Computed column")  # PostgreSQL 15 stores it
def test_migrated_tables_are_those_of_the_models(database_url: str, strict_database_url: str) -> None:
    """Both are made and read back: columns with types, nulls and defaults, keys, indexes, constraints."""
    migrated, made = Database(database_url), Database(strict_database_url)
    for database in (migrated, made):
        migrate(database)
    made.migrate(MIGRATIONS, "base")  # which leaves MariaDB's collation
    with made.writing() as session:
        Table.metadata.create_all(session.connection())
    ours, theirs = _described(migrated), _described(made)
    assert len(ours) > 350
    differences = {name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name)}
    assert differences == _ONLY_MIGRATED[migrated.dialect]
    migrated.close()
    made.close()


def _described(database: Database) -> dict[tuple[str, str, str], object]:
    found: dict[tuple[str, str, str], object] = {}
    kinds = ("columns", "indexes", "unique_constraints", "foreign_keys", "check_constraints")
    with database.reading() as session:
        inspector = inspect(session.connection())
        for table in Table.metadata.tables:
            found["pk_constraint", table, ""] = inspector.get_pk_constraint(table)
            for kind in kinds:
                for one in getattr(inspector, f"get_{kind}")(table):
                    found[kind, table, one["name"]] = {name: _plain(value) for name, value in one.items()}
    return found


def _plain(value: object) -> object:
    return {name: str(one) for name, one in value.items()} if isinstance(value, dict) else str(value)


_START = """
import sys
from tests.marketplace.conftest import SECRET
from tis.database.database import Database
from tis.database.errors import DatabaseUnavailable
from tis.marketplace.market import migrate
database = Database(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
migrate(database)
"""


@pytest.mark.long
def test_two_servers_that_start_at_once_migrate_one_after_the_other(database_url: str) -> None:
    """Processes, as the threads of one take turns anyway."""
    database = Database(database_url)
    database.migrate(MIGRATIONS, "base")
    command = (sys.executable, "-c", _START, database_url)
    with ExitStack() as stack:
        servers = [stack.enter_context(Popen(command, stdin=PIPE, stdout=PIPE, text=True)) for _ in range(2)]
        for server in servers:
            assert server.stdout and server.stdout.readline() == "ready\n"
        for server in servers:
            assert server.stdin
            server.stdin.write("go\n")
            server.stdin.flush()
        assert [server.wait(60) for server in servers] == [0, 0]
    assert database.is_migrated(MIGRATIONS)
    with database.reading() as session:
        assert session.scalar(select(func.count()).select_from(Category)) == 29
    database.close()


def test_a_database_of_a_later_version_is_refused_with_a_reason(database_url: str) -> None:
    migrated = Database(database_url)
    migrate(migrated)
    with migrated.writing() as session:
        latest = session.execute(text("SELECT version_num FROM alembic_version")).scalar_one()
        session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with ExitStack() as stack:  # the first stays open: its connections must not keep the lock of migrations
        for _ in range(2):
            market = Market(Database(database_url), MarketRules(jwt_secret=SECRET))
            stack.callback(market.close)
            with pytest.raises(DatabaseUnavailable, match="Another version of the server"), market.reading():
                pass
            assert market.state == "waiting" and "Another version of the server" in (market.failure or "")
    with migrated.writing() as session:
        session.execute(text("UPDATE alembic_version SET version_num = :latest"), {"latest": latest})
    assert migrated.is_migrated(MIGRATIONS)
    migrated.close()
