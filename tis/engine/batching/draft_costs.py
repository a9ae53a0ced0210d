"""What a step takes, by how many tokens it computes, as measured while steps run: a line through the newest ones."""

_DECAY = 0.98  # what each measured step leaves of the weight of those before it
_SLOPE = 0.04  # what a further token costs, as a share of the step, as long as nothing else is known
_WEIGHT_OF_GUESS = 0.5  # of that share, beside what was measured
_MAX_OUTLIER = 3.0  # times what was expected: another process had the cores
_MIN_SHARE = 0.2


class StepCosts:
    def __init__(self, first_guess: float | None = None) -> None:
        """`first_guess`: seconds of a step of one token, before one is measured."""
        self._guess = first_guess
        self._weight = self._tokens = self._seconds = 0.0  # sums over the steps
        self._squares = self._products = 0.0

    @property
    def is_known(self) -> bool:
        return self._weight > 0 or self._guess is not None

    def measured(self, num_tokens: int, seconds: float) -> None:
        if self._weight:
            seconds = min(seconds, _MAX_OUTLIER * self.seconds(num_tokens))
        self._weight = self._weight * _DECAY + 1
        self._tokens = self._tokens * _DECAY + num_tokens
        self._seconds = self._seconds * _DECAY + seconds
        self._squares = self._squares * _DECAY + num_tokens**2
        self._products = self._products * _DECAY + num_tokens * seconds

    def seconds(self, num_tokens: float) -> float:
        if not self._weight:
            return (self._guess or 0.0) * (1 + _SLOPE * (num_tokens - 1))
        mean_tokens, mean_seconds = self._tokens / self._weight, self._seconds / self._weight
        spread = self._squares / self._weight - mean_tokens**2
        together = self._products / self._weight - mean_tokens * mean_seconds
        guess = mean_seconds * _SLOPE / (1 + _SLOPE * (mean_tokens - 1))
        slope = max(0.0, (together + _WEIGHT_OF_GUESS * guess) / (max(0.0, spread) + _WEIGHT_OF_GUESS))
        return max(_MIN_SHARE * mean_seconds, mean_seconds + slope * (num_tokens - mean_tokens))
