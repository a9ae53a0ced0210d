"""The catalogue for the MCP server: who may call its tools, and as whom."""

from collections.abc import Sequence
from dataclasses import replace

from fastapi import Request
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool

from tis.database.errors import DatabaseUnavailable
from tis.errors import Unauthenticated
from tis.marketplace.assistant.buying_tools import buying_tools
from tis.marketplace.assistant.catalogue_tools import catalogue_tools
from tis.marketplace.assistant.viewers import Preferences, Viewer, viewer_of
from tis.marketplace.context import MarketServices, bearer_token
from tis.marketplace.kit.open_mode import require_this_computer
from tis.marketplace.products.delivery import language_of
from tis.marketplace.rates import count_request
from tis.mcp_client.tool_types import LocalTool, McpTool


class RejectedToken(Unauthenticated):
    @property
    def headers(self) -> dict[str, str]:
        return {"WWW-Authenticate": 'Bearer error="invalid_token"'}


class CatalogueAccess:
    """An `McpAccess`. Rights and place come from the token, in the transaction of each call."""

    def __init__(self, market: MarketServices, *, with_buying: bool = False) -> None:
        """`with_buying`: who is signed in can also hold products, and read the own orders."""
        self._market, self._with_buying = market, with_buying

    async def authorize(self, request: Request) -> None:
        if self._market.rules.is_open:
            require_this_computer(request, self._market.rules.origins)
        token = bearer_token(request)
        if token is None:
            return
        try:
            await run_in_threadpool(self._check, token)
        except Unauthenticated as error:
            raise RejectedToken(f"{error.message} Without a token you search as anybody.") from None
        except DatabaseUnavailable:
            pass  # the list of tools needs no database, and calls check the token again

    async def count_call(self, request: Request) -> None:
        await count_request(request, "searches")

    async def list_tools(self, request: Request) -> Sequence[McpTool]:
        try:
            categories = await run_in_threadpool(self._categories)
        except DatabaseUnavailable:
            categories = []
        return [one.tool for one in self._tools(request, categories)]

    async def find_tool(self, request: Request, name: str) -> LocalTool | None:
        return next((one for one in self._tools(request) if one.tool.name == name), None)

    def _tools(self, request: Request, categories: Sequence[str] = ()) -> list[LocalTool]:
        token, language = bearer_token(request), language_of(request.headers.get("accept-language"))

        def viewer(session: Session) -> Viewer:
            who = viewer_of(session, self._market.authenticate(session, token).user_id, language)
            # A client could not say in its answer that they were used.
            return replace(who, preferences=Preferences())

        address = self._market.rules.public_url.rstrip("/")
        tools = catalogue_tools(self._market, viewer, categories, pictures_at=address)
        if token is not None and self._with_buying:
            tools += buying_tools(self._market, token, lambda: count_request(request, "reservations"))
        return tools

    def _check(self, token: str) -> None:
        with self._market.reading() as session:
            self._market.authenticate(session, token)

    def _categories(self) -> list[str]:
        with self._market.reading() as session:
            return sorted(self._market.search.vocabulary(session).names)
