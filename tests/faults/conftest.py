"""Servers that tests share: a start takes longer than most of what is tested."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.mortal_server import SharedServer
from tests.marketplace.postgres import Postgres, required_postgres
from tests.mcp_client.weather_process import McpProcess, weather_process

_FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(_FOLDER):
            item.add_marker(pytest.mark.long)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedServer]:
    shared = SharedServer(lambda: tmp_path_factory.mktemp("shared"))
    yield shared
    shared.close()


@pytest.fixture(scope="session")
def shared_demo(tmp_path_factory: pytest.TempPathFactory, weather_server: McpProcess) -> Iterator[SharedServer]:
    """With the demo model, for the few tests that are about a model: to load it takes longest of all."""
    demo = {"MODEL_REPO_ID": "models/demo", "TORCH_DTYPE": "float32", "EAGER_LOAD_MODEL": "1"}
    more = {"LOAD_WAIT_SECONDS": "120", "MCP_ALLOWED_HOSTS": weather_server.host}
    shared = SharedServer(lambda: tmp_path_factory.mktemp("demo"), **demo, **more)
    yield shared
    shared.close()


@pytest.fixture(scope="session")
def weather_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[McpProcess]:
    with weather_process(tmp_path_factory.mktemp("weather") / "diary") as process:
        yield process


@pytest.fixture
def weather(weather_server: McpProcess) -> McpProcess:
    """Its diary is empty. What it still thinks about in other tests it does for ten minutes."""
    weather_server.call_log.unlink(missing_ok=True)
    return weather_server


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    """For tests that kill it, pause it, or look at what is in it."""
    with required_postgres() as running:
        yield running
