"""A file that is replaced, locked or on a full disk is a 503; an error in our SQL is a 500."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from tests.marketplace.conftest import SECRET
from tests.marketplace.database_failures import (
    PROBED_PATH,
    answers,
    market_on,
    require_unavailable,
    state,
    wait_until_true,
)
from tests.serving import REPOSITORY
from tis.database.database import Database
from tis.database.errors import DatabaseUnavailable
from tis.marketplace.market import Market, MarketRules, migrate

pytestmark = pytest.mark.long

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
needs_root = pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() != 0, reason="only root may mount a small disk")


def test_an_exhausted_connection_pool_is_unavailability(database_url: str) -> None:
    database = Database(database_url, wait_seconds=0.2)
    with ExitStack() as busy:
        for _ in range(48):
            busy.enter_context(database.reading()).execute(text("SELECT 1"))
        assert not answers(database)
    assert answers(database)
    database.close()


def test_an_error_in_our_sql_is_not_unavailability(database_url: str) -> None:
    database = Database(database_url)
    for wrong in ("SELECT * FROM nowhere", "SELECT nothing FROM alembic_version", "SELEKT 1"):
        with pytest.raises(DBAPIError), database.reading() as session:
            session.execute(text(wrong))
    assert database.is_available
    database.close()


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
def test_other_users_of_the_computer_cannot_read_a_new_database(market: Market, tmp_path: Path) -> None:
    """It has e-mails, phones and hashes of passwords."""
    with market.writing() as session:
        session.execute(text("DELETE FROM users"))
        modes = {path.name: path.stat().st_mode & 0o077 for path in tmp_path.glob("market.db*")}
    assert modes == {"market.db": 0, "market.db-wal": 0, "market.db-shm": 0}


def test_a_missing_table_is_a_500(tmp_path: Path) -> None:
    with market_on(f"sqlite:///{tmp_path}/market.db") as client:
        assert client.get(PROBED_PATH).status_code == 200
        with sqlite3.connect(tmp_path / "market.db") as operator:
            operator.execute("DROP TABLE stock_reservations")
        assert client.get(PROBED_PATH).status_code == 500
        operator.close()


def test_a_replaced_file_is_noticed_and_reopened(tmp_path: Path) -> None:
    file, aside = tmp_path / "market.db", tmp_path / "aside"
    with market_on(f"sqlite:///{file}") as client:
        assert client.get(PROBED_PATH).status_code == 200
        shutil.move(file, aside)
        file.mkdir()
        require_unavailable(client)
        file.rmdir()
        shutil.move(aside, file)
        assert client.get(PROBED_PATH).status_code == 200 and state(client) == "ready"


def test_a_vanished_file_is_a_503_and_not_an_empty_market(tmp_path: Path) -> None:
    file, aside = tmp_path / "market.db", tmp_path / "aside"
    with market_on(f"sqlite:///{file}") as client:
        assert client.get(PROBED_PATH).status_code == 200
        assert client.get("/health").json()["marketplaceError"] is None
        shutil.move(file, aside)
        require_unavailable(client)
        assert not file.exists()
        assert client.get("/health").json()["marketplaceError"] == (
            "The database file was moved, deleted or replaced: put the same file back, or restart the server."
        )
        shutil.copy(aside, file)
        require_unavailable(client)
        shutil.move(aside, file)
        assert client.get(PROBED_PATH).status_code == 200
        assert client.get("/health").json()["marketplaceError"] is None


def test_who_began_before_the_file_vanished_does_not_say_that_it_is_back(tmp_path: Path) -> None:
    file, aside = tmp_path / "market.db", tmp_path / "aside"
    database = Database(f"sqlite:///{file}")
    assert answers(database)
    with database.reading() as session:
        session.execute(text("SELECT 1"))
        shutil.move(file, aside)
        assert not answers(database)
    assert not database.is_available
    shutil.move(aside, file)
    assert answers(database) and database.is_available
    database.close()


def test_a_restart_takes_the_file_that_is_there(tmp_path: Path) -> None:
    file = tmp_path / "market.db"
    with market_on(f"sqlite:///{file}") as client:
        assert client.get(PROBED_PATH).status_code == 200
        shutil.copy(file, tmp_path / "copy")
        shutil.move(tmp_path / "copy", file)
        require_unavailable(client)
    with market_on(f"sqlite:///{file}") as client:
        assert client.get(PROBED_PATH).status_code == 200


def test_a_start_without_a_file_warns_with_the_path(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "market.db"
    for expected in ([f"there was no database at {file}: created an empty one"], []):
        caplog.clear()
        market = Market(Database(f"sqlite:///{file}"), MarketRules(jwt_secret=SECRET))
        with caplog.at_level("WARNING", "tis.marketplace"), market.reading():
            pass
        market.close()
        assert [record.getMessage() for record in caplog.records if record.name == "tis.marketplace"] == expected


def test_a_start_that_may_not_migrate_warns_too_and_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    market = Market(Database(f"sqlite:///{tmp_path}/market.db"), MarketRules(jwt_secret=SECRET, auto_migrate=False))
    for _ in range(2):
        with pytest.raises(DatabaseUnavailable), market.reading():
            pass
    market.close()
    assert [one.getMessage().partition(" at ")[0] for one in caplog.records] == ["there was no database"]


CUT_SHORT = """
import os, subprocess, sys
from sqlalchemy import text
from tis.database.database import Database
from tis.database.errors import DatabaseUnavailable

