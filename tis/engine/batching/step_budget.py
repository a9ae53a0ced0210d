"""How much a step computes, so that it takes about `STEP_SECONDS`: every other request waits for its end.

Steps that only decode tell what a step costs at least; the others tell what a token of a prompt costs beyond that,
which grows with the context and with the load of the machine. The newest steps count most.
"""

from dataclasses import dataclass

CHUNK = 16  # tokens of prompts, and patches of images, come in multiples of it
# With fewer, a CPU reads its weights for longer than it computes with them.
MIN_CHUNK = 48
# A shorter chunk says little about the cost of a token.
_MIN_OBSERVED_TOKENS = 32
_WEIGHT_OF_NEWEST = 0.4
# The rest of the time that a step takes belongs to its prompts, but timings scatter.
_MIN_SHARE_OF_PROMPTS = 0.1


@dataclass(frozen=True, slots=True)
class StepSize:
    num_prompt_tokens: int  # beside the sequences that decode
    num_patches: int


class StepBudget:
    def __init__(self, seconds: float, max_tokens: int, max_patches: int) -> None:
        """`seconds` 0: the other limits alone."""
        self._seconds = seconds
        self._max_tokens = max_tokens
        self._max_patches = max_patches
        self._decode_seconds: float | None = None
        self._seconds_per_token: float | None = None
        self._seconds_per_patch: float | None = None

    @property
    def is_timed(self) -> bool:
        return self._seconds > 0

    @property
    def next(self) -> StepSize:
        if not self.is_timed:
            return StepSize(self._max_tokens, self._max_patches)
        left = self._seconds - (self._decode_seconds or 0)
        return StepSize(
            _fitting(left, self._seconds_per_token, self._max_tokens),
            _fitting(self._seconds, self._seconds_per_patch, self._max_patches),
        )

    def computed(self, num_prompt_tokens: int, seconds: float) -> None:
        if not num_prompt_tokens:
            self._decode_seconds = _newer(self._decode_seconds, seconds)
        elif num_prompt_tokens >= _MIN_OBSERVED_TOKENS:
            of_prompts = max(seconds - (self._decode_seconds or 0), seconds * _MIN_SHARE_OF_PROMPTS)
            self._seconds_per_token = _newer(self._seconds_per_token, of_prompts / num_prompt_tokens)

    def encoded(self, num_patches: float, seconds: float) -> bool:
        """Returns whether this alone takes so much of the step that its prompts should wait for the next one."""
        if not num_patches:
            return False
        self._seconds_per_patch = _newer(self._seconds_per_patch, seconds / num_patches)
        return self.is_timed and seconds >= self._seconds / 2


def _newer(before: float | None, now: float) -> float:
    return now if before is None else before + _WEIGHT_OF_NEWEST * (now - before)


def _fitting(seconds: float, seconds_per_one: float | None, maximum: int) -> int:
    """`MIN_CHUNK` at least, whatever it takes, and that while nothing is known."""
    number = seconds / seconds_per_one if seconds_per_one else MIN_CHUNK
    return maximum if number >= maximum else min(maximum, max(MIN_CHUNK, int(number) // CHUNK * CHUNK))
