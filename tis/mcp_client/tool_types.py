"""The types of the MCP client's interface: a server, one of its tools, and the result of a call."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class McpServer:
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)  # secrets: not in log lines or tracebacks


@dataclass(frozen=True, slots=True)
class McpTool:
    name: str
    description: str | None
    input_schema: dict[str, Any]
    annotations: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class McpToolResult:
    text: str
    is_error: bool  # as the tool itself reports it


@dataclass(frozen=True, slots=True)
class LocalTool:
    """A tool of this process, with the interface of one of an MCP server. `call` never raises for bad arguments."""

    tool: McpTool
    call: Callable[[Mapping[str, Any]], Awaitable[McpToolResult]]
