"""What a model that hears is asked, and what it heard: plain values, without torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

SpeechTask = Literal["transcribe", "translate"]
# After an answer that repeats itself or that the model doubts, the window is heard again at the next of these.
FALLBACK_TEMPERATURES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


@dataclass(frozen=True, slots=True)
class SpeechDescription:
    """What a loaded model can do."""

    sample_rate: int
    window_seconds: float  # the longest window
    languages: Mapping[str, str]  # names by code, as "id": "indonesian"; empty: it has one, or tells none apart
    tasks: frozenset[SpeechTask]
    has_times: bool  # of segments; else a window is one segment
    has_words: bool  # the times of words


@dataclass(frozen=True, slots=True)
class HearingOptions:
    task: SpeechTask = "transcribe"
    language: str | None = None  # a code; None: detected
    prompt: str = ""
    temperatures: tuple[float, ...] = FALLBACK_TEMPERATURES
    seed: int = 0
    with_times: bool = True  # of segments; without, a window is one segment
    with_words: bool = False
    with_logprobs: bool = False


@dataclass(frozen=True, slots=True)
class SpeechWindow:
    """Samples of one channel at the model's rate: float32 from -1 to 1, at most `window_seconds`."""

    samples: Any  # a one-dimensional numpy array
    options: HearingOptions = HearingOptions()


@dataclass(frozen=True, slots=True)
class HeardWord:
    text: str
    start: float  # seconds from the beginning of the window
    end: float
    probability: float


@dataclass(frozen=True, slots=True)
class HeardToken:
    text: str
    utf8: bytes
    logprob: float


@dataclass(frozen=True, slots=True)
class HeardSegment:
    start: float  # seconds from the beginning of the window
    end: float
    text: str
    token_ids: tuple[int, ...]
    temperature: float
    avg_logprob: float
    compression_ratio: float
    no_speech_prob: float
    words: tuple[HeardWord, ...] = ()
    tokens: tuple[HeardToken, ...] = ()  # with `with_logprobs`


@dataclass(frozen=True, slots=True)
class HeardWindow:
    """No segments: nobody speaks, or what the model wrote is not to be trusted."""

    language: str | None
    segments: tuple[HeardSegment, ...]
    num_tokens: int  # that the model made for it, those of refused attempts too
