"""ToolServer with tools that fail, hang, or come late."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI, Request

from tis.http.error_handlers import UnhandledErrorMiddleware, install_error_handlers
from tis.http.origins import AllowedOrigins
from tis.mcp_client.tool_types import LocalTool, McpTool, McpToolResult
from tis.mcp_server.endpoint import router
from tis.mcp_server.server import ToolServer
from tis.observability.request_log import RequestLogMiddleware

pytestmark = pytest.mark.anyio
Call = Callable[[Mapping[str, Any]], Awaitable[McpToolResult]]
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "dice", "arguments": {"sides": 6}}}


class DiceAccess:
    """One tool, for anybody."""

    def __init__(self, call: Call) -> None:
        self._dice = LocalTool(McpTool("dice", None, {"type": "object"}), call)

    async def authorize(self, request: Request) -> None: ...

    async def count_call(self, request: Request) -> None: ...

    async def list_tools(self, request: Request) -> Sequence[McpTool]:
        if "Broken" in request.headers:
            raise ZeroDivisionError
        return [self._dice.tool]

    async def find_tool(self, request: Request, name: str) -> LocalTool | None:
        return self._dice


@asynccontextmanager
async def serving(call: Call, failures: int = 0) -> AsyncIterator[httpx2.AsyncClient]:
    """`failures`: how often the import fails before it succeeds."""
    left = [ImportError("a broken installation")] * failures

    def make_access() -> DiceAccess:
        if left:
            raise left.pop()
        return DiceAccess(call)

    app = FastAPI(openapi_url=None)
    server = app.state.mcp_server = ToolServer(make_access, AllowedOrigins(()), "1", call_seconds=0.01)
    app.include_router(router)
    install_error_handlers(app)
    app.add_middleware(UnhandledErrorMiddleware)
    app.add_middleware(RequestLogMiddleware)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://test", timeout=30) as client:
        yield client
    await server.close()


async def roll(arguments: Mapping[str, Any]) -> McpToolResult:
    return McpToolResult(json.dumps(dict(arguments)), is_error=False)


async def fail(arguments: Mapping[str, Any]) -> McpToolResult:
    raise ZeroDivisionError("a secret of the server")


async def hang(arguments: Mapping[str, Any]) -> McpToolResult:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28"])
async def test_a_tool_that_fails_names_the_request_and_not_the_fault(version: str) -> None:
    client_info = {"io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": {}}
    message = {**CALL, "params": {"name": "dice", "arguments": {}, "_meta": client_info}}
    headers = {"MCP-Protocol-Version": version, "Mcp-Method": "tools/call", "Mcp-Name": "dice"}
    async with serving(fail) as client:
        answer = await client.post("/mcp", json=message, headers=headers)
        result = answer.json()["result"]
        assert result["isError"] and answer.headers["x-request-id"] in result["content"][0]["text"]
        assert "secret" not in answer.text


async def test_a_list_that_fails_names_the_request(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(roll) as client:
        answer = await client.post("/mcp", json=LIST, headers={"Broken": "1"})
    assert answer.json()["error"]["code"] == -32603
    assert answer.headers["x-request-id"] in answer.json()["error"]["message"] and "ZeroDivisionError" in caplog.text


async def test_a_tool_that_hangs_is_given_up() -> None:
    async with serving(hang) as client:
        result = (await client.post("/mcp", json=CALL)).json()["result"]
    assert result["isError"] and "longer than 0.01 s" in result["content"][0]["text"]


async def test_an_import_that_failed_is_tried_again() -> None:
    async with serving(roll, failures=1) as client:
        failed = await client.post("/mcp", json=PING)
        assert failed.status_code == 500 and failed.json()["error"]["code"] == -32603
        assert (await client.post("/mcp", json=CALL)).json()["result"]["content"][0]["text"] == '{"sides": 6}'


async def test_requests_at_the_same_time_do_not_mix() -> None:
    async with serving(roll) as client:
        sides = range(2, 22)
        calls = [{**CALL, "params": {"name": "dice", "arguments": {"sides": one}}} for one in sides]
        answers = await asyncio.gather(*(client.post("/mcp", json=call) for call in calls))
    texts = [answer.json()["result"]["content"][0]["text"] for answer in answers]
    assert texts == [json.dumps({"sides": one}) for one in sides]


async def test_a_server_that_nobody_asked_closes() -> None:
    async with serving(roll):
        pass
