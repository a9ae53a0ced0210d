"""McpClient lists the tools of MCP servers and calls them. Every operation ends within the timeout."""

import asyncio
import importlib
import logging
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from tis.mcp_client.allowed_hosts import AllowedHosts, AllowedUrl
from tis.mcp_client.errors import McpOperationFailed
from tis.mcp_client.limits import McpLimits
from tis.mcp_client.tool_types import McpServer, McpTool, McpToolResult
from tis.network.dialling import Dial, Dialler, dial_as_checked
from tis.network.resolver import Resolve, resolve_name

if TYPE_CHECKING:
    from tis.mcp_client.connection import McpConnection


class McpClient:
    """The keyword arguments are for tests: another resolver, dialler and certificates."""

    def __init__(
        self,
        limits: McpLimits,
        *,
        resolve: Resolve = resolve_name,
        dial: Dial = dial_as_checked,
        certificates: ssl.SSLContext | None = None,
    ) -> None:
        self.limits = limits
        self._hosts = AllowedHosts(limits.allowed_hosts)
        self._dialler = Dialler(resolve=resolve, dial=dial, certificates=certificates)
        self._slots = asyncio.Semaphore(limits.max_connections)
        self._connection_class: type[McpConnection] | None = None

    def check(self, url: str) -> AllowedUrl:
        """Raises BadRequest. Does not touch the network: the host name is resolved and checked at every connect."""
        return self._hosts.check(url)

    async def list_tools(
        self, server: McpServer, is_wanted: Callable[[McpTool], bool] = lambda tool: True
    ) -> list[McpTool]:
        """Raises McpOperationFailed."""
        async with self._slot():
            return await (await self._new_connection(server)).list_tools(is_wanted)

    async def call(self, server: McpServer, name: str, arguments: Mapping[str, Any]) -> McpToolResult:
        """Never retries. Raises McpOperationFailed, after which the call may or may not have been carried out."""
        async with self._slot():
            return await (await self._new_connection(server)).call(name, arguments)

    @asynccontextmanager
    async def _slot(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self.limits.timeout_seconds):
                await self._slots.acquire()
        except TimeoutError:
            message = f"This server has {self.limits.max_connections} connections to MCP servers already. Retry later."
            raise McpOperationFailed(message, "http", 503) from None
        try:
            yield
        finally:
            self._slots.release()

    async def _new_connection(self, server: McpServer) -> "McpConnection":
        allowed = self.check(server.url)
        if self._connection_class is None:
            self._connection_class = await asyncio.to_thread(_import_connection_class)
        return self._connection_class(allowed, server, self.limits, self._dialler)


def _import_connection_class() -> "type[McpConnection]":
    """Imported at the first use: the MCP SDK takes a second to import."""
    for name in ("mcp", "client", "httpx2", "httpcore2"):
        # These loggers write what servers sent, with tracebacks, and whole URLs. McpConnection logs failures itself.
        logging.getLogger(name).setLevel(logging.CRITICAL)
    connection_class: type[McpConnection] = importlib.import_module("tis.mcp_client.connection").McpConnection
    return connection_class
