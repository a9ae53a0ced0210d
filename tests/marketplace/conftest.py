"""Fixtures of the marketplace, on SQLite files and on a real PostgreSQL."""

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from argon2 import PasswordHasher

from tests.databases import new_sqlite, place_of_servers
from tests.marketplace.mariadb import MariaDB, program_of_mariadb, running_mariadb
from tests.marketplace.market_server import MarketServer, market_server
from tests.marketplace.postgres import Postgres, required_postgres
from tests.marketplace.shop import Shop
from tests.serving import pictures_url, served, settings_with
from tis.database.database import Database
from tis.marketplace.auth import passwords
from tis.marketplace.market import Market, MarketRules

_names = (f"market_{number}" for number in itertools.count())
# PostgreSQL and MariaDB start slowly: `make check` leaves both out, `make test` MariaDB and much of PostgreSQL.
DATABASES = [
    "sqlite",
    pytest.param("postgresql", marks=pytest.mark.slow),
    pytest.param("mariadb", marks=pytest.mark.long),
]


# What the stores promise: all that `make test-faults` runs on MariaDB. MARIADB=all, as in `make soak`, runs the rest.
# On PostgreSQL, `make test` runs it and where statements are others there; `make test-faults` runs the rest.
CORE_ON_MARIADB = {
    f"tests.marketplace.{name}"
    for name in (
        "test_migrations",
        "alerts.test_product_alerts",
        "auth.test_registration_keys",
        "branches.test_branch_distances",
        "branches.test_branch_races",
        "branches.test_branch_stock",
        "branches.test_branch_walk",
        "feeds.test_concurrent_writers",
        "feeds.test_feed",
        "auth.test_sessions",
        "orders.test_orders",
        "orders.test_last_item",
        "orders.test_order_walk",
        "payments.test_payments_by_provider",
        "notices.test_new_kinds",
        "notices.test_notice_mails",
        "notices.test_webhook_sender",
        "pictures.test_picture_removal",
        "pictures.test_pictures",
        "products.test_idempotency",
        "products.test_products",
        "promotions.test_promotions",
        "stock.test_concurrent_buyers",
        "stock.test_reservations",
        "suppliers.test_numbers",
        "taxonomy.test_shipped_words",
        "variants.test_group_races",
        "variants.test_groups",
    )
}
_OTHERS_ON_POSTGRESQL = ("tests.marketplace.search.", "tests.marketplace.test_")
# What these find does not depend on the database, or they read the plans of the other two.
NOT_ON_MARIADB = {
    f"tests.marketplace.{name}"
    for name in (
        "test_list_plans",
        "test_readme",
        "kit.test_random_bodies",
        "search.test_plans",
        "stock.test_reservation_plans",
    )
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = [item for item in items if not _is_left_out(item)]
    for item in items:
        if _repeats_on_postgresql(item):
            item.add_marker(pytest.mark.long)


def _repeats_on_postgresql(item: pytest.Item) -> bool:
    """The same has run on SQLite: `make test` leaves it to `make test-faults`."""
    module = item.getparent(pytest.Module)
    if module is None or "postgresql" not in item.name.partition("[")[2]:
        return False
    name = module.module.__name__
    return (
        name.startswith("tests.marketplace.")
        and not name.startswith(_OTHERS_ON_POSTGRESQL)
        and name not in CORE_ON_MARIADB
    )


def _is_left_out(item: pytest.Item) -> bool:
    module = item.getparent(pytest.Module)
    parameters = item.name.partition("[")[2]
    if module is None or not ("mariadb" in parameters or "postgresql" in parameters):
        return False
    if item.get_closest_marker("one_database"):
        return "SOAK" not in os.environ
    name = module.module.__name__
    is_core = name in CORE_ON_MARIADB or os.environ.get("MARIADB") == "all"
    return "mariadb" in parameters and (name in NOT_ON_MARIADB or not is_core)


@pytest.fixture(scope="session", autouse=True)
def strong_hasher() -> Iterator[PasswordHasher]:
    """What servers hash with. In the process of the tests a weak one takes its place: a strong hash costs 20 ms."""
    strong, weak = passwords._hasher(), PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_hasher", lambda: weak)
        yield strong


# With a hundred databases, a worker of autovacuum would start twice a second.
_OF_MANY_DATABASES = "-c autovacuum=off -c full_page_writes=off -c max_wal_size=128MB"


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with required_postgres(place_of_servers(), _OF_MANY_DATABASES) as running:
        yield running


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDB]:
    program = program_of_mariadb()
    if program is None:
        if os.environ.get("SERVICES") == "required" and os.environ.get("MARIADB") != "none":
            raise FileNotFoundError("MariaDB must be installed where SERVICES=required")
        pytest.skip("no MariaDB here: `apt-get install mariadb-server`")
    with running_mariadb(program) as running:
        yield running


