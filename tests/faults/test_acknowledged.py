"""Whatever happens to the file: after kill -9, a GET returns the bytes that were acknowledged, and nothing else.

Acknowledged is what the server showed while `/ready` said `durable`.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import httpx2
import pytest

from tests.faults.mortal_server import MortalServer, SharedServer, durability, post, store_errors, until
from tests.openai_api.test_chat import CHAT, said

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

PACED = "echo?tokens_per_second=200"
LINE = "All of this was shown, so all of this is there. "


class RawReader:
    """Keeps the bytes of a stream, and nothing but them."""

    def __init__(self, server: MortalServer, name: str) -> None:
        self._server = server
        self.name = name
        self.seen = b""

    async def read(self) -> bytes:
        """To the end of the stream, or of the server."""
        self.seen = b""
        try:
            async with httpx2.AsyncClient(base_url=self._server.url, timeout=30, verify=False) as http:
                async with http.stream("GET", f"/v1/stream/{self.name}") as answer:
                    assert answer.status_code == 200, await answer.aread()
                    async for some in answer.aiter_raw():
                        self.seen += some
        except httpx2.TransportError:
            pass
        return self.seen

    @property
    def whole_blocks(self) -> bytes:
        return self.seen[: self.seen.rfind(b"\n\n") + 2]


@asynccontextmanager
async def reading(server: MortalServer, name: str) -> AsyncIterator[RawReader]:
    """A running answer, and who reads it until the server is gone."""
    body = said(f"{name}: {LINE}", session_id=name, ignore_eos=True, max_tokens=400, stream=True)
    async with httpx2.AsyncClient(base_url=server.url, timeout=30, verify=False) as http:
        async with http.stream("POST", CHAT, json=body) as answer:
            assert answer.status_code == 200
    reader = RawReader(server, name)
    task = asyncio.create_task(reader.read())
    await until(lambda: reader.seen.count(b"\n\n") > 20, what="some blocks")
    yield reader
    await task


async def finished(server: MortalServer, name: str) -> RawReader:
    body = said(f"{name}: {LINE * 5}", session_id=name)
    assert (await post(server.url, CHAT, body)).status_code == 200
    reader = RawReader(server, name)
    await reader.read()
    return reader


def delete(path: Path) -> None:
    for part in path.parent.glob(f"{path.name}*"):
        part.unlink()


def overwrite(path: Path) -> None:
    """All of it; the log, which would mend it, is moved into it first."""
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with path.open("r+b") as damaged:
        damaged.write(b"This was a database, once upon a time. " * (path.stat().st_size // 39))


async def status_of(server: MortalServer, name: str) -> int:
    async with httpx2.AsyncClient(base_url=server.url, verify=False) as http:
        return (await http.get(f"/v1/stream/{name}")).status_code


async def require_the_same(server: MortalServer, *readers: RawReader) -> None:
    for reader in readers:
        again = await RawReader(server, reader.name).read()
        assert again.startswith(reader.whole_blocks) and again.endswith(b"data: [DONE]\n\n")


async def test_a_file_that_is_deleted_while_answers_run(shared: SharedServer) -> None:
    async with shared.running(MODEL_REPO_ID=PACED) as server:
        old = await finished(server, "deleted-old")
        async with reading(server, "deleted-running") as running:
            delete(server.sessions_path)

            async def is_restored() -> bool:
                return bool(await store_errors(server)) and await durability(server) == "durable"

            await until(is_restored, what="the store notices, and has caught up")
            new = await finished(server, "deleted-new")
            server.kill()
        await server.start()
        await require_the_same(server, old, new, running)


async def test_a_file_that_is_damaged_while_answers_run(shared: SharedServer) -> None:
    """Only the file had the answers of the process before: they are gone, and the server says so."""
    async with shared.running(MODEL_REPO_ID=PACED) as server:
        await finished(server, "damaged-old")
        server.kill()
        await server.start()
        async with reading(server, "damaged-running") as running:
            overwrite(server.sessions_path)

            async def is_restored() -> bool:
                return await status_of(server, "damaged-old") == 410 and await durability(server) == "durable"

            await until(is_restored, what="a reader meets the damage, and the store has caught up")
            new = await finished(server, "damaged-new")
            server.kill()
        await server.start()
        await require_the_same(server, new, running)
        assert await status_of(server, "damaged-old") == 410


async def test_a_disk_that_is_full_at_the_kill(shared: SharedServer) -> None:
    """What was shown while nothing could be stored is made again, from what was stored."""
    resource = pytest.importorskip("resource")
    async with shared.running(MODEL_REPO_ID=PACED) as server:
        old = await finished(server, "full-old")
        async with reading(server, "full-running") as running:
            shown = running.whole_blocks
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))

            async def is_degraded() -> bool:
                return await durability(server) == "degraded"

            await until(is_degraded)
            assert running.whole_blocks.startswith(shown)
            server.kill()
        await server.start()
        await require_the_same(server, old, running)


async def test_a_file_that_was_damaged_while_the_server_was_down(shared: SharedServer) -> None:
    async with shared.running(MODEL_REPO_ID=PACED) as server:
        await finished(server, "down-old")
        server.kill()
        overwrite(server.sessions_path)
        await server.start()
        assert await status_of(server, "down-old") == 404
        new = await finished(server, "down-new")
        server.kill()
        await server.start()
        await require_the_same(server, new)
