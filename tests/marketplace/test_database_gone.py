"""A database that is away is a 503 that says when to come again; it comes back by itself, and models never notice."""

import os
import shutil
import socket
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from server.database import Database
from server.errors import DatabaseUnavailable
from server.marketplace.market import MIGRATIONS
from tests.marketplace.conftest import SECRET
from tests.marketplace.postgres import Postgres
from tests.openai_api.test_chat import CHAT, said
from tests.serving import served, settings_with

ASKED = "/api/reservations"
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")


def until(fact: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not fact():
        assert time.monotonic() < end, "this never came"
        time.sleep(0.05)


@contextmanager
def market_on(url: str) -> Iterator[httpx2.Client]:
    settings = settings_with(database_url=url, jwt_secret_key=SECRET, marketplace_auth="open")
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=60) as client:
        yield client


def state(client: httpx2.Client) -> str:
    health = client.get("/health")
    assert health.status_code == 200
    return str(health.json()["marketplace"])


def require_gone(client: httpx2.Client) -> None:
    answer = client.get(ASKED)
    assert answer.status_code == 503 and answer.json() == {"detail": "The database does not answer. Try again shortly."}
    assert int(answer.headers["Retry-After"]) > 0
    assert state(client) == "waiting"
    require_models(client)


def require_models(client: httpx2.Client) -> None:
    assert client.get("/ready").status_code == 200
    assert client.post(CHAT, json=said("Halo")).status_code == 200


@contextmanager
def stopped(postgres: Postgres) -> Iterator[None]:
    postgres.stop("immediate")
    try:
        yield
    finally:
        postgres.start()


@pytest.mark.slow
def test_a_server_outlives_its_postgresql(postgres: Postgres) -> None:
    with market_on(postgres.new_database("outlived")) as client:
        assert client.get(ASKED).status_code == 200 and state(client) == "ready"
        with stopped(postgres):
            require_gone(client)
        # Nobody asks, and still it is noticed.
        until(lambda: state(client) == "ready")
        assert client.get(ASKED).status_code == 200


@pytest.mark.slow
def test_a_server_may_start_before_its_postgresql(postgres: Postgres) -> None:
    url = postgres.new_database("late")
    with ExitStack() as stack:
        with stopped(postgres):
            client = stack.enter_context(market_on(url))
            require_gone(client)
        until(lambda: state(client) == "ready")
        assert client.get(ASKED).status_code == 200


@pytest.mark.slow
def test_who_loses_the_connection_half_way_has_done_nothing(postgres: Postgres) -> None:
    database = Database(postgres.new_database("cut"))
    with database.writing() as session:
        session.execute(text("CREATE TABLE lines (n integer)"))
    with pytest.raises(DatabaseUnavailable), database.writing() as session:
        session.execute(text("INSERT INTO lines VALUES (1)"))
        victim = session.scalar(text("SELECT pg_backend_pid()"))
        with psycopg.connect(postgres.url(), autocommit=True) as operator:
            operator.execute("SELECT pg_terminate_backend(%s)", [victim])
        session.execute(text("INSERT INTO lines VALUES (2)"))
    with database.writing() as session:
        session.execute(text("INSERT INTO lines VALUES (3)"))
    with database.reading() as session:
        assert list(session.scalars(text("SELECT n FROM lines"))) == [3]
    database.close()


@pytest.mark.slow
def test_a_statement_without_an_end_is_ended_by_postgresql(postgres: Postgres) -> None:
    database = Database(postgres.new_database("endless"), wait_seconds=0.3)
    with pytest.raises(DatabaseUnavailable, match="too long"), database.reading() as session:
        session.execute(text("SELECT pg_sleep(60)"))
    assert database.answers
    database.close()


@pytest.mark.slow
def test_two_that_wait_for_each_other_are_told_to_come_again(postgres: Postgres) -> None:
    database = Database(postgres.new_database("circle"))
    with database.writing() as session:
        session.execute(text("CREATE TABLE lines (n integer)"))
        session.execute(text("INSERT INTO lines VALUES (1), (2)"))
    both_have_one = threading.Barrier(2)

    def take(first: int, second: int) -> bool:
        try:
            with database.writing() as session:
                session.execute(text("SELECT 1 FROM lines WHERE n = :n FOR UPDATE"), {"n": first})
                both_have_one.wait(20)
                session.execute(text("SELECT 1 FROM lines WHERE n = :n FOR UPDATE"), {"n": second})
        except DatabaseUnavailable:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(take, (1, 2), (2, 1))) == [False, True]
    database.close()


