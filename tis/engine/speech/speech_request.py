"""A window in the engine: its sound as the model takes it, and what the model wrote of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tis.admission.ticket import Ticket
from tis.engine.future_request import FutureRequest
from tis.engine.request import QueuedRequest
from tis.engine.speech.heard import HearingOptions


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


class SpeechRequest(FutureRequest[WindowTokens]):
    def __init__(
        self,
        window: PreparedWindow,
        on_cancel: Callable[[QueuedRequest], None],
        ticket: Ticket | None,
        *,
        is_begun: bool = False,
    ) -> None:
        super().__init__(on_cancel, ticket, is_begun=is_begun)
        self.window = window

    def count(self, made: WindowTokens, now: float) -> None:
        if made.num_tokens:
            self.timing.tokens(made.num_tokens, now, 0)
