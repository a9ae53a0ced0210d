"""One connection to an MCP server, with the official SDK. Imported at the first use: the SDK takes a second."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx2
import mcp_types
from mcp import Client, MCPError
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client

from tis.mcp_client.allowed_hosts import AllowedUrl
from tis.mcp_client.errors import McpOperationFailed
from tis.mcp_client.limits import KIB, McpLimits
from tis.mcp_client.tool_types import McpServer, McpTool, McpToolResult
from tis.mcp_client.transport import CheckedBackend, LimitedTransport, ResponseRejected
from tis.network.dialling import Dialler
from tis.observability.spans import current_span

T = TypeVar("T")
_log = logging.getLogger("tis.mcp_client")
_MAX_NAME_CHARS = 128
_MAX_MESSAGE_CHARS = 500  # of an error message of the MCP server


class McpConnection:
    """Each operation connects, initializes a session, sends its requests and disconnects."""

    def __init__(self, allowed: AllowedUrl, server: McpServer, limits: McpLimits, dialler: Dialler) -> None:
        self._allowed = allowed
        self._server = server
        self._limits = limits
        self._dialler = dialler

    async def list_tools(self, is_wanted: Callable[[McpTool], bool]) -> list[McpTool]:
        return await self._run(lambda session: self._all_tools(session, is_wanted))

    async def call(self, name: str, arguments: Mapping[str, Any]) -> McpToolResult:
        request = mcp_types.CallToolRequest(
            params=mcp_types.CallToolRequestParams(name=name, arguments=dict(arguments))
        )
        # Not `call_tool`: that lists all tools again, and matches the result against regular expressions of the server.
        result = await self._run(lambda session: session.send_request(request, mcp_types.CallToolResult))
        # JSON can contain an unpaired surrogate, which cannot be encoded as UTF-8.
        text = "\n".join(_texts(result)).encode("utf-8", "replace").decode()
        if len(text.encode()) > self._limits.max_result_bytes:
            raise McpOperationFailed(f"The result is larger than {self._limits.max_result_bytes // KIB} KiB.")
        return McpToolResult(text, result.is_error)

    async def _all_tools(self, session: ClientSession, is_wanted: Callable[[McpTool], bool]) -> list[McpTool]:
        tools: dict[str, McpTool] = {}
        cursor: str | None = None
        for _ in range(self._limits.max_pages):
            page = await session.list_tools(params=mcp_types.PaginatedRequestParams(cursor=cursor) if cursor else None)
            for tool in filter(is_wanted, map(_mcp_tool, page.tools)):
                if 0 < len(tool.name) <= _MAX_NAME_CHARS:
                    tools.setdefault(tool.name, tool)
            if len(tools) > self._limits.max_tools:
                raise McpOperationFailed(
                    f"The server has more than {self._limits.max_tools} tools: choose with allowed_tools."
                )
            cursor = page.next_cursor
            if not cursor:
                return self._require_size(list(tools.values()))
        raise McpOperationFailed(f"The list of tools has more than {self._limits.max_pages} pages.")

    def _require_size(self, tools: list[McpTool]) -> list[McpTool]:
        size = sum(len(json.dumps([tool.description, tool.input_schema, tool.annotations])) for tool in tools)
        if size > self._limits.max_list_bytes:
            limit = self._limits.max_list_bytes // KIB
            raise McpOperationFailed(f"The list of tools is larger than {limit} KiB: choose with allowed_tools.")
        return tools

    async def _run(self, operation: Callable[[ClientSession], Awaitable[T]]) -> T:
        results: list[T] = []
        try:
            # The SDK puts the current span of OpenTelemetry into `_meta` of its messages.
            with current_span().attached():
                async with asyncio.timeout(self._limits.timeout_seconds), self._session() as session:
                    results.append(await operation(session))
        except Exception as error:  # a foreign server can make the SDK raise anything
            if not results:
                raise self._translate(error) from None
            # The result is here; that closing the session failed does not matter.
        return results[0]

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[ClientSession]:
        url, limits = self._allowed.url, self._limits
        tls = await self._dialler.trusted() if url.scheme == "https" else None
        backend = CheckedBackend(self._dialler, self._allowed, limits.timeout_seconds)
        headers = {**current_span().outgoing_headers, **self._server.headers, "Accept-Encoding": "identity"}
        async with (
            httpx2.AsyncClient(
                transport=LimitedTransport(backend, tls, limits.max_connection_bytes),
                headers=headers,
                timeout=None,  # `_run` limits the whole operation; a second limit of the same length would race it
                trust_env=False,
            ) as http,
            Client(
                streamable_http_client(
                    f"{url.scheme}://{url.authority}{url.target}",
                    http_client=http,
                    max_sse_event_size=limits.max_connection_bytes,
                ),
                cache=None,
                client_info=mcp_types.Implementation(name="transformers-inference-server", version="1"),
            ) as client,
        ):
            yield client.session

    def _translate(self, error: Exception) -> McpOperationFailed:
        leaves = list(_leaves(error))
        _log.info("an operation at an MCP server failed: %s", ", ".join(type(leaf).__name__ for leaf in leaves))
        for leaf in leaves:
            if isinstance(leaf, McpOperationFailed):
                return leaf
            if isinstance(leaf, ResponseRejected):
                return McpOperationFailed(f"It sent {leaf}.")
            # The SDK quotes a part of a response that it could not parse; that is not for clients.
            if isinstance(leaf, MCPError) and leaf.code != mcp_types.PARSE_ERROR:
                return McpOperationFailed(str(leaf.message)[:_MAX_MESSAGE_CHARS], "protocol", leaf.code)
        if any(isinstance(leaf, TimeoutError) for leaf in leaves):
            return McpOperationFailed(f"It did not answer within {self._limits.timeout_seconds:g} s.", "http", 504)
        # The same message for a refused address and for one that does not answer: it must not help to map a network.
        return McpOperationFailed("It could not be reached, or does not speak MCP.", "http", 502)


def _mcp_tool(tool: mcp_types.Tool) -> McpTool:
    annotations = tool.annotations.model_dump(by_alias=True, exclude_none=True) if tool.annotations else None
    return McpTool(tool.name, tool.description, tool.input_schema, annotations)


def _texts(result: mcp_types.CallToolResult) -> Iterator[str]:
    """The parts of a result that a model can read; other parts by their type."""
    for block in result.content:
        if isinstance(block, mcp_types.TextContent):
            yield block.text
        elif isinstance(block, mcp_types.EmbeddedResource) and isinstance(
            block.resource, mcp_types.TextResourceContents
        ):
            yield block.resource.text
        elif isinstance(block, mcp_types.ResourceLink):
            yield f"[{block.name}: {block.uri}]"
        else:
            yield f"[{block.type}]"
    if not result.content and result.structured_content is not None:
        yield json.dumps(result.structured_content, ensure_ascii=False)


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error
