"""A sentence in the engine, and the future that its reader waits for."""

import asyncio
import math
import threading
from collections.abc import Callable
from typing import Any

from tis.admission.ticket import Ticket
from tis.engine.request import Delivery, QueuedRequest
from tis.engine.request_timing import RequestTiming
from tis.engine.voice.spoken import SentenceToSay
from tis.errors import ServiceError
from tis.observability.model_metrics import SPOKEN_SECONDS
from tis.observability.request_log import current_request_id

TOKENS_PER_SECOND = 50  # of sound, in metrics and usage, as those of transcriptions are counted


def num_audio_tokens(num_samples: int, sample_rate: int) -> int:
    return math.ceil(num_samples * TOKENS_PER_SECOND / sample_rate)


class SpeakingRequest:
    """Made on the event loop, which owns its future; the model's thread has the rest."""

    is_resumed = False
    model_name = ""
    num_prompt_tokens = 0

    def __init__(
        self,
        sentence: SentenceToSay,
        sample_rate: int,
        on_cancel: Callable[[QueuedRequest], None],
        ticket: Ticket | None,
        *,
        is_begun: bool = False,
    ) -> None:
        self.is_begun = is_begun
        self.label = current_request_id()  # for the log
        self.sentence = sentence
        self.owner = ticket.owner if ticket else ""
        self.owner_share = ticket.owner_share if ticket else 1.0
        self.timing = RequestTiming(ticket, is_continued=False)
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._sample_rate = sample_rate
        self._on_cancel = on_cancel
        self._cancelled = threading.Event()

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """The model's thread drops the request before its next sentence."""
        self._cancelled.set()
        self._on_cancel(self)

    def cancel_completions(self) -> list[Delivery]:
        """Nobody waits for it any more."""
        return []

    def receive(self, item: Any, now: float) -> None:
        """Called on the event loop, with samples in numpy or a ServiceError."""
        if self.answer.done():
            return
        if isinstance(item, ServiceError):
            self.timing.finished("error", item.code)
            self.answer.set_exception(item)
            return
        self.timing.tokens(num_audio_tokens(len(item), self._sample_rate), now, 0)
        self.timing.finished("stop")
        SPOKEN_SECONDS.add(len(item) / self._sample_rate, self.timing.model_name)
        self.answer.set_result(item)
