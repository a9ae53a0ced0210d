"""`python seed_data.py`: what it adds, and that it can run again."""

import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import SecretStr, TypeAdapter
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from tests.marketplace.conftest import SECRET
from tests.serving import REPOSITORY, bare_environment
from tis.cli.main import main
from tis.database.database import Database
from tis.errors import BadRequest, Unauthenticated
from tis.marketplace.auth.links import new_link, use_link
from tis.marketplace.auth.passwords import hashed, matches
from tis.marketplace.auth.service import authenticate
from tis.marketplace.auth.tokens import begin_chain, rotate
from tis.marketplace.kit.opening_hours import OpeningHours, is_within, local_time, minute_of_week, weekly_spans
from tis.marketplace.market import Market, MarketRules
from tis.marketplace.products.variant_keys import variant_key
from tis.marketplace.seed import commands as seed_commands
from tis.marketplace.tables import (
    PriceChange,
    Product,
    ProductGroup,
    Review,
    StockMovement,
    Supplier,
    SupplierHours,
    Table,
    User,
)

pytestmark = pytest.mark.long


class SeedCommand:
    """The command, and a look at what it did."""

    def __init__(self, url: str, captured: pytest.CaptureFixture[str]) -> None:
        self.url = url
        self._captured = captured
        self.market = Market(Database(url), MarketRules(jwt_secret=SECRET))

    def __call__(self, *arguments: str) -> str:
        main(["seed", "--database-url", self.url, *arguments])
        return self._captured.readouterr().out

    def count(self, table: type[Table]) -> int:
        with self.market.reading() as session:
            return session.scalar(select(func.count()).select_from(table)) or 0

    def counts(self) -> list[int]:
        return [self.count(table) for table in (Supplier, Product, User, Review)]


@pytest.fixture
def seed(database_url: str, capsys: pytest.CaptureFixture[str]) -> SeedCommand:
    seeding = SeedCommand(database_url, capsys)
    seeding("--reset", "--yes")
    return seeding


@pytest.fixture(autouse=True)
def _closed(request: pytest.FixtureRequest) -> None:
    if "seed" in request.fixturenames:
        request.addfinalizer(request.getfixturevalue("seed").market.close)


def test_it_brings_five_shops_their_products_and_three_users(seed: SeedCommand) -> None:
    assert seed.counts()[:3] == [5, 21, 3]
    with seed.market.reading() as session:
        assert _cities(session) == ["Jakarta", "Bandung", "Surabaya", "Jakarta Selatan", "Medan"]
        assert session.scalar(select(func.count()).where(User.ai_access_enabled)) == 2
        # The question of the documents, "laptop gaming di Jakarta, budget 12 juta", has an answer.
        asked = (Supplier.city == "Jakarta", Product.category == "laptop", Product.price <= 12_000_000)
        found = select(Product.name).join(Product.supplier).where(*asked, Product.on_hand > 0)
        assert session.scalars(found).all() == ["Laptop Gaming Rinjani G15"]


def test_a_shirt_comes_in_sizes_and_colours(seed: SeedCommand) -> None:
    with seed.market.reading() as session:
        group = session.scalars(select(ProductGroup)).one()
        variants = session.scalars(select(Product).where(Product.group_id == group.id)).all()
        assert (group.name, group.axes, len(variants)) == ("Kaos Pelita", ["warna", "ukuran"], 6)
        assert {one.variant_key for one in variants} == {variant_key(group.axes, one.attributes) for one in variants}


def test_the_shops_say_when_they_are_open(seed: SeedCommand) -> None:
    with seed.market.reading() as session:
        shops = session.scalars(select(Supplier)).all()
        for shop in shops:
            assert TypeAdapter(OpeningHours).validate_python(shop.opening_hours) == shop.opening_hours
            noon = local_time(datetime(2026, 11, 25, 5, 30, tzinfo=UTC), "WIB")  # a Wednesday
            is_open = is_within(weekly_spans(shop.opening_hours or {}), minute_of_week(noon))
            assert is_open == (shop.city != "Bandung")
        found_by = select(func.count(func.distinct(SupplierHours.supplier_id)))
        assert session.scalar(found_by) == len(shops) == 5


def _cities(session: Session) -> list[str]:
    return list(session.scalars(select(Supplier.city).order_by(Supplier.id)))


def test_a_second_run_changes_nothing_and_says_so(seed: SeedCommand) -> None:
    before = seed.counts()
    assert "nothing was changed" in seed()
    assert seed.counts() == before


def test_later_changes_survive_a_second_run(seed: SeedCommand) -> None:
    with seed.market.writing() as session:
        session.get_one(Product, 1).price = 1
    seed()
    with seed.market.reading() as session:
        assert session.get_one(Product, 1).price == 1


