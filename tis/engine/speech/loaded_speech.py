"""A model that hears and is ready, and what it makes of windows."""

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from tis.admission.ticket import Ticket
from tis.engine.models.loaded_model import LoadedWeights
from tis.engine.models.model_slot import ModelSlot
from tis.engine.speech.heard import HeardWindow, HearingOptions, SpeechDescription, SpeechWindow
from tis.engine.speech.speech_request import PreparedWindow, SpeechRequest, WindowTokens
from tis.engine.threads import Bridge
from tis.errors import BadRequest
from tis.observability.model_metrics import HEARD_SECONDS

_SILENT = 1e-4  # the largest sample of a window in which nobody speaks: -80 dB


class SpeechText(Protocol):
    """Makes a `HeardWindow` of what the model wrote."""

    def heard(self, made: Any, window: PreparedWindow) -> HeardWindow: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSpeech(LoadedWeights):
    description: SpeechDescription
    features: Callable[[Any], Any]  # of samples, as numpy: what the first layer reads
    check: Callable[[HearingOptions], None]  # raises BadRequest
    text: SpeechText
    num_prompt_tokens: int  # at most


class HeardWindows:
    """Hears windows with the models of this machine. All methods run on the event loop."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge

    async def hear(
        self, slot: ModelSlot, loaded: LoadedSpeech, window: SpeechWindow, ticket: Ticket | None, *, is_begun: bool
    ) -> HeardWindow:
        loaded.check(window.options)
        prepared = await self._bridge.in_vision_pool(lambda: _prepare(loaded, window.samples, window.options))
        if prepared is None:
            return HeardWindow(window.options.language, (), 0)
        made = await self._compute(slot, loaded, prepared, ticket, is_begun=is_begun)
        HEARD_SECONDS.add(prepared.num_samples / loaded.description.sample_rate, slot.name)
        return await self._bridge.in_vision_pool(lambda: loaded.text.heard(made, prepared))

    async def detect_language(
        self, slot: ModelSlot, loaded: LoadedSpeech, samples: Any, ticket: Ticket | None, *, is_begun: bool
    ) -> str | None:
        languages = loaded.description.languages
        if len(languages) < 2:
            return next(iter(languages), None)
        prepared = await self._bridge.in_vision_pool(lambda: _prepare(loaded, samples, HearingOptions()))
        if prepared is None:
            return None
        only = replace(prepared, is_detected_only=True)
        made = await self._compute(slot, loaded, only, ticket, is_begun=is_begun)
        return made.language

    async def _compute(
        self, slot: ModelSlot, loaded: LoadedSpeech, window: PreparedWindow, ticket: Ticket | None, *, is_begun: bool
    ) -> WindowTokens:
        request = SpeechRequest(window, slot.drop_if_queued, ticket, is_begun=is_begun)
        if ticket and not ticket.has_answered:
            ticket.queue(loaded.num_prompt_tokens, is_resumed=is_begun)
        slot.submit(request)
        try:
            return await request.answer
        except asyncio.CancelledError:
            request.cancel()
            raise


def _prepare(loaded: LoadedSpeech, samples: Any, options: HearingOptions) -> PreparedWindow | None:
    """None if it is silent."""
    import numpy as np

    samples = np.ascontiguousarray(samples, dtype=np.float32)
    description = loaded.description
    longest = round(description.window_seconds * description.sample_rate)
    if samples.ndim != 1 or len(samples) > longest:
        raise ValueError(f"A window has one channel and at most {longest} samples.")
    if not np.isfinite(samples).all():
        raise BadRequest("The sound has samples that are no numbers.", param="file")
    if not len(samples) or float(np.abs(samples).max()) < _SILENT:
        return None
    digest = hashlib.blake2b(samples.tobytes(), digest_size=16).digest()
    return PreparedWindow(loaded.features(samples), digest, len(samples), options)
