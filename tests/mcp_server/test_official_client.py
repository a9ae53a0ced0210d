"""The official MCP client, with the handshake of older clients (`legacy`) and without."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from tests.marketplace.search.conftest import BANDUNG
from tests.mcp_server.conftest import McpShop
from tis.mcp_client.client import McpClient
from tis.mcp_client.limits import McpLimits
from tis.mcp_client.tool_types import McpServer

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def connected(shop: McpShop, mode: str = "auto", token: str | None = None) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(shop.mcp_url, http_client=http), mode=mode) as client,
    ):
        yield client


def text_of(result: CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


async def call(client: Client, name: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(name, arguments)
    assert isinstance(result, CallToolResult) and not result.is_error
    return dict(json.loads(text_of(result)))


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_lists_the_tools_and_calls_each(mcp_shop: McpShop, mode: str) -> None:
    async with connected(mcp_shop, mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == ["search_catalog", "lookup_catalog", "compare_products"]
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools.values())
        assert "laptop" in tools["search_catalog"].input_schema["properties"]["category"]["enum"]
        found = await call(client, "search_catalog", text="laptop gaming di bawah 12 juta")
        assert found["total"] == 1 and found["products"][0]["id"] == mcp_shop.rinjani
        looked_up = await call(client, "lookup_catalog", ids=[mcp_shop.bromo, 10**9])
        assert looked_up["products"][0]["price"] == 7_000_000 and looked_up["not_found"] == [10**9]
        compared = await call(client, "compare_products", ids=[mcp_shop.rinjani, mcp_shop.bromo])
        assert compared["rows"][0] == {
            "field": "price", "label": "Harga", "values": [11_500_000, 7_000_000], "best": mcp_shop.bromo
        }  # fmt: skip


async def test_bad_arguments_are_an_error_that_the_model_can_read(mcp_shop: McpShop) -> None:
    async with connected(mcp_shop) as client:
        result = await client.call_tool("search_catalog", {"max_price": "cheap", "user_id": 7})
        assert isinstance(result, CallToolResult) and result.is_error
        assert "max_price: " in text_of(result) and "user_id: Extra inputs" in text_of(result)
        with pytest.raises(MCPError, match="Unknown tool: delete_catalog"):
            await client.call_tool("delete_catalog", {})


async def test_the_place_of_the_user_is_the_origin(mcp_shop: McpShop) -> None:
    token = mcp_shop.token(latitude=BANDUNG[0], longitude=BANDUNG[1])
    async with connected(mcp_shop, token=token) as client:
        [bromo] = (await call(client, "lookup_catalog", ids=[mcp_shop.bromo]))["products"]
    assert bromo["distance_km"] < 1 and bromo["fulfilment"]["suggestion"] == "pickup"
    async with connected(mcp_shop, token=mcp_shop.token(city="Jakarta")) as client:
        [bromo] = (await call(client, "lookup_catalog", ids=[mcp_shop.bromo]))["products"]
    assert 100 < bromo["distance_km"] < 130
    for other in (None, mcp_shop.supplier_token):
        async with connected(mcp_shop, token=other) as client:
            [bromo] = (await call(client, "lookup_catalog", ids=[mcp_shop.bromo]))["products"]
        assert "distance_km" not in bromo


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_bad_token_is_refused_and_nobody_is_anonymous_by_mistake(mcp_shop: McpShop, mode: str) -> None:
    with pytest.raises(Exception) as raised:
        async with connected(mcp_shop, mode, token="stale") as client:
            await client.list_tools()
    error: BaseException = raised.value
    while isinstance(error, BaseExceptionGroup):
        [error] = error.exceptions
    assert "no valid access token" in str(error)


async def test_goods_of_a_suspended_shop_do_not_exist(mcp_shop: McpShop) -> None:
    closed = mcp_shop.catalogue.shop("Solo")
    kettle = mcp_shop.catalogue.put("Teko Ajaib", shop=closed)
    async with connected(mcp_shop) as client:
        assert (await call(client, "search_catalog", text="teko ajaib"))["total"] == 1
        mcp_shop.catalogue.change_shop(closed, status="suspended")
        assert (await call(client, "search_catalog", text="teko ajaib"))["products"] == []
        assert await call(client, "lookup_catalog", ids=[kettle]) == {"products": [], "not_found": [kettle]}


async def test_our_own_client_can_use_it(mcp_shop: McpShop) -> None:
    client = McpClient(McpLimits(allowed_hosts=[mcp_shop.url.removeprefix("http://")]))
    server = McpServer(mcp_shop.mcp_url)
    assert len(await client.list_tools(server)) == 3
    result = await client.call(server, "lookup_catalog", {"ids": [mcp_shop.rinjani]})
    assert "Rinjani" in result.text and not result.is_error
