"""The vocabulary of a fresh database, with some brands, and a function that reads a sentence with it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.databases import new_sqlite
from tests.marketplace.conftest import SECRET
from tis.database.database import Database
from tis.marketplace.market import Market, MarketRules
from tis.marketplace.reading.parse import parse_query
from tis.marketplace.reading.structured_query import QueryContext
from tis.marketplace.reading.vocabulary import Vocabulary

Parse = Callable[..., dict[str, Any]]
BRANDS = ("acer", "asus", "canon", "epson", "hp", "lenovo", "philips", "samsung", "tenda", "tiga roda", "xiaomi")


@pytest.fixture(scope="session")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vocabulary]:
    market = Market(Database(new_sqlite(tmp_path_factory.mktemp("vocabulary"))), MarketRules(jwt_secret=SECRET))
    with market.reading() as session:
        vocabulary = market.search.vocabulary(session)
    yield replace(vocabulary, brands=BRANDS)
    market.close()


@pytest.fixture(scope="session")
def parse(vocabulary: Vocabulary) -> Parse:
    """The fields of the query that are not at their defaults."""

    def fields(text: str, **context: Any) -> dict[str, Any]:
        parsed = parse_query(text, QueryContext.model_validate(context), vocabulary)
        return parsed.query.model_dump(exclude_defaults=True)

    return fields
