"""A server that says what it is told, and is taken for a model that thinks and writes calls as Hermes does."""

from collections.abc import Iterator

import httpx2
import pytest

from tests.serving import Served, served, settings_with


@pytest.fixture(scope="session")
def thinker() -> Iterator[Served]:
    with served(settings_with(model_repo_id="echo?thinks=1&tool_format=hermes")) as running:
        yield running


@pytest.fixture
def hermes(thinker: Served) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=thinker.url, timeout=30) as client:
        yield client
