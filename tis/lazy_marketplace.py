"""Imports the marketplace after the start: with SQLAlchemy, its import takes as long as the rest of the start."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from fastapi import APIRouter, FastAPI
from starlette._utils import get_route_path
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Receive, Scope, Send

from tis.errors import Draining
from tis.http.described_errors import describe_errors
from tis.observability.collector import exempt_imported_objects
from tis.observability.logs import log_exception

if TYPE_CHECKING:
    from tis.marketplace.market import Market

PREFIX = "/api"
# The import competes with the event loop for the GIL; clients that wait for the start of the server go first.
_START_DELAY_SECONDS = 0.25
_MAX_START_DELAY_SECONDS = 5.0  # while a model is loaded, which imports torch


class LazyMarketplace:
    """The market and its routes, imported in the background or by the first request that needs them."""

    def __init__(self, app: FastAPI, make: "Callable[[], tuple[Market, APIRouter]]", *, at_start: bool = True) -> None:
        """Otherwise nothing of it is imported, and none of its jobs run, until somebody asks for it."""
        self._app = app
        self._make = make
        self._at_start = at_start
        self._is_open = False  # for those who ask, where it was not opened at the start
        self._market: Market | None = None
        self._loading = threading.Lock()
        self._closing = threading.Event()
        self._opener: threading.Thread | None = None

    @property
    def state(self) -> Literal["ready", "waiting"]:
        if self._market:
            return self._market.state
        return "waiting" if self._at_start else "ready"

    @property
    def failure(self) -> str | None:
        return self._market.failure if self._market else None

    @property
    def is_loaded(self) -> bool:
        return self._market is not None

    @property
    def market(self) -> "Market":
        """Imports the marketplace unless `is_loaded`. Must not be called on the event loop before that.

        Raises Draining once the server closes: nobody would close what is loaded then.
        """
        if self._market is None:
            with self._loading:
                if self._market is None:
                    if self._closing.is_set():
                        raise Draining
                    self._market = self._load()
                    if self._is_open:
                        self._begin(lambda: False)
        return self._market

    def open(self, is_busy: Callable[[], bool] = lambda: False) -> None:
        """Starts a thread that imports the marketplace and migrates its tables, now or when it is asked for, and
        returns at once.

        While `is_busy`, the thread waits a few seconds more. A request that needs the marketplace never waits for that.
        """
        if self._at_start:
            self._begin(is_busy)
            return
        with self._loading:
            self._is_open = True
            if self._market:  # somebody has read the description of the app before
                self._begin(is_busy)

    def _begin(self, is_busy: Callable[[], bool]) -> None:
        self._opener = threading.Thread(target=lambda: self._open(is_busy), name="marketplace")
        self._opener.start()

    def close(self) -> None:
        """Waits for an import that has begun."""
        self._closing.set()
        if self._opener:
            self._opener.join()
        with self._loading:
            self._is_open = False
            if self._market:
                self._market.close()

    def _open(self, is_busy: Callable[[], bool]) -> None:
        for _ in range(round(_MAX_START_DELAY_SECONDS / _START_DELAY_SECONDS)):
            if self._closing.wait(_START_DELAY_SECONDS):
                return
            if not is_busy():
                break
        try:
            self.market.open()
        except Draining:  # the server has begun to close meanwhile
            return
        except Exception as fault:
            log_exception("the marketplace cannot be opened", fault, "-")

    def _load(self) -> "Market":
        market, router = self._make()
        self._app.include_router(router, prefix=PREFIX)  # last, as after a failure all of this is retried
        exempt_imported_objects()
        return market


class AppWithMarketplace(FastAPI):
    """The OpenAPI description includes the routes of the marketplace, even before the first request to one.

    `openapi` must not be called on the event loop, as it may import the marketplace.
    """

    # FastAPI silences warnings while it describes routes, which is not safe in two threads at once.
    _describing = threading.Lock()
    _described: dict[str, Any] | None = None

    def openapi(self) -> dict[str, Any]:
        _ = self.state.marketplace.market
        with self._describing:
            description = super().openapi()
            if description is not self._described:  # made anew after a change of the routes
                self._described = describe_errors(description)
            return description


class LazyMarketplaceMiddleware:
    """Delays requests that need the marketplace until it is imported: those below /api, and paths that begin with
    one of `also_for`. Other requests pass at once."""

    def __init__(self, app: ASGIApp, *, marketplace: LazyMarketplace, also_for: Sequence[str] = ()) -> None:
        self.app = app
        self._marketplace = marketplace
        self._also_for = tuple(also_for)
        self._import_lock = asyncio.Lock()  # so that waiting requests occupy one thread and not the whole pool

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = get_route_path(scope) if scope["type"] == "http" else ""
        if path.startswith((f"{PREFIX}/", *self._also_for)) and not self._marketplace.is_loaded:
            async with self._import_lock:
                await run_in_threadpool(lambda: self._marketplace.market)
        await self.app(scope, receive, send)
