"""A TCP proxy between two parts of a cluster that does to their connections what networks do.

| | new connections | open connections |
|---|---|---|
| `slow` | late | each read is late, by a random time |
| `cut` | as before | some are reset |
| `refuse` | are refused | as before |
| `stall` | are accepted | nothing comes through until it heals, and then all of it |
| `black_hole` | are accepted | what is sent vanishes |
| `half_open` | are accepted | what is sent in one direction vanishes, the other one works |

A connection of which something has vanished is reset when the proxy heals: TCP delivers everything or breaks.
"""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random
from typing import Literal

from tests.serving import free_port

Direction = Literal["there", "back"]  # to the target, and from it
DIRECTIONS: Sequence[Direction] = ("there", "back")
_CHUNK_BYTES = 65536
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER of no time
_MAX_CONNECTIONS = 4096


class ChaosProxy:
    def __init__(self, target: int | Path, chance: Random) -> None:
        """`target`: a port on this machine, or a UNIX socket."""
        self.port = free_port()
        self.num_swallowed = 0  # bytes
        self._target = target
        self._chance = chance
        self._latency_seconds = self._jitter_seconds = 0.0
        self._swallowed: Sequence[Direction] = ()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._open: set[_ProxiedConnection] = set()
        self._serving: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def num_open(self) -> int:
        return len(self._open)

    async def open(self) -> None:
        self._serving = await asyncio.start_server(self._accept, "127.0.0.1", self.port, backlog=1024)

    async def close(self) -> None:
        self._stop_listening()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def slow(self, latency_seconds: float, jitter_seconds: float = 0.0) -> None:
        self._latency_seconds, self._jitter_seconds = latency_seconds, jitter_seconds

    def cut(self, share: float = 1.0) -> None:
        for connection in list(self._open):
            if self._chance.random() < share:
                connection.reset()

    def refuse(self) -> None:
        self._stop_listening()

    def stall(self) -> None:
        self._flowing.clear()

    def black_hole(self) -> None:
        self._swallowed = DIRECTIONS

    def half_open(self, swallowed: Direction) -> None:
        self._swallowed = (swallowed,)

    async def heal(self) -> None:
        """All but the latency is over."""
        self._swallowed = ()
        self._flowing.set()
        for connection in list(self._open):
            if connection.has_lost_bytes:
                connection.reset()
        if self._serving is None:
            await self.open()

    def _stop_listening(self) -> None:
        if self._serving:
            self._serving.close()
            self._serving = None

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        connection = _ProxiedConnection(writer)
        self._open.add(connection)
        try:
            if len(self._open) <= _MAX_CONNECTIONS:
                await self._serve(connection, reader)
        except (OSError, asyncio.CancelledError):
            pass  # a task of asyncio's own: nobody waits for what it raises
        finally:
            self._open.discard(connection)
            self._tasks.discard(task)
            connection.reset()

    async def _serve(self, connection: "_ProxiedConnection", reader: asyncio.StreamReader) -> None:
        if isinstance(self._target, Path):
            from_target, to_target = await asyncio.open_unix_connection(self._target)
        else:
            from_target, to_target = await asyncio.open_connection("127.0.0.1", self._target)
        connection.to_target = to_target
        async with asyncio.TaskGroup() as pumps:
            pumps.create_task(self._pump(connection, reader, to_target, "there"))
            pumps.create_task(self._pump(connection, from_target, connection.to_client, "back"))

    async def _pump(
        self,
        connection: "_ProxiedConnection",
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        direction: Direction,
    ) -> None:
        try:
            while data := await source.read(_CHUNK_BYTES):
                if delay := self._latency_seconds + self._chance.random() * self._jitter_seconds:
                    await asyncio.sleep(delay)
                await self._flowing.wait()
                if direction in self._swallowed:
                    connection.has_lost_bytes = True
                    self.num_swallowed += len(data)
                elif sink.is_closing():
                    return
                else:
                    sink.write(data)
                    await sink.drain()
            await self._flowing.wait()
            if direction in self._swallowed:
                connection.has_lost_bytes = True  # an end vanishes as bytes do
            elif not (connection.has_lost_bytes or sink.is_closing()):
                sink.write_eof()
        except OSError:
            connection.reset()


class _ProxiedConnection:
    def __init__(self, to_client: asyncio.StreamWriter) -> None:
        self.to_client = to_client
        self.to_target: asyncio.StreamWriter | None = None
        self.has_lost_bytes = False

    def reset(self) -> None:
        for writer in (self.to_client, self.to_target):
            if writer is None or writer.transport.is_closing():
                continue
            opened: socket.socket | None = writer.get_extra_info("socket")
            if opened and opened.family != socket.AF_UNIX:
                with suppress(OSError):
                    opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            writer.transport.abort()


@asynccontextmanager
async def proxied(target: int | Path, chance: Random) -> AsyncIterator[ChaosProxy]:
    proxy = ChaosProxy(target, chance)
    await proxy.open()
    try:
        yield proxy
    finally:
        await proxy.close()
