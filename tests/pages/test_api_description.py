"""/docs and the OpenAPI description: everything comes from this server, once, and then from the browser's cache."""

import asyncio
import shutil
import subprocess
import threading
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx2
import pytest
import yaml

from tests.serving import Served, settings_with
from tis.app import create_app

pytestmark = pytest.mark.long

ASSETS = ["/docs/swagger-ui-bundle.js", "/docs/swagger-ui.css"]
DESCRIPTIONS = ["/openapi.json", "/openapi.yaml"]


def from_yaml(text: str) -> Any:
    return yaml.load(text, yaml.CSafeLoader)  # in C: a second faster for our description


class AddressesOf(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.inline_scripts = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = dict(attrs)
        self.found += [str(names[name]) for name in ("href", "src") if name in names]
        self.inline_scripts += tag == "script" and "src" not in names


def test_the_docs_page_loads_files_of_this_server_only(http: httpx2.Client) -> None:
    page = http.get("/docs")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    addresses = AddressesOf(page.text)
    found = {urljoin("/docs", address) for address in addresses.found}
    assert {address for address in found if not address.startswith("/pages/")} == {*ASSETS, "/openapi.yaml"}
    assert all(http.get(address).status_code == 200 for address in found)
    assert addresses.inline_scripts == 0 and "//" not in page.text


def test_the_browser_may_load_nothing_from_elsewhere(http: httpx2.Client) -> None:
    policy = dict(
        part.strip().split(" ", 1) for part in http.get("/docs").headers["content-security-policy"].split(";")
    )
    assert policy.pop("img-src") == policy.pop("media-src") == "'self' data: blob:"
    ours = ("script-src", "style-src", "connect-src", "font-src", "manifest-src")
    assert {policy.pop(name) for name in ours} == {"'self'"}
    assert set(policy) == {"default-src", "base-uri", "form-action", "frame-ancestors"}
    assert set(policy.values()) == {"'none'"}


@pytest.mark.parametrize(("path", "media_type"), [*zip(ASSETS, ["javascript", "css"], strict=True)])
def test_files_of_the_docs_page_are_cached_for_a_day(http: httpx2.Client, path: str, media_type: str) -> None:
    answer = http.get(path)
    assert media_type in answer.headers["content-type"] and len(answer.content) > 100
    assert answer.headers["cache-control"] == "public, max-age=86400"
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/docs", *ASSETS, *DESCRIPTIONS])
def test_a_client_with_the_same_version_gets_a_304_without_a_body(http: httpx2.Client, path: str) -> None:
    first = http.get(path)
    etag = first.headers["etag"]
    for known in (etag, f"W/{etag}", f'"another", {etag}', "*"):
        again = http.get(path, headers={"If-None-Match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
        assert again.headers["cache-control"] == first.headers["cache-control"]
    for unknown in ('"another"', "", "no tag"):
        assert http.get(path, headers={"If-None-Match": unknown}).content == first.content


@pytest.mark.parametrize("path", ["/docs", *DESCRIPTIONS])
def test_the_page_and_the_description_are_checked_for_changes_at_each_visit(http: httpx2.Client, path: str) -> None:
    assert http.get(path).headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("name", ["__init__.py", "..%2fmain.py", "oauth2-redirect", "swagger-ui.css%00"])
def test_the_docs_page_has_no_other_files(http: httpx2.Client, name: str) -> None:
    answer = http.get(f"/docs/{name}")
    assert answer.status_code == 404 and answer.json()["detail"].startswith("Unknown path")


def test_redoc_redirects_to_the_docs(http: httpx2.Client) -> None:
    assert http.get("/redoc").headers["location"] == "/docs"
    assert http.head("/redoc").status_code == 307


@pytest.mark.parametrize("path", ["/docs", "/openapi.json"])
def test_head_requests_get_the_headers(http: httpx2.Client, path: str) -> None:
    answer = http.head(path)
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["etag"] == http.get(path).headers["etag"]


def test_json_and_yaml_are_the_same_description(http: httpx2.Client) -> None:
    as_json, as_yaml = (http.get(path) for path in DESCRIPTIONS)
    assert [answer.headers["content-type"] for answer in (as_json, as_yaml)] == ["application/json", "application/yaml"]
    assert from_yaml(as_yaml.text) == as_json.json()
    assert "servers" not in as_json.json()


def test_the_authorize_button_has_a_field_for_the_key_and_one_for_the_token(http: httpx2.Client) -> None:
    description = http.get("/openapi.json").json()
    schemes = description["components"]["securitySchemes"]
    assert {name: (scheme["type"], scheme["scheme"]) for name, scheme in schemes.items()} == {
        "ApiKey": ("http", "bearer"),
        "MarketplaceToken": ("http", "bearer"),
    }
    needed = {path: security_of(methods) for path, methods in description["paths"].items()}
    assert not [path for path, name in needed.items() if path.startswith("/v1/") and name != "ApiKey"]
    assert needed["/api/products/{product_id}"] == "MarketplaceToken"
    assert {path for path, security in needed.items() if not security and not path.startswith("/api/")} == {
        "/health",
        "/live",
        "/ready",
        "/metrics",
        "/openapi.yaml",
    }


def security_of(methods: dict[str, Any]) -> str:
    return " ".join(sorted({name for method in methods.values() for one in method.get("security", []) for name in one}))


@pytest.mark.anyio
async def test_the_description_is_made_once_and_off_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    app = create_app(settings_with())
    make, may_make, calls = app.openapi, threading.Event(), []

    def slow_openapi() -> dict[str, Any]:
        calls.append(threading.current_thread())
        assert may_make.wait(20)
        return make()

    monkeypatch.setattr(app, "openapi", slow_openapi)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://test", timeout=30) as client:
        waiting = [asyncio.create_task(client.get(path)) for path in DESCRIPTIONS * 60]
        assert (await client.get("/live")).status_code == 200
        assert (await client.get("/docs")).status_code == 200
        may_make.set()
        answers = await asyncio.gather(*waiting)
    assert {answer.status_code for answer in answers} == {200}
    assert len(calls) == len(DESCRIPTIONS) and threading.current_thread() not in calls


@pytest.mark.anyio
async def test_behind_a_root_path_the_docs_call_the_server_at_that_path() -> None:
    transport = httpx2.ASGITransport(create_app(settings_with()), root_path="/models")
    async with httpx2.AsyncClient(transport=transport, base_url="http://test", timeout=30) as client:
        for path in DESCRIPTIONS:
            description = from_yaml((await client.get(path)).text)
            assert description["servers"] == [{"url": "/models"}]
        assert (await client.get("/redoc")).headers["location"] == "/models/docs"


@pytest.mark.slow
def test_a_browser_without_internet_shows_every_route(echo_server: Served, tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("needs Chromium or Chrome")
    # A high window: of many routes, Swagger UI draws those that can be seen.
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}", "--window-size=1200,40000"]
    flags += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--virtual-time-budget=30000"]
    command = [browser, *flags, "--dump-dom", f"{echo_server.url}/docs"]
    page = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
    paths = httpx2.get(f"{echo_server.url}/openapi.json").json()["paths"]
    assert not [path for path in paths if f'data-path="{path}"' not in page]
    assert "btn authorize" in page
