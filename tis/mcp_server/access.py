"""What the MCP server asks of the package that has the tools."""

from collections.abc import Sequence
from typing import Protocol

from fastapi import Request

from tis.mcp_client.tool_types import LocalTool, McpTool


class McpAccess(Protocol):
    async def authorize(self, request: Request) -> None:
        """Raises Unauthenticated or Forbidden. It may pass a token that it cannot check now: calls check it again."""
        ...

    async def count_call(self, request: Request) -> None:
        """Raises RateLimitExceeded."""
        ...

    async def list_tools(self, request: Request) -> Sequence[McpTool]: ...

    async def find_tool(self, request: Request, name: str) -> LocalTool | None:
        """The tool as this caller may use it."""
        ...
