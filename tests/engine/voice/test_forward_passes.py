"""A sentence of many forward passes may take its time, a pass that hangs is seen, and who leaves ends with a pass."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.engine.voice.models import save_csm
from tis.engine.local_engine import EngineLimits, LocalEngine
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.loading import LoadOptions
from tis.engine.voice.load_voice import load_voice
from tis.engine.voice.spoken import SentenceToSay

pytestmark = [pytest.mark.model, pytest.mark.anyio]
STALL_SECONDS = 1.0


class Passes:
    number = 0
    seconds = 0.012

    def made(self, *given: Any) -> None:
        self.number += 1
        time.sleep(self.seconds)


@asynccontextmanager
async def speaking(folder: Path) -> AsyncIterator[tuple[LocalEngine, SentenceToSay, Any]]:
    """A CSM, and the part of it that makes the most passes."""
    save_csm(folder)
    engine = LocalEngine(
        [CatalogueEntry("mouth", str(folder), "speech")],
        lambda entry, report: load_voice(entry, LoadOptions(device_map="cpu"), report),
        EngineLimits(stall_seconds=STALL_SECONDS),
    )
    await engine.open()
    try:
        sentence = SentenceToSay("halo", "0")
        await engine.say("mouth", sentence)  # the first step may take longer
        loaded: Any = engine.slots["mouth"].loaded
        yield engine, sentence, loaded.model._model.depth_decoder
    finally:
        await engine.close()


async def test_a_step_of_many_passes(tmp_path: Path) -> None:
    """One load for three facts: it may take long, who leaves ends it with a pass, and a pass that hangs is seen."""
    async with speaking(tmp_path) as (engine, sentence, busiest):
        wanted = await engine.say("mouth", sentence)
        passes, begun, ends = Passes(), threading.Event(), threading.Event()

        busiest.register_forward_hook(passes.made)
        began = time.monotonic()
        assert (await engine.say("mouth", sentence) == wanted).all()
        assert time.monotonic() - began > STALL_SECONDS and engine.loss is None
        of_a_sentence, passes.number = passes.number, 0

        busiest.register_forward_hook(lambda *given: begun.set())
        saying = asyncio.ensure_future(engine.say("mouth", sentence))
        await asyncio.to_thread(begun.wait, 10)
        saying.cancel()
        await asyncio.wait([saying])
        passes.seconds = 0
        assert (await engine.say("mouth", sentence) == wanted).all()
        assert of_a_sentence < passes.number < of_a_sentence * 1.5

        busiest.register_forward_hook(lambda *given: ends.wait(20) and None)
        saying = asyncio.ensure_future(engine.say("mouth", sentence))
        try:
            reason = await asyncio.wait_for(engine.until_lost(), 15)
            assert "A step of mouth takes longer than 1 s" in reason
        finally:
            ends.set()
            await asyncio.wait([saying])