file, share = sys.argv[1:]
database = Database(f"sqlite:///{file}")
with database.writing() as session:
    session.execute(text("CREATE TABLE lines (line TEXT)"))
    session.execute(text("INSERT INTO lines VALUES (:line)"), [{"line": "x" * 1000}] * 2000)
database.close()
try:
    with database.reading() as session:
        session.execute(text("SELECT line FROM lines LIMIT 1"))
        subprocess.run(["truncate", "-s", str(int(os.path.getsize(file) * float(share))), file], check=True)
        session.execute(text("SELECT sum(length(line)) FROM lines"))
except DatabaseUnavailable as error:
    print(error)
"""


@pytest.mark.parametrize("share", ["0", "0.5"])
def test_a_truncated_file_is_unavailability_and_does_not_crash_the_process(tmp_path: Path, share: str) -> None:
    command = [sys.executable, "-c", CUT_SHORT, str(tmp_path / "market.db"), share]
    child = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert child.returncode == 0, child.stderr
    assert child.stdout == "The database does not answer. Try again shortly.\n"


def test_the_server_starts_without_the_folder_of_the_database(tmp_path: Path) -> None:
    with market_on(f"sqlite:///{tmp_path}/later/market.db") as client:
        require_unavailable(client)
        (tmp_path / "later").mkdir()
        wait_until_true(lambda: client.get(PROBED_PATH).status_code == 200)


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill(folder: Path) -> Path:
    ballast = folder / "ballast"
    with ballast.open("ab", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return ballast


@needs_root
@pytest.mark.slow
def test_a_full_disk_is_readable_and_writable_again_after_cleaning(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small") as folder:
        database = Database(f"sqlite:///{folder}/market.db")
        migrate(database)
        with database.writing() as session:
            session.execute(text("CREATE TABLE lines (n integer, filler text)"))
        ballast = fill(folder)
        line = text("INSERT INTO lines VALUES (1, :filler)")
        with pytest.raises(DatabaseUnavailable), database.writing() as session:
            session.execute(line, {"filler": "x" * 100_000})
        with database.reading() as session:
            assert session.scalar(text("SELECT count(*) FROM lines")) == 0
        ballast.unlink()
        with database.writing() as session:
            session.execute(line, {"filler": "x" * 100_000})
        assert database.is_available
        database.close()


@needs_root
@pytest.mark.slow
def test_a_read_only_disk_recovers_when_it_is_writable_again(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small") as folder:
        database = Database(f"sqlite:///{folder}/market.db")
        with database.writing() as session:
            session.execute(text("CREATE TABLE lines (n integer)"))
        database.close()
        subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        database = Database(f"sqlite:///{folder}/market.db")
        with pytest.raises(DatabaseUnavailable), database.writing() as session:
            session.execute(text("INSERT INTO lines VALUES (1)"))
        subprocess.run(["mount", "-o", "remount,rw", folder], check=True)
        with database.writing() as session:
            session.execute(text("INSERT INTO lines VALUES (2)"))
        with database.reading() as session:
            assert list(session.scalars(text("SELECT n FROM lines"))) == [2]
        database.close()


def test_an_endless_query_is_interrupted_on_sqlite(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/market.db", read_seconds=0.2)
    with pytest.raises(DatabaseUnavailable, match="too long"), database.reading() as session:
        session.execute(text(ENDLESS))
    assert answers(database)
    database.close()


def test_a_writer_waits_a_limited_time_for_a_foreign_lock(tmp_path: Path) -> None:
    """However many writers wait: if each waited in turn, the server would stand still."""
    database = Database(f"sqlite:///{tmp_path}/market.db", wait_seconds=0.3)
    with database.writing() as session:
        session.execute(text("CREATE TABLE lines (n integer)"))

    def write(n: int) -> bool:
        try:
            with database.writing() as session:
                session.execute(text("INSERT INTO lines VALUES (:n)"), {"n": n})
        except DatabaseUnavailable:
            return False
        return True

    stranger = sqlite3.connect(tmp_path / "market.db", isolation_level=None)
    stranger.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(8) as pool:
        assert not any(pool.map(write, range(8)))
    assert database.is_available  # reachable, though locked
    stranger.execute("ROLLBACK")
    stranger.close()
    assert write(9)
    database.close()
