"""Every route of the app needs a key once there is one, but for those that are listed here once more."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from fastapi.routing import iter_route_contexts

from tests.http.keys import bearer, entry, write_key_file
from tests.openai_api.test_chat import CHAT, said
from tests.serving import Served, served, settings_with

PUBLIC = {
    "/",
    "/shop",
    "/desk",
    "/admin",
    "/card",
    "/account/link",
    "/status",
    "/redoc",
    "/live",
    "/ready",
    "/health",
    "/ollama",
    "/ollama/",
}
CRAWLED = r"/shop/products/1|/robots\.txt|/sitemap(-1)?\.xml"
OWN_POLICY = re.compile(rf"/api/.*|/mcp|/pages/(?!kill$).*|{CRAWLED}")  # of the pages the files are public
KEY, ADMIN_KEY = "sk-of-the-walker", "sk-of-the-admin"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    expired = entry("old", "sk-expired", expires="2020-01-01")
    path = write_key_file(tmp_path_factory.mktemp("keys") / "keys.yaml", entry("walker", KEY), expired)
    with served(settings_with(api_keys_file=str(path), admin_key=ADMIN_KEY)) as running:
        yield running


def all_routes(server: Served) -> Iterator[tuple[str, str]]:
    _ = server.app.state.marketplace.market
    for route in iter_route_contexts(server.app.routes):
        for method in sorted(route.methods or ()):
            yield method, re.sub(r"\{[^}]*\}", "1", str(route.path))


def test_every_route_but_the_public_ones_refuses_a_stranger(server: Served) -> None:
    asked = list(all_routes(server))
    assert len(asked) > 150
    with httpx2.Client(base_url=server.url) as client:
        for method, path in asked:
            if path in PUBLIC or OWN_POLICY.fullmatch(path):
                continue
            for headers in ({}, bearer("sk-of-nobody"), bearer("sk-expired"), {"X-Api-Key": ""}):
                answer = client.request(method, path, headers=headers)
                assert answer.status_code == 401, (method, path, answer.text)
                assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize(
    "path", "/nowhere /shop/products/x /sitemap-x.xml /v1 /v2/models /live/ /health/x /apis //v1/models /mcpx".split()
)
def test_a_path_that_is_not_there_is_not_public(server: Served, path: str) -> None:
    assert httpx2.get(server.url + path).status_code == 401
    assert httpx2.get(server.url + path, headers=bearer(KEY)).status_code in (200, 307, 404)


@pytest.mark.parametrize(
    ("path", "shape"),
    [(CHAT, "error"), ("/v1/messages", "error"), ("/ollama/api/chat", "error"), ("/ktp-ocr/", "detail")],
)
def test_the_refusal_is_in_the_shape_of_the_api(server: Served, path: str, shape: str) -> None:
    body = httpx2.post(server.url + path, json={}).json()
    assert shape in body
    assert path != "/v1/messages" or body["error"]["type"] == "authentication_error"


@pytest.mark.parametrize("path", ["/metrics", "/docs", "/docs/swagger-ui.css", "/openapi.json"])
def test_pages_take_the_key_as_a_bearer_or_as_the_password_of_a_login(server: Served, path: str) -> None:
    refused = httpx2.get(server.url + path)
    assert (refused.status_code, "Basic" in refused.headers["www-authenticate"]) == (401, True)
    # The description of all routes takes a second, and ten on a busy machine.
    assert httpx2.get(server.url + path, headers=bearer(KEY), timeout=60).status_code == 200
    assert httpx2.get(server.url + path, auth=("anybody", KEY)).status_code == 200
    assert httpx2.get(server.url + path, auth=("anybody", "sk-of-nobody")).status_code == 401


def test_a_login_of_the_browser_does_not_reach_the_apis(server: Served) -> None:
    assert httpx2.post(server.url + CHAT, json=said("Halo"), auth=("anybody", KEY)).status_code == 401


def test_health_is_short_for_strangers_and_long_with_a_key(server: Served) -> None:
    assert set(httpx2.get(f"{server.url}/health").json()) == {"ok", "modelReady", "modelId", "error"}
    full = httpx2.get(f"{server.url}/health", headers=bearer(KEY)).json()
    assert full["keys"] == {"number": 3, "file": "ready", "fileError": None}


def test_metrics_can_be_opened(tmp_path: Path) -> None:
    with served(settings_with(api_keys="sk-alone", metrics_public=True)) as running:
        assert httpx2.get(f"{running.url}/metrics").status_code == 200
        assert httpx2.get(f"{running.url}/docs").status_code == 401


def test_a_file_without_keys_closes_the_server(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_text('{"keys": []}')
    with served(settings_with(api_keys_file=str(path))) as running:
        assert httpx2.get(f"{running.url}/v1/models").status_code == 401
