from collections.abc import Iterator

import httpx2
import pytest

from tests.mcp_client.weather_process import McpProcess, weather_process
from tests.serving import Served, served, settings_with


@pytest.fixture(scope="session")
def weather(tmp_path_factory: pytest.TempPathFactory) -> Iterator[McpProcess]:
    with weather_process(tmp_path_factory.mktemp("mcp") / "diary") as process:
        yield process


@pytest.fixture(scope="session")
def calling_server(weather: McpProcess) -> Iterator[Served]:
    """An echo that may call the weather server."""
    with served(settings_with(mcp_allowed_hosts=weather.host, mcp_max_rounds=3)) as running:
        yield running


@pytest.fixture
def calling(calling_server: Served) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=calling_server.url, timeout=30) as client:
        yield client


@pytest.fixture
def demo(demo_server: Served) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=demo_server.url, timeout=120) as client:
        yield client