@pytest.fixture(scope="module", params=DATABASES)
def database_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of a fresh market: migrated, or as it is made, which is fast on MariaDB."""
    return _new_database(request, request.param, tmp_path_factory)


def _new_database(request: pytest.FixtureRequest, kind: str, folders: pytest.TempPathFactory) -> str:
    if kind == "sqlite":
        return new_sqlite(folders.mktemp("market"))
    if kind == "mariadb":
        mariadb: MariaDB = request.getfixturevalue("mariadb")
        return mariadb.new_database(next(_names))
    postgres: Postgres = request.getfixturevalue("postgres")
    return postgres.new_market(next(_names))


@pytest.fixture(scope="module")
def strict_database_url(
    request: pytest.FixtureRequest, database_url: str, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """Another empty one, of the same kind."""
    kinds = {"sqlite": "sqlite", "mysql+pymysql": "mariadb", "postgresql": "postgresql"}
    return _new_database(request, kinds[database_url.partition(":")[0]], tmp_path_factory)


@pytest.fixture(scope="module")
def laptop(database_url: str, mail_folder: Path) -> Iterator[httpx2.Client]:
    """A server as of `make demo`: MARKETPLACE_AUTH=open."""
    settings = settings_with(
        database_url=database_url, jwt_secret_key=SECRET, marketplace_auth="open", mail_folder=str(mail_folder)
    )
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=30) as client:
        yield client


@pytest.fixture(scope="module")
def mail_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `laptop` and `internet` write their mails."""
    return tmp_path_factory.mktemp("mails")


@pytest.fixture(scope="module")
def internet(strict_database_url: str, mail_folder: Path) -> Iterator[httpx2.Client]:
    """A server with MARKETPLACE_AUTH=required."""
    settings = settings_with(
        database_url=strict_database_url,
        jwt_secret_key=SECRET,
        marketplace_auth="required",
        mail_folder=str(mail_folder),
    )
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=30) as client:
        yield client


@pytest.fixture
def market(tmp_path: Path) -> Iterator[Market]:
    """Without HTTP, on a file of its own."""
    market = Market(Database(new_sqlite(tmp_path)), MarketRules(jwt_secret=SECRET))
    yield market
    market.close()


@pytest.fixture(scope="module")
def open_market(database_url: str) -> Iterator[Market]:
    """The database of `laptop`, without HTTP."""
    with _market_on(database_url) as market:
        yield market


@pytest.fixture(scope="module")
def required_market(strict_database_url: str) -> Iterator[Market]:
    """The database of `internet`, without HTTP."""
    with _market_on(strict_database_url) as market:
        yield market


@contextmanager
def _market_on(url: str) -> Iterator[Market]:
    market = Market(Database(url), MarketRules(jwt_secret=SECRET, pictures_url=pictures_url()))
    yield market
    market.close()


@pytest.fixture
def shop(open_market: Market) -> Shop:
    return Shop(open_market)


@pytest.fixture
def strict_shop(required_market: Market) -> Shop:
    return Shop(required_market)


@pytest.fixture(scope="module")
def server(database_url: str) -> Iterator[MarketServer]:
    """Believes the name of the caller."""
    with market_server(settings_with(database_url=database_url, jwt_secret_key=SECRET)) as server:
        yield server


@pytest.fixture(scope="module")
def anybody(server: MarketServer) -> Iterator[httpx2.Client]:
    """In the open mode, where no token is needed."""
    with server.as_("open") as client:
        yield client


@pytest.fixture(scope="module")
def stranger(server: MarketServer) -> Iterator[httpx2.Client]:
    """Without a token, where one is needed."""
    with server.as_(None) as client:
        yield client


@pytest.fixture(scope="module")
def admin(server: MarketServer) -> Iterator[httpx2.Client]:
    with server.as_(f"admin:{server.user('Ada Admin', role='admin')}") as client:
        yield client


SECRET = "a secret of the tests, long enough to be taken"
