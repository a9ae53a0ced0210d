"""Tables are made by migration, and a migration can be taken back."""

import ast
import hashlib
import itertools
import threading
from pathlib import Path

from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, func, insert, inspect, select, text

from tests.marketplace.conftest import SECRET
from tis.database.database import Database
from tis.marketplace.market import MIGRATIONS, Market, MarketRules
from tis.marketplace.search.query import PageRequest, ProductQuery
from tis.marketplace.tables import Product, Supplier, SupplierMember, Table, User


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

    assert tokens() == {"§tools", "¤335x1148"}
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
