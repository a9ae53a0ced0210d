"""What a model that speaks is asked, and what it can do: plain values, without torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MAX_TEXT_CHARS = 4096  # of a request, as in OpenAI's API


@dataclass(frozen=True, slots=True)
class VoiceDescription:
    """What a loaded model can do."""

    sample_rate: int
    voices: Sequence[str]  # the names of its speakers; empty: not known here, so any name may be one
    sets_pace: bool  # it speaks faster and slower itself
    revision: str
    origins: Mapping[str, str]  # of voices: the same text has other sound if another stands here
    min_token_seconds: float = 0.0  # of sound, at any speed; 0: nobody knows


@dataclass(frozen=True, slots=True)
class CutText:
    sentences: Sequence[str]
    num_tokens: int  # of all, as the model reads them


@dataclass(frozen=True, slots=True)
class SentenceToSay:
    text: str
    voice: str
    pace: float = 1.0  # for models that set it: 2 is twice as fast
    seed: int = 0  # of the noise: the same sentence with the same seed is the same samples
    instructions: str = ""  # how to say it, for models that take some
