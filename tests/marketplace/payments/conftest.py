"""A server, a provider beside it, and shops whose orders are paid there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.marketplace.conftest import SECRET
from tests.marketplace.market_server import MarketServer, market_server
from tests.marketplace.payments.provider_process import FakeProvider, running_provider
from tests.marketplace.payments.till import Till
from tests.serving import settings_with


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeProvider]:
    with running_provider(Path(tmp_path_factory.mktemp("provider"))) as running:
        yield running


@pytest.fixture(scope="module")
def paid_server(database_url: str, provider: FakeProvider) -> Iterator[MarketServer]:
    settings = settings_with(database_url=database_url, jwt_secret_key=SECRET, **provider.settings)
    with market_server(settings) as server:
        yield server


@pytest.fixture
def till(paid_server: MarketServer, provider: FakeProvider) -> Iterator[Till]:
    provider.fine()
    with Till(paid_server) as till:
        yield till
    provider.fine()
