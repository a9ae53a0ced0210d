from collections.abc import Iterator

import httpx2
import pytest

from tests.serving import Served


@pytest.fixture
def http(visiting_server: Served) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=visiting_server.url, timeout=30) as client:
        yield client
