"""A server whose sweeper rests: the test says when it sweeps."""

from collections.abc import Iterator

import pytest

from tests.marketplace.conftest import SECRET
from tests.marketplace.market_server import MarketServer, market_server
from tests.serving import settings_with


@pytest.fixture(scope="module")
def server(database_url: str) -> Iterator[MarketServer]:
    with market_server(settings_with(database_url=database_url, jwt_secret_key=SECRET)) as server:
        server.market._sweeper.stop()
        yield server
