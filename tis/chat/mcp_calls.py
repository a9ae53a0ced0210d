"""Makes the calls of MCP tools that the model asks for, each of them at most once, whatever happens to this process.

Their errors are OpenAI's error objects for clients, and text for the model.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from tis.cancellation import Cancelled, race_cancel
from tis.chat.parts import ServerCall
from tis.engine.errors import GenerationInterrupted
from tis.mcp_client.errors import McpDependencyFailed, McpOperationFailed
from tis.mcp_client.limits import McpLimits
from tis.mcp_client.requested_server import RequestedServer
from tis.mcp_client.tool_types import McpServer, McpTool, McpToolResult
from tis.mcp_client.toolbox import Toolbox

T = TypeVar("T")
McpCallError = dict[str, Any]

INTERRUPTED = "The server was restarted during this call. It may have run; it is not repeated."
_NOT_SAVED = "The call was not made, because the server could not save its start and a call must not run twice."
_CANCELLED = "The answer was cancelled during this call."
_INVALID_ARGUMENTS = "The call was not made: its arguments are not a JSON object."
_CALL_LIMIT = "The call was not made: the answer has reached its limit of calls."
_SERVER_ERROR_CODE = -32000  # JSON-RPC reserves it for implementations


class ToolServers(Protocol):
    """Lists and calls tools: `McpClient`, or tools of this process."""

    @property
    def limits(self) -> McpLimits: ...

    async def list_tools(self, server: McpServer, is_wanted: Callable[[McpTool], bool]) -> Sequence[McpTool]: ...

    async def call(self, server: McpServer, name: str, arguments: Mapping[str, Any]) -> McpToolResult: ...


class McpCaller:
    def __init__(
        self, mcp_client: ToolServers, toolbox: Toolbox, commit: Callable[[], Awaitable[bool]], max_calls: int | None
    ) -> None:
        self.limits = mcp_client.limits
        self._mcp_client = mcp_client
        self._toolbox = toolbox
        self._commit = commit
        limit = self.limits.max_calls
        self._max_calls = limit if max_calls is None else min(limit, max_calls)
        self._cancelled = asyncio.Event()

    def may_call(self, num_calls: int) -> bool:
        return num_calls < self._max_calls

    def cancel(self) -> None:
        self._cancelled.set()

    async def list_tools(self, server: RequestedServer) -> Sequence[McpTool]:
        """Raises McpOperationFailed."""
        _require_headers(server)
        return await self._unless_cancelled(self._mcp_client.list_tools(server.server, server.wants))

    def refusal(self, call: ServerCall, num_calls: int) -> McpCallError | None:
        """Why a call is not even begun."""
        if not self.may_call(num_calls):
            return protocol_error(_CALL_LIMIT)
        if _arguments(call) is None:
            return protocol_error(_INVALID_ARGUMENTS)
        if not self._toolbox.knows(call.label, call.name):
            return protocol_error(f"There is no tool {call.name[:80]!r} on this server.")
        _require_headers(self._toolbox.servers[call.label])
        return None

    async def make(self, call: ServerCall) -> tuple[str | None, McpCallError | None]:
        """Returns the output or the error. Calls nothing before the record that the call begins is on disk."""
        if not await self._commit():
            return None, protocol_error(_NOT_SAVED)
        server = self._toolbox.servers[call.label].server
        try:
            result = await self._unless_cancelled(self._mcp_client.call(server, call.name, _arguments(call) or {}))
        except McpOperationFailed as failed:
            kind = "http_error" if failed.kind == "http" else "mcp_protocol_error"
            return None, {"type": kind, "code": failed.code, "message": failed.message}
        return (None, _tool_error(result.text)) if result.is_error else (result.text, None)

    async def _unless_cancelled(self, operation: Coroutine[Any, Any, T]) -> T:
        try:
            return await race_cancel(self._cancelled.wait(), operation)
        except Cancelled:
            raise McpOperationFailed(_CANCELLED) from None


def list_failed(server: RequestedServer, failed: McpOperationFailed) -> McpDependencyFailed:
    return McpDependencyFailed(f"The tools of the MCP server {server.label!r} could not be listed. {failed.message}")


def protocol_error(message: str) -> McpCallError:
    return {"type": "mcp_protocol_error", "code": _SERVER_ERROR_CODE, "message": message}


def text_for_model(output: str | None, error: Any) -> str:
    """`error` may be any JSON, because clients send it back with the history."""
    if output is not None:
        return output
    if isinstance(error, dict):
        message = error.get("message") or "\n".join(_texts(error.get("content")))
        return f"Error: {message}"
    return f"Error: {error or 'the call was not made.'}"


def _tool_error(text: str) -> McpCallError:
    return {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": text}]}


def _texts(content: Any) -> Iterator[str]:
    for block in content if isinstance(content, list) else ():
        yield str(block["text"]) if isinstance(block, dict) and "text" in block else json.dumps(block)


def _require_headers(server: RequestedServer) -> None:
    if server.lacks_headers:
        raise GenerationInterrupted(
            f"The answer cannot be resumed: the server was restarted, and does not store the headers for MCP server "
            f"{server.label!r}. Send the request again."
        )


def _arguments(call: ServerCall) -> dict[str, Any] | None:
    try:
        given = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return None
    return given if isinstance(given, dict) else None
