"""GET /v1/models for clients that send `anthropic-version`."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.serving import served, settings_with

_MODELS = """
models:
  one: {repo: echo}
  two: {repo: "echo?revision=2", aliases: [claude-two]}
  three: {repo: "echo?revision=3"}
"""


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    config = Path(tmp_path_factory.mktemp("models")) / "models.yaml"
    config.write_text(_MODELS)
    settings = settings_with(model_config_path=str(config), model_repo_id="one", models="two,three")
    headers = {"anthropic-version": "2023-06-01"}
    with served(settings) as running, httpx2.Client(base_url=running.url, headers=headers) as client:
        yield client


def listed(http: httpx2.Client, **query: Any) -> tuple[list[str], bool]:
    body = http.get("/v1/models", params=query).json()
    ids = [model["id"] for model in body["data"]]
    assert (body["first_id"], body["last_id"]) == ((ids[0], ids[-1]) if ids else (None, None))
    return ids, body["has_more"]


def test_models_have_the_shape_of_anthropic(http: httpx2.Client) -> None:
    answer = http.get("/v1/models")
    model = answer.json()["data"][0]
    assert datetime.fromisoformat(model.pop("created_at")).year > 2024
    assert model == {
        "type": "model",
        "id": "one",
        "display_name": "one",
        "lifecycle": "active",
        "max_input_tokens": 32768,
        "max_tokens": 32768,
    }
    assert answer.headers["request-id"]


def test_they_come_in_pages(http: httpx2.Client) -> None:
    assert listed(http) == (["one", "two", "three"], False)
    assert listed(http, limit=2) == (["one", "two"], True)
    assert listed(http, after_id="two") == (["three"], False)
    assert listed(http, before_id="three", limit=1) == (["two"], True)
    assert listed(http, after_id="three") == ([], False)
    for query in ({"limit": 0}, {"after_id": "nobody"}):
        assert http.get("/v1/models", params=query).json()["error"]["type"] == "invalid_request_error"


def test_one_is_found_by_its_other_name(http: httpx2.Client) -> None:
    assert http.get("/v1/models/claude-two").json()["id"] == "two"