@pytest.mark.slow
def test_a_postgresql_that_is_full_of_others_is_not_a_fault_of_ours(postgres: Postgres) -> None:
    database = Database(postgres.new_database("crowded"))
    with ExitStack() as others:
        with pytest.raises(psycopg.OperationalError, match="too many"):
            while True:
                others.enter_context(psycopg.connect(postgres.url()))
        with pytest.raises(DatabaseUnavailable), database.reading() as session:
            session.execute(text("SELECT 1"))
    until(lambda: answers(database))
    database.close()


def answers(database: Database) -> bool:
    try:
        with database.reading() as session:
            session.execute(text("SELECT 1"))
    except DatabaseUnavailable:
        return False
    return True


def test_who_finds_no_free_connection_is_told_to_come_again(database_url: str) -> None:
    database = Database(database_url, wait_seconds=0.2)
    with ExitStack() as busy:
        for _ in range(48):
            busy.enter_context(database.reading()).execute(text("SELECT 1"))
        assert not answers(database)
    assert answers(database)
    database.close()


def test_a_fault_in_our_sql_is_ours(database_url: str) -> None:
    database = Database(database_url)
    for wrong in ("SELECT * FROM nowhere", "SELECT nothing FROM alembic_version", "SELEKT 1"):
        with pytest.raises(DBAPIError), database.reading() as session:
            session.execute(text(wrong))
    assert database.answers
    database.close()


def test_a_missing_table_is_a_500(tmp_path: Path) -> None:
    with market_on(f"sqlite:///{tmp_path}/market.db") as client:
        assert client.get(ASKED).status_code == 200
        with sqlite3.connect(tmp_path / "market.db") as operator:
            operator.execute("DROP TABLE stock_reservations")
        assert client.get(ASKED).status_code == 500
        operator.close()


@pytest.mark.slow
def test_nobody_waits_for_a_database_that_says_nothing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=128) as silent:
        port = silent.getsockname()[1]
        with market_on(f"postgresql://somebody@127.0.0.1:{port}/market") as client, ThreadPoolExecutor(60) as pool:
            waiting = [pool.submit(client.get, ASKED) for _ in range(60)]
            assert client.get("/live").status_code == 200
            require_models(client)
            assert not all(one.done() for one in waiting)
            assert {one.result().status_code for one in waiting} == {503}


def test_a_file_that_is_replaced_is_noticed_and_found_again(tmp_path: Path) -> None:
    file, aside = tmp_path / "market.db", tmp_path / "aside"
    with market_on(f"sqlite:///{file}") as client:
        assert client.get(ASKED).status_code == 200
        shutil.move(file, aside)
        file.mkdir()
        require_gone(client)
        file.rmdir()
        shutil.move(aside, file)
        assert client.get(ASKED).status_code == 200 and state(client) == "ready"


def test_a_folder_that_is_missing_at_first_is_no_reason_not_to_start(tmp_path: Path) -> None:
    with market_on(f"sqlite:///{tmp_path}/later/market.db") as client:
        require_gone(client)
        (tmp_path / "later").mkdir()
        until(lambda: client.get(ASKED).status_code == 200)


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
def test_a_full_disk_is_read_and_takes_again_what_there_is_room_for(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small") as folder:
        database = Database(f"sqlite:///{folder}/market.db")
        database.migrate(MIGRATIONS)
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
        assert database.answers
        database.close()


@needs_root
@pytest.mark.slow
def test_a_disk_that_takes_nothing_any_more_is_read(tmp_path: Path) -> None:
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


def test_a_search_without_an_end_is_ended_on_sqlite(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/market.db", read_seconds=0.2)
    with pytest.raises(DatabaseUnavailable, match="too long"), database.reading() as session:
        session.execute(text(ENDLESS))
    assert answers(database)
    database.close()


def test_who_writes_waits_for_a_stranger_so_long_and_no_longer(tmp_path: Path) -> None:
    """However many wait: a queue of threads that each wait in turn would be a server that stands still."""
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
    stranger.execute("ROLLBACK")
    stranger.close()
    assert write(9)
    database.close()
