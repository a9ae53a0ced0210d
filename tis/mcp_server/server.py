"""ToolServer: the SDK's server, imported and started by the first request that needs it, closed with the app."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tis.http.origins import AllowedOrigins
from tis.mcp_server.access import McpAccess

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

_CALL_SECONDS = 30.0


class ToolServer:
    """`make_access` may import: it is called once, in a thread."""

    def __init__(
        self,
        make_access: Callable[[], McpAccess],
        origins: AllowedOrigins,
        version: str,
        *,
        call_seconds: float = _CALL_SECONDS,
    ) -> None:
        self.origins = origins
        self._make_access, self._version, self._call_seconds = make_access, version, call_seconds
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._started: asyncio.Future[tuple[McpAccess, StreamableHTTPSessionManager]] | None = None

    async def access(self) -> McpAccess:
        return (await self._parts())[0]

    async def answer(self, body: bytes) -> Response:
        """The SDK's response to a body that has been read."""
        _, manager = await self._parts()
        return SdkResponse(manager.handle_request, body)

    async def close(self) -> None:
        self._closing.set()
        if self._task:
            await self._task

    async def _parts(self) -> "tuple[McpAccess, StreamableHTTPSessionManager]":
        started = self._started
        if started is None or (started.done() and started.exception()):  # an import that failed is tried again
            started = self._started = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._run(started))
        return await asyncio.shield(started)

    async def _run(self, started: "asyncio.Future[tuple[McpAccess, StreamableHTTPSessionManager]]") -> None:
        """In a task of its own, as the SDK has to be closed by the task that opened it."""
        try:
            access, manager = await asyncio.to_thread(self._import)
        except Exception as fault:  # whoever waits gets it
            started.set_exception(fault)
            return
        async with manager.run():
            started.set_result((access, manager))
            await self._closing.wait()

    def _import(self) -> "tuple[McpAccess, StreamableHTTPSessionManager]":
        from tis.mcp_server.sdk_adapter import session_manager

        access = self._make_access()
        return access, session_manager(access, self._version, self._call_seconds)


class SdkResponse(Response):
    def __init__(self, handle: ASGIApp, request_body: bytes) -> None:
        super().__init__()
        self._handle, self._request_body = handle, request_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        unread: list[Message] = [{"type": "http.request", "body": self._request_body, "more_body": False}]

        async def receive_again() -> Message:
            return unread.pop() if unread else await receive()

        await self._handle(_accepting_all(scope), receive_again, send)


def _accepting_all(scope: Scope) -> Scope:
    """`endpoint` checked `Accept`; the SDK would refuse a request without it, with an empty body."""
    others = [(name, value) for name, value in scope["headers"] if name != b"accept"]
    return {**scope, "headers": [*others, (b"accept", b"application/json, text/event-stream")]}
