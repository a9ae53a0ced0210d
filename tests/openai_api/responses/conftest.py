from collections.abc import Iterator

import httpx2
import pytest

from tests.serving import served, settings_with


@pytest.fixture(scope="package")
def hermes() -> Iterator[httpx2.Client]:
    """Says what it is told, and is taken for a model that thinks and writes calls as Hermes does."""
    with (
        served(settings_with(model_repo_id="echo?thinks=1&tool_format=hermes")) as running,
        httpx2.Client(base_url=running.url, timeout=30) as client,
    ):
        yield client
