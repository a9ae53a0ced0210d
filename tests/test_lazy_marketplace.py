"""The marketplace is imported after the start; the first requests wait for it."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
import yaml
from fastapi import APIRouter

from tests.databases import new_sqlite
from tests.serving import server_process, wait_until_live
from tests.test_status import until
from tis.database.database import Database
from tis.errors import Draining
from tis.http.documents import DocumentCache
from tis.lazy_marketplace import AppWithMarketplace, LazyMarketplace, LazyMarketplaceMiddleware
from tis.marketplace.market import Market, MarketRules
from tis.pages import api_description
from tis.pages.page_files import PageFiles

pytestmark = pytest.mark.long


class ControlledImport:
    """An import that waits until a test lets it end, and may fail."""

    def __init__(self, folder: Path) -> None:
        self.market = Market(Database(new_sqlite(folder)), MarketRules(jwt_secret="long enough " * 3))
        self.begun, self.may_end = threading.Event(), threading.Event()
        self.failures = 0
        self.runs = 0

    def __call__(self) -> tuple[Market, APIRouter]:
        self.runs += 1
        self.begun.set()
        assert self.may_end.wait(20)
        if self.failures:
            self.failures -= 1
            raise ImportError("a broken installation")
        router = APIRouter()
        router.add_api_route("/goods", lambda: ["lamp"])
        return self.market, router


@pytest.fixture
def importing(tmp_path: Path) -> Iterator[ControlledImport]:
    importing = ControlledImport(tmp_path)
    yield importing
    importing.may_end.set()


@pytest.fixture
def app(importing: ControlledImport) -> AppWithMarketplace:
    app = AppWithMarketplace(openapi_url=None)
    app.include_router(api_description.router)

    @app.get("/live")
    async def live() -> bool:
        return True

    @app.get("/mcp")
    async def is_there() -> bool:
        return bool(app.state.marketplace.is_loaded)

    app.state.marketplace = LazyMarketplace(app, importing)
    app.state.documents = DocumentCache()
    app.state.page_files = PageFiles(
        frame_ancestors=[], in_development=False, can_be_killed=False, market_is_open=False
    )
    app.add_middleware(LazyMarketplaceMiddleware, marketplace=app.state.marketplace, also_for=["/mcp"])
    return app


@asynccontextmanager
async def calling(app: AppWithMarketplace) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://test", timeout=30) as client:
        yield client


@pytest.mark.anyio
async def test_only_requests_that_need_its_routes_wait_and_all_wait_for_one_import(
    app: AppWithMarketplace, importing: ControlledImport
) -> None:
    async with calling(app) as client:
        paths = [
            "/api/goods",
            "/openapi.json",
            "/openapi.yaml",
            "/mcp",
            *["/api/goods"] * 60,
        ]  # more than there are threads
        waiting = [asyncio.create_task(client.get(path)) for path in paths]
        assert await asyncio.to_thread(importing.begun.wait, 20)
        assert (await client.get("/live")).status_code == 200
        assert (await client.get("/docs")).status_code == 200
        assert not any(task.done() for task in waiting)
        importing.may_end.set()
        goods, as_json, as_yaml, mcp, *others = await asyncio.gather(*waiting)
        assert goods.json() == ["lamp"] and mcp.json() is True
        assert as_json.json() == yaml.safe_load(as_yaml.text)
        assert {"/live", "/api/goods"} <= set(as_json.json()["paths"])
        assert {answer.status_code for answer in others} == {200} and importing.runs == 1
        assert (await client.get("/api/nowhere")).status_code == 404


@pytest.mark.anyio
async def test_a_failed_import_is_an_error_of_its_requests_and_is_retried(
    app: AppWithMarketplace, importing: ControlledImport
) -> None:
    importing.failures = 2
    importing.may_end.set()
    async with calling(app) as client:
        assert (await client.get("/api/goods")).status_code == 500
        assert (await client.get("/openapi.json")).status_code == 500
        assert app.state.marketplace.state == "waiting"
        assert (await client.get("/api/goods")).json() == ["lamp"]
        assert "/api/goods" in (await client.get("/openapi.json")).json()["paths"]


def test_it_is_imported_and_migrated_without_a_request(app: AppWithMarketplace, importing: ControlledImport) -> None:
    marketplace: LazyMarketplace = app.state.marketplace
    marketplace.open()
    assert importing.begun.wait(20) and marketplace.state == "waiting"
    importing.may_end.set()
    until(lambda: marketplace.state == "ready")
    marketplace.close()


def test_where_it_is_not_wanted_at_the_start_nothing_of_it_runs_until_it_is_asked_for(
    app: AppWithMarketplace, importing: ControlledImport, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "tis.marketplace")
    importing.may_end.set()
    marketplace = LazyMarketplace(app, importing, at_start=False)
    marketplace.open()
    assert marketplace.state == "ready" and not marketplace.is_loaded
    assert importing.runs == 0 and "marketplace" not in {thread.name for thread in threading.enumerate()}
    assert marketplace.market is importing.market
    until(lambda: "the jobs of the marketplace run" in caplog.text)
    assert importing.runs == 1 and marketplace.state == "ready"
    marketplace.close()


def test_a_description_of_an_app_that_does_not_run_starts_no_jobs(
    app: AppWithMarketplace, importing: ControlledImport
) -> None:
    importing.may_end.set()
    marketplace = LazyMarketplace(app, importing, at_start=False)
    assert marketplace.market is importing.market
    assert "marketplace" not in {thread.name for thread in threading.enumerate()}
    marketplace.close()


def test_in_the_background_it_lets_a_model_load_first(app: AppWithMarketplace, importing: ControlledImport) -> None:
    marketplace: LazyMarketplace = app.state.marketplace
    importing.may_end.set()
    begun_while_busy = []

    def is_busy() -> bool:
        begun_while_busy.append(importing.begun.is_set())
        return len(begun_while_busy) < 3

    marketplace.open(is_busy)
    until(lambda: marketplace.state == "ready")
    assert begun_while_busy == [False] * 3
    marketplace.close()


def test_a_server_that_ends_at_once_imports_nothing(app: AppWithMarketplace, importing: ControlledImport) -> None:
    marketplace: LazyMarketplace = app.state.marketplace
    marketplace.open()
    marketplace.close()
    assert importing.runs == 0


def test_closing_waits_for_an_import_that_has_begun(app: AppWithMarketplace, importing: ControlledImport) -> None:
    marketplace: LazyMarketplace = app.state.marketplace
    marketplace.open()
    assert importing.begun.wait(20)
    closing = threading.Thread(target=marketplace.close)
    closing.start()
    assert closing.is_alive()
    importing.may_end.set()
    closing.join(20)
    assert not closing.is_alive() and marketplace.is_loaded


@pytest.mark.parametrize("at_start", [True, False])
def test_who_asks_for_it_after_the_close_began_is_refused_and_nothing_is_left_open(
    app: AppWithMarketplace, importing: ControlledImport, at_start: bool
) -> None:
    importing.may_end.set()
    marketplace = LazyMarketplace(app, importing, at_start=at_start)
    marketplace.open()
    marketplace.close()
    with pytest.raises(Draining):
        _ = marketplace.market
    assert importing.runs == 0 and not marketplace.is_loaded


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/api/categories", "/openapi.json", "/openapi.yaml"])
def test_the_first_request_to_a_fresh_process_finds_all_routes(path: str) -> None:
    with server_process() as process:
        wait_until_live(process.url)
        answer = httpx2.get(process.url + path, timeout=30)
        assert answer.status_code == 200
        assert path.startswith("/api/") or all(known in answer.text for known in ("/v1/models", "/api/categories"))


@pytest.mark.slow
def test_the_first_request_to_a_fresh_process_is_bounded_and_answered_like_any_other() -> None:
    with server_process() as process:
        wait_until_live(process.url)
        refused = httpx2.post(f"{process.url}/api/users/register", content=b" " * 300_000)
        assert refused.status_code == 413 and "body is larger" in refused.json()["detail"]
        assert httpx2.post(f"{process.url}/api/users/register", json={}).status_code == 422
        assert httpx2.get(f"{process.url}/api/nowhere").json()["detail"].startswith("Unknown path")


@pytest.mark.slow
def test_a_fresh_process_migrates_without_a_request() -> None:
    with server_process() as process:
        wait_until_live(process.url)
        until(lambda: httpx2.get(f"{process.url}/health").json()["marketplace"] == "ready")
