"""A PostgreSQL that stops, hangs or is full is a 503 with Retry-After; models are served all the time."""

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import text

from tests.marketplace.database_failures import (
    PROBED_PATH,
    answers,
    market_on,
    require_models,
    require_unavailable,
    state,
    wait_until_true,
)
from tests.marketplace.postgres import Postgres
from tis.database.database import Database
from tis.database.errors import DatabaseUnavailable
from tis.marketplace.kit.idempotency import claim_key

pytestmark = pytest.mark.long

_END_WHO_WAITS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


@contextmanager
def stopped(postgres: Postgres) -> Iterator[None]:
    postgres.stop("immediate")
    try:
        yield
    finally:
        postgres.start()


@pytest.mark.slow
def test_the_server_survives_a_restart_of_postgresql(postgres: Postgres) -> None:
    with market_on(postgres.new_database("outlived")) as client:
        assert client.get(PROBED_PATH).status_code == 200 and state(client) == "ready"
        with stopped(postgres):
            require_unavailable(client)
        # Without a request: the sweeper notices.
        wait_until_true(lambda: state(client) == "ready")
        assert client.get(PROBED_PATH).status_code == 200


@pytest.mark.slow
def test_the_server_may_start_before_postgresql(postgres: Postgres) -> None:
    url = postgres.new_database("late")
    with ExitStack() as stack:
        with stopped(postgres):
            client = stack.enter_context(market_on(url))
            require_unavailable(client)
        wait_until_true(lambda: state(client) == "ready")
        assert client.get(PROBED_PATH).status_code == 200


@pytest.mark.slow
def test_a_lost_connection_rolls_the_transaction_back(postgres: Postgres) -> None:
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
def test_a_connection_lost_while_a_key_is_claimed_is_unavailability(postgres: Postgres) -> None:
    database = Database(postgres.new_market("claimed"))

    def claim() -> None:
        with database.writing() as session:
            claim_key(session, "somebody", "key", "digest")

    with ThreadPoolExecutor(1) as pool, database.writing() as holder:
        claim_key(holder, "somebody", "key", "digest")
        waiting = pool.submit(claim)  # at the unique key, for the transaction before it
        with psycopg.connect(postgres.url(), autocommit=True) as operator:
            wait_until_true(lambda: operator.execute(_END_WHO_WAITS).fetchall() != [])
        with pytest.raises(DatabaseUnavailable):
            waiting.result()
    database.close()


@pytest.mark.slow
def test_an_endless_statement_is_cancelled_by_postgresql(postgres: Postgres) -> None:
    database = Database(postgres.new_database("endless"), wait_seconds=0.3)
    with pytest.raises(DatabaseUnavailable, match="too long"), database.reading() as session:
        session.execute(text("SELECT pg_sleep(60)"))
    assert database.is_available
    database.close()


@pytest.mark.slow
def test_a_deadlock_is_unavailability_for_one_of_the_two(postgres: Postgres) -> None:
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
    assert database.is_available
    database.close()


@pytest.mark.slow
def test_too_many_connections_are_unavailability(postgres: Postgres) -> None:
    database = Database(postgres.new_database("crowded"))
    with ExitStack() as others:
        with pytest.raises(psycopg.OperationalError, match="too many"):
            while True:
                others.enter_context(psycopg.connect(postgres.url()))
        with pytest.raises(DatabaseUnavailable), database.reading() as session:
            session.execute(text("SELECT 1"))
    wait_until_true(lambda: answers(database))
    database.close()


@pytest.mark.slow
def test_a_database_that_never_answers_times_out(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=128) as silent:
        port = silent.getsockname()[1]
        with market_on(f"postgresql://somebody@127.0.0.1:{port}/market") as client, ThreadPoolExecutor(60) as pool:
            waiting = [pool.submit(client.get, PROBED_PATH) for _ in range(60)]
            assert client.get("/live").status_code == 200
            require_models(client)
            assert not all(one.done() for one in waiting)
            assert {one.result().status_code for one in waiting} == {503}
