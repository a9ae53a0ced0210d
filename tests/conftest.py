import asyncio
import gc
import os
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import httpcore2
import httpx2
import pytest
from hypothesis import HealthCheck, settings
from openai import OpenAI
from uvicorn import server as uvicorn_server  # `uvicorn` itself would mark every test: see `starts_something`

from tests.redis_server import RedisServer, running_redis
from tests.serving import Served, served, settings_with
from tests.shared_routes import routes_read_once
from tests.starters import starts_something

# How long an example takes says nothing here: other programs run beside the tests.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

# The imports and 12,000 items of the collection live as long as the process: nothing of them is garbage.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(2_000, 10, 50)  # else full runs come every few seconds, and find hardly anything
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks tests that start servers, and runs files with slow tests first: no worker ends with a slow file alone."""
    for item in items:
        if isinstance(item, pytest.Function) and starts_something(item):
            item.add_marker("server")
    long = {item.path for item in items if item.get_closest_marker("slow") or item.get_closest_marker("model")}
    items.sort(key=lambda item: item.path not in long)


@pytest.fixture(scope="session", autouse=True)
def shared_certificates() -> Iterator[None]:
    """Each client would read the certificates of the system again, for 30 ms, though hardly a test needs them."""
    context = httpcore2.default_ssl_context()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(httpcore2, "default_ssl_context", lambda **_: context)
        yield


@pytest.fixture(scope="session", autouse=True)
def shared_routes() -> Iterator[None]:
    with routes_read_once():
        yield


@pytest.fixture(scope="session", autouse=True)
def prompt_ends_of_servers() -> Iterator[None]:
    """uvicorn waits 0.1 s before it ends: for each of hundreds of servers."""
    quick = {"sleep": lambda seconds: asyncio.sleep(seconds / 20)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uvicorn_server, "asyncio", SimpleNamespace(**vars(asyncio) | quick))
        yield


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    """So many open files that the next one gets a number above 1,023, which `select()` cannot take."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2048:
        pytest.skip(f"a process may have {hard} open files here")
    if soft != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    opened = [os.open(os.devnull, os.O_RDONLY)]
    while opened[-1] < 1024:
        opened.append(os.dup(opened[0]))
    yield
    for descriptor in opened:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture(scope="session")
def shared_redis() -> Iterator[RedisServer]:
    with running_redis() as running:
        yield running


@pytest.fixture
def redis_server(shared_redis: RedisServer) -> RedisServer:
    """An empty one. Who kills, pauses or fills it starts one of his own."""
    shared_redis.ask("FLUSHALL")
    return shared_redis


@pytest.fixture(scope="session")
def echo_server() -> Iterator[Served]:
    """A server with the echo model, which answers with the last message; each character is a token."""
    with served(settings_with()) as running:
        yield running


@pytest.fixture(scope="session")
def slow_server() -> Iterator[Served]:
    """The same at 50 tokens per second, slow enough to be interrupted."""
    with served(settings_with(model_repo_id="echo?tokens_per_second=50")) as running:
        yield running


@pytest.fixture(scope="session")
def demo_server() -> Iterator[Served]:
    with served(settings_with(model_repo_id="models/demo", load_wait_seconds=120)) as running:
        yield running


@pytest.fixture
def http(echo_server: Served) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=echo_server.url, timeout=30) as client:
        yield client


@pytest.fixture
def slow_http(slow_server: Served) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=slow_server.url, timeout=30) as client:
        yield client


@pytest.fixture
def sdk() -> Iterator[Callable[[Served], OpenAI]]:
    clients: list[OpenAI] = []

    def connect(server: Served) -> OpenAI:
        clients.append(OpenAI(base_url=f"{server.url}/v1", api_key="unused", max_retries=0, timeout=60))
        return clients[-1]

    yield connect
    for client in clients:
        client.close()
