"""An McpClient for one test, and helpers for operations that must fail."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tis.mcp_client.client import McpClient
from tis.mcp_client.errors import McpOperationFailed
from tis.mcp_client.limits import McpLimits
from tis.mcp_client.tool_types import McpServer

CLIENT_ARGUMENTS = {"resolve", "dial", "certificates"}


@asynccontextmanager
async def open_mcp_client(**options: Any) -> AsyncIterator[McpClient]:
    """`options` are fields of McpLimits, or keyword arguments of McpClient."""
    arguments = {name: options.pop(name) for name in CLIENT_ARGUMENTS & set(options)}
    yield McpClient(McpLimits(**options), **arguments)


async def list_failure(url: str, **options: Any) -> McpOperationFailed:
    async with open_mcp_client(**options) as client:
        with pytest.raises(McpOperationFailed) as raised:
            await client.list_tools(McpServer(url))
    return raised.value


async def call_failure(url: str, **options: Any) -> McpOperationFailed:
    async with open_mcp_client(**options) as client:
        with pytest.raises(McpOperationFailed) as raised:
            await client.call(McpServer(url), "look", {})
    return raised.value
