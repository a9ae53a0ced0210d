"""Cuts connections whose client takes nothing. A client that reads slowly, a byte now and then, stays.

The buffer of such a connection is full, so it holds the events in it, a reader of a session and a socket. ASGI has no
way to abort a connection: this uses the objects behind uvicorn's `send`, and does nothing under another server.
"""

import asyncio
import struct
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.types import Message, Send

from tis.observability.metrics import SLOW_READERS_CUT

if sys.platform == "linux":
    import fcntl

    _TIOCOUTQ = 0x5411

    def _num_in_kernel(connection: Any) -> int:
        """Bytes that the kernel has and the client has not acknowledged."""
        try:
            [count] = struct.unpack("i", fcntl.ioctl(connection.fileno(), _TIOCOUTQ, b"\0" * 4))
        except OSError:
            return 0
        return int(count)

else:

    def _num_in_kernel(connection: Any) -> int:
        return 0


def cut_slow_reader(send: Send, seconds: float) -> Send:
    cycle: Any = getattr(send, "__self__", None)
    if not (hasattr(cycle, "flow") and hasattr(cycle, "transport")):
        return send
    flow, transport = cycle.flow, cycle.transport

    async def watched(message: Message) -> None:
        if flow.write_paused and not await becomes_writable(flow.drain, lambda: _num_unread(transport), seconds):
            SLOW_READERS_CUT.inc()
            transport.abort()  # `close` would wait until the client has read the rest
        await send(message)

    return watched


def _num_unread(transport: asyncio.Transport) -> int:
    return transport.get_write_buffer_size() + _num_in_kernel(transport.get_extra_info("socket"))


async def becomes_writable(
    drain: Callable[[], Awaitable[object]], num_unread: Callable[[], int], seconds: float
) -> bool:
    """False once the client has taken nothing for so long. Nothing is written meanwhile: `num_unread` only falls."""
    while True:
        before = num_unread()
        try:
            async with asyncio.timeout(seconds):
                await drain()
            return True
        except TimeoutError:
            if num_unread() >= before:
                return False