def test_two_concurrent_seedings_add_the_sample_once(seed: SeedCommand) -> None:
    seed_commands.reset(seed.market.database, sure=True)
    threads = [threading.Thread(target=seed_commands.add_sample, args=(seed.market.database,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seed.counts()[:3] == [5, 21, 3]


def test_ratings_and_stock_agree_with_reviews_and_movements(seed: SeedCommand) -> None:
    with seed.market.reading() as session:
        for product in session.scalars(select(Product)):
            mine = Review.product_id == product.id
            said = session.execute(select(func.count(), func.coalesce(func.sum(Review.rating), 0)).where(mine)).one()
            assert (product.rating_count, product.rating_sum) == tuple(said)
            moved = select(func.coalesce(func.sum(StockMovement.delta), 0)).where(
                StockMovement.product_id == product.id
            )
            assert session.scalar(moved) == product.on_hand


def test_products_of_others_stay_unchanged(seed: SeedCommand) -> None:
    with seed.market.writing() as session:
        theirs = {name: getattr(session.get_one(Product, 1), name) for name in ("supplier_id", "name", "price")}
        session.add(Product(**theirs, category="laptop", category_key="laptop", on_hand=3))
    seed("--many", "100")
    with seed.market.reading() as session:
        assert session.scalar(select(func.count()).where(PriceChange.product_id == 22)) == 0


def test_reset_removes_everything_and_brings_the_sample_back(seed: SeedCommand) -> None:
    assert "Added a large catalogue of 200 products" in seed("--many", "200")
    assert seed.count(Product) == 221
    assert "Removed everything" in seed("--reset", "--yes")
    assert seed.count(Product) == 21


def test_a_large_catalogue_is_added_once(seed: SeedCommand) -> None:
    seed("--many", "200")
    assert "200 products is there already" in seed("--many", "200")
    with pytest.raises(SystemExit, match="--reset removes everything"):
        seed("--many", "300")
    assert seed.count(Product) == 221


def test_an_admin_is_registered_with_a_password_that_works(seed: SeedCommand) -> None:
    said = seed("--admin", "Owner@example.com")
    password = said.partition("one-time password ")[2].split()[0]
    with seed.market.reading() as session:
        user = session.scalars(select(User).where(User.email_key == "owner@example.com")).one()
        assert user.role == "admin" and matches(SecretStr(password), user.password_hash)
    assert "already; nothing was changed" in seed("--admin", "owner@example.com")


def test_an_admin_alone_brings_no_sample(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first admin of a real marketplace does not want five invented shops in it."""
    seed = SeedCommand(f"sqlite:///{tmp_path}/market.db", capsys)
    assert seed("--admin", "owner@example.com").startswith("owner@example.com is an admin now")
    assert seed.counts() == [0, 0, 1, 0]
    seed.market.close()


def test_an_account_that_had_the_email_before_loses_password_and_sessions(seed: SeedCommand) -> None:
    with seed.market.writing() as session:
        stranger = session.get_one(User, 1)
        stranger.password_hash = hashed(SecretStr("a strangers password"))
        tokens = begin_chain(session, seed.market, "user:1")
        link = new_link(session, "user:1", "change", "stranger@example.com")
        since = stranger.created_at
    said = seed("--admin", "sari@example.com")
    assert f"existed since {since:%Y-%m-%d %H:%M} UTC" in said
    password = said.partition("one-time password ")[2].split()[0]
    with seed.market.reading() as session:
        user = session.get_one(User, 1)
        assert user.role == "admin" and matches(SecretStr(password), user.password_hash)
        with pytest.raises(Unauthenticated):
            authenticate(session, seed.market.signer, tokens.access_token, is_open=False, request_id="-")
    with seed.market.writing() as session:
        assert rotate(session, seed.market, tokens.refresh_token) is None
        with pytest.raises(BadRequest):
            use_link(session, str(link), "change")


def test_an_existing_admin_keeps_the_password(seed: SeedCommand) -> None:
    with seed.market.writing() as session:
        admin = session.get_one(User, 1)
        admin.password_hash, admin.role = "theirs", "admin"
    assert "already; nothing was changed" in seed("--admin", "sari@example.com")
    with seed.market.reading() as session:
        assert session.get_one(User, 1).password_hash == "theirs"


def test_migrate_adds_no_products(seed: SeedCommand) -> None:
    assert seed("--migrate") == "The tables are up to date already.\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--database-url", "nonsense"],
            "Cannot seed: DATABASE_URL cannot be used: its URL is not valid for SQLAlchemy",
        ),
        (["--database-url", "sqlite:////nowhere/at/all.db"], "Cannot seed: The database does not answer"),
        (["--database-url", "postgresql://a:hidden@localhost:1/shop", "--reset"], "Cannot seed: --reset would empty"),
    ],
)
def test_an_error_is_one_line(arguments: list[str], said: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["seed", *arguments])
    assert str(ended.value.code).startswith(said)
    assert "hidden" not in str(ended.value.code) and "\n" not in str(ended.value.code)


@pytest.mark.slow
def test_it_never_prompts_and_exits_with_0(seed: SeedCommand) -> None:
    ended = subprocess.run(
        [sys.executable, "seed_data.py"],
        cwd=REPOSITORY,
        env={**bare_environment(), "DATABASE_URL": seed.url, "JWT_SECRET_KEY": SECRET},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    warning = "mysql has no full-text index here: every search reads all products\n" if "mysql" in seed.url else ""
    assert (ended.returncode, ended.stderr) == (0, warning)
