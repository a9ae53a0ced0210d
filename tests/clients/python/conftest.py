"""Where the server under test is. These files run in the clients' environments: nothing of the house is imported."""

import os
from typing import Any

import pytest

MODEL = "demo"
GET_WEATHER: dict[str, Any] = {
    "name": "get_weather",
    "description": "Get the weather in a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


@pytest.fixture(scope="session")
def url() -> str:
    return os.environ["CLIENTS_URL"]


@pytest.fixture(scope="session")
def slow_url() -> str:
    return os.environ["CLIENTS_SLOW_URL"]


@pytest.fixture(scope="session")
def base_url(url: str) -> str:
    return f"{url}/v1"


@pytest.fixture(scope="session")
def api_key() -> str:
    return os.environ["CLIENTS_API_KEY"]


@pytest.fixture(scope="session")
def admin_key() -> str:
    return os.environ["CLIENTS_ADMIN_KEY"]
