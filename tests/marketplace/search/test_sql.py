"""Statements that bypass SQLAlchemy: their errors, and what a transaction asks once."""

import sqlite3

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from tests.marketplace.postgres import Postgres
from tests.marketplace.search.conftest import SECRET, Catalogue
from tis.database.database import Database
from tis.database.errors import DatabaseUnavailable
from tis.marketplace.market import Market, MarketRules
from tis.marketplace.search.query import PageRequest, ProductQuery
from tis.marketplace.search.spelling import document_counts
from tis.marketplace.search.sql import run, run_once


def test_an_error_in_our_sql_is_an_operational_error_without_the_values(market: Market) -> None:
    with pytest.raises(OperationalError, match="no such table") as caught, market.reading() as session:
        run(session, "SELECT * FROM nowhere WHERE secret = :secret", {"secret": "s3cret"})
    assert isinstance(caught.value.orig, sqlite3.OperationalError) and "s3cret" not in str(caught.value)


@pytest.mark.slow
def test_a_lost_connection_is_reported_and_not_reused(postgres: Postgres) -> None:
    market = Market(Database(postgres.new_database("broken_connection")), MarketRules(jwt_secret=SECRET))
    with pytest.raises(DatabaseUnavailable), market.reading() as session:
        [(process,)] = run(session, "SELECT pg_backend_pid()")
        with market.writing() as other:
            other.execute(text("SELECT pg_terminate_backend(:process)"), {"process": process})
        market.search.find(session, ProductQuery("teko"), PageRequest(5))
    with market.reading() as session:
        assert market.search.find(session, ProductQuery("teko"), PageRequest(5)).hits == []
    market.close()


def test_a_reader_asks_the_same_once_and_a_writer_each_time(catalogue: Catalogue) -> None:
    draw = "SELECT rand()" if catalogue.market.database.dialect == "mysql" else "SELECT random()"
    with catalogue.market.reading() as session:
        drawn = run_once(session, draw)
        assert run_once(session, draw) == drawn and run_once(session, draw, {"of": 1}) != drawn
    with catalogue.market.reading() as session:
        assert run_once(session, draw) != drawn
    with catalogue.market.writing() as session:
        assert run_once(session, draw) != run_once(session, draw)


def test_words_are_counted_as_the_transaction_sees_them(catalogue: Catalogue) -> None:
    catalogue.put("Teko baja")
    with catalogue.market.reading() as session:
        assert document_counts(session, ["teko", "panci"]) == {"teko": 1}
        catalogue.put("Panci baja")  # by another transaction
        assert document_counts(session, ["panci"]) == {}
        assert document_counts(session, ["teko"]) == {"teko": 1}
    with catalogue.market.writing() as session:
        assert document_counts(session, ["panci", "baja"]) == {"panci": 1, "baja": 2}
        run(session, "UPDATE lexicon SET count = 7 WHERE term = 'panci'")
        assert document_counts(session, ["panci", "baja"]) == {"panci": 7, "baja": 2}
        session.rollback()
