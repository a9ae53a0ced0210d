"""The engine with an embedding model, and a reranker if one is named, for benchmarks without HTTP."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tis.cancellation import LoopCalls
from tis.engine.local_engine import EngineLimits, LocalEngine
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.loading import LoadOptions
from tis.engine.pooling.load_pooling import load_pooling
from tis.engine.threaded_pooling import ThreadedPooling


@contextmanager
def pooling_of(embedding: Path, reranker: Path | None = None) -> Iterator[ThreadedPooling]:
    entries = [CatalogueEntry("embedding", str(embedding), "embedding")]
    if reranker:
        entries.append(CatalogueEntry("reranker", str(reranker), "rerank"))
    engine = LocalEngine(entries, lambda entry, report: load_pooling(entry, LoadOptions(), report), EngineLimits())
    calls = LoopCalls()
    models = ThreadedPooling(engine, calls, "embedding", "reranker" if reranker else None)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="engine", daemon=True)
    thread.start()

    async def open_all() -> None:
        await engine.open(eager=True)
        calls.open()

    asyncio.run_coroutine_threadsafe(open_all(), loop).result()
    try:
        yield models
    finally:
        asyncio.run_coroutine_threadsafe(engine.close(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
