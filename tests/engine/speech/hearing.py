"""Runs windows through a loaded model without a server: what the model wrote, token by token."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.loading import LoadOptions
from tis.engine.request import deliver
from tis.engine.speech.heard import HearingOptions
from tis.engine.speech.load_speech import load_speech
from tis.engine.speech.loaded_speech import LoadedSpeech
from tis.engine.speech.speech_request import PreparedWindow, SpeechRequest

PLAIN = HearingOptions(language="id", temperatures=(0.0,))


def load(folder: Path, **options: Any) -> LoadedSpeech:
    entry = CatalogueEntry("ear", str(folder), "transcription")
    return load_speech(entry, LoadOptions(device_map="cpu", **options), lambda stage, progress: None)


def prepared(loaded: LoadedSpeech, samples: Any, options: HearingOptions = PLAIN) -> PreparedWindow:
    return PreparedWindow(loaded.features(samples), samples.tobytes(), len(samples), options)


def heard(
    loaded: LoadedSpeech,
    windows: Sequence[PreparedWindow],
    between: Callable[[int, Any, list[SpeechRequest]], None] = lambda step, runner, requests: None,
) -> list[Any]:
    """What each window gets, or the error. `between` is called after each step."""

    async def run() -> list[Any]:
        runner = loaded.new_runner()
        requests = [SpeechRequest(window, lambda request: None, None) for window in windows]
        waiting = list(requests)
        step = 0
        while waiting or runner.running:
            while waiting and runner.has_room:
                runner.admit(waiting.pop(0))
            runner.step(deliver)
            between(step, runner, requests)
            step += 1
        for request in requests:
            if not request.answer.done():
                request.answer.cancel()
        return await asyncio.gather(*(request.answer for request in requests), return_exceptions=True)

    return asyncio.run(run())
