"""A window in the engine: its sound as the model takes it, and the future that its reader waits for."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tis.admission.ticket import Ticket
from tis.engine.request import Delivery, QueuedRequest
from tis.engine.request_timing import RequestTiming
from tis.engine.speech.heard import HearingOptions
from tis.errors import ServiceError
from tis.observability.request_log import current_request_id


@dataclass(frozen=True, slots=True)
class PreparedWindow:
    features: Any  # what the model's first layer reads
    digest: bytes  # of the samples
    num_samples: int
    options: HearingOptions
    is_detected_only: bool = False  # its language alone is wanted


@dataclass(frozen=True, slots=True)
class WindowTokens:
    """What a model wrote of a window, before anybody made text of it."""

    language: str | None
    tokens: tuple[int, ...] = ()  # none: nobody speaks, or what it wrote is not to be trusted
    logprobs: tuple[float, ...] = ()
    temperature: float = 0.0
    avg_logprob: float = 0.0
    no_speech_prob: float = 0.0
    num_tokens: int = 0  # of all attempts
    alignment: Any = None  # [heads, text tokens and the end, frames] in numpy, where words are wanted


class SpeechRequest:
    """Made on the event loop, which owns its future; the model's thread has the rest."""

    is_resumed = is_begun = False
    model_name = ""
    num_prompt_tokens = 0

    def __init__(
        self, window: PreparedWindow, on_cancel: Callable[[QueuedRequest], None], ticket: Ticket | None
    ) -> None:
        self.label = current_request_id()  # for the log
        self.window = window
        self.owner = ticket.owner if ticket else ""
        self.owner_share = ticket.owner_share if ticket else 1.0
        self.timing = RequestTiming(ticket, is_continued=False)
        self.answer: asyncio.Future[WindowTokens] = asyncio.get_running_loop().create_future()
        self._on_cancel = on_cancel
        self._cancelled = threading.Event()

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """The model's thread drops the request at its next step."""
        self._cancelled.set()
        self._on_cancel(self)

    def cancel_completions(self) -> list[Delivery]:
        """Nobody waits for it any more."""
        return []

    def receive(self, item: WindowTokens | ServiceError, now: float) -> None:
        """Called on the event loop."""
        if self.answer.done():
            return
        if isinstance(item, ServiceError):
            self.timing.finished("error", item.code)
            self.answer.set_exception(item)
            return
        if item.num_tokens:
            self.timing.tokens(item.num_tokens, now, 0)
        self.timing.finished("stop")
        self.answer.set_result(item)
