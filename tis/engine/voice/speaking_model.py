"""The interface of an architecture that speaks."""

from collections.abc import Sequence
from typing import Any, Protocol

MAX_SENTENCE_SECONDS = 60.0  # of sound; more is a loop of the model, or a hostile text


class ReadWeights(Protocol):
    """Reads a model of this class from the folder of the model, or from that of its vocoder."""

    def __call__(self, model_class: Any, *, vocoder: bool = False) -> Any: ...


class SpeakingModel(Protocol):
    @property
    def sample_rate(self) -> int: ...

    @property
    def voices(self) -> Sequence[str]: ...

    @property
    def sets_pace(self) -> bool:
        """It speaks faster and slower itself."""
        ...

    @property
    def max_chars(self) -> int:
        """Of a sentence."""
        ...

    @property
    def min_token_seconds(self) -> float:
        """How short the sound of a token is at least, at any pace; 0 if that depends on more than the text."""
        ...

    def num_tokens(self, text: str) -> int:
        """0: there is nothing in it that the model could say."""
        ...

    def say(self, text: str, voice: str, pace: float) -> Any:
        """Samples, a tensor with one dimension. Called by the thread of the model alone."""
        ...
