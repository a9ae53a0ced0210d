"""A sentence in the engine, and how its sound counts."""

import math
from collections.abc import Callable
from typing import Any

from tis.admission.ticket import Ticket
from tis.engine.future_request import FutureRequest
from tis.engine.request import QueuedRequest
from tis.engine.request_timing import RequestTiming
from tis.engine.voice.spoken import SentenceToSay
from tis.observability.model_metrics import SPOKEN_SECONDS

TOKENS_PER_SECOND = 50  # of sound, in metrics and usage, as those of transcriptions are counted


def num_audio_tokens(num_samples: int, sample_rate: int) -> int:
    return math.ceil(num_samples * TOKENS_PER_SECOND / sample_rate)


class SpeakingRequest(FutureRequest[Any]):
    """Its answer is samples in numpy."""

    def __init__(
        self,
        sentence: SentenceToSay,
        sample_rate: int,
        on_cancel: Callable[[QueuedRequest], None],
        ticket: Ticket | None,
        *,
        is_begun: bool = False,
    ) -> None:
        super().__init__(on_cancel, ticket, is_begun=is_begun)
        self.sentence = sentence
        self._sample_rate = sample_rate

    def count(self, made: Any, now: float) -> None:
        count_sound(self.timing, len(made), self._sample_rate, now)


def count_sound(timing: RequestTiming, num_samples: int, sample_rate: int, now: float) -> None:
    timing.tokens(num_audio_tokens(num_samples, sample_rate), now, 0)
    SPOKEN_SECONDS.add(num_samples / sample_rate, timing.model_name)
