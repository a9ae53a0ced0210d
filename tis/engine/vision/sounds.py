"""What an official processor hears: the sampling rate, the longest and the shortest sound, the placeholder."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tis.engine.prompt import SOUND_RATE, Sound
from tis.errors import BadRequest

PROBE_SOUND = Sound(np.zeros(SOUND_RATE // 2, np.float32), "half a second of silence")
_MIN_SECONDS = 0.1  # shorter ones may have no token
_SLACK_SECONDS = 0.2  # of a file that its encoder has made a little longer; the processor cuts them
_USUAL_WINDOW_SECONDS = 30.0  # of an extractor that does not say
_MORE_SECONDS = 5  # than what may be the limit


def noises() -> list[Sound]:
    noise = np.random.default_rng(3)
    lengths = (SOUND_RATE * 7 // 10, SOUND_RATE * 4 // 10)
    return [
        Sound((0.1 * noise.standard_normal(length)).astype(np.float32), f"noise of {length} samples")
        for length in lengths
    ]


def placeholder_of_sounds(processor: Any, config: Any) -> int | None:
    """None: the processor takes no sounds."""
    if _extractor_of(processor) is None:
        return None
    tokens = (getattr(one, "audio_token_id", None) for one in (config, processor))
    return next((token for token in tokens if isinstance(token, int)), None)


class HeardSounds:
    def __init__(self, processor: Any) -> None:
        self._processor = processor
        self._extractor = _extractor_of(processor)
        self._max_seconds: float | None = None
        rate = getattr(self._extractor, "sampling_rate", SOUND_RATE)
        self.why_none = "" if rate == SOUND_RATE else f"it hears {rate} samples in a second"

    def find_limit(self, num_tokens: Callable[[Sound], int]) -> None:
        """A sound longer than the limit would have no more tokens, and be cut."""
        most = getattr(self._processor, "max_audio_len", None)
        if isinstance(most, int | float):
            self._max_seconds = most
            return
        seconds = getattr(self._extractor, "chunk_length", None)
        if not isinstance(seconds, int | float):
            seconds = _USUAL_WINDOW_SECONDS
        whole, longer = (num_tokens(_silence(length)) for length in (seconds, seconds + _MORE_SECONDS))
        self._max_seconds = seconds if whole == longer else None

    def check(self, sounds: Sequence[Sound]) -> None:
        """Refuses what a processor would cut without a word."""
        for sound in sounds:
            if sound.seconds < _MIN_SECONDS:
                raise BadRequest(
                    f"The audio is too short: {_MIN_SECONDS:g} seconds are the least.",
                    param="messages",
                    code="audio_too_short",
                )
            if self._max_seconds is not None and sound.seconds > self._max_seconds + _SLACK_SECONDS:
                raise BadRequest(
                    f"The audio is too long: this model hears at most {self._max_seconds:g} seconds of a recording.",
                    param="messages",
                    code="audio_too_long",
                )


def _silence(seconds: float) -> Sound:
    return Sound(np.zeros(round(SOUND_RATE * seconds), np.float32), f"{seconds} seconds of silence")


def _extractor_of(processor: Any) -> Any:
    return getattr(processor, "feature_extractor", None) or getattr(processor, "audio_processor", None)
