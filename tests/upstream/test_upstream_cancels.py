"""An answer of an upstream that is cancelled before anything of it has run."""

import asyncio
import threading
from pathlib import Path

import pytest

from tests.upstream.gateway import Send, scripted, write_catalogue
from tis.engine.models.catalogue import read_catalogue
from tis.engine.prompt import ChatPrompt
from tis.upstream.upstream_engine import UpstreamEngine, UpstreamLimits


@pytest.mark.anyio
async def test_it_ends_and_gives_its_place_back(tmp_path: Path) -> None:
    is_over = threading.Event()

    def say_nothing(send: Send) -> None:
        is_over.wait(30)

    with scripted(say_nothing) as upstream:
        path = write_catalogue(tmp_path, [upstream.url], upstream_kind="openai")
        engine = UpstreamEngine(read_catalogue(path), {}, UpstreamLimits(max_running=1))
        await engine.open()
        try:
            for _ in range(3):
                prepared = await engine.prepare("far", ChatPrompt([{"role": "user", "content": "Halo"}]), {})
                answer = engine.submit(prepared)
                answer.cancel()
                async with asyncio.timeout(10):
                    assert [piece.finish async for piece in answer] == ["cancelled"]
            assert engine.statuses[0].num_running == 0
        finally:
            is_over.set()
            await engine.close()
