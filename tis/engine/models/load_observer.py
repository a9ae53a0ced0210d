"""What is told of loads, to the log or to a terminal; and the pauses between attempts."""

import time
from typing import Protocol

MAX_BACKOFF_SECONDS = 60.0


class LoadObserver(Protocol):
    """Called on the event loop. `reason` may name paths and addresses: never show it to clients."""

    def progress(self, model_id: str, stage: str, share: float | None) -> None: ...

    def loaded(self, model_id: str, seconds: float) -> None: ...

    def failed(self, model_id: str, reason: str, pause_seconds: float) -> None: ...

    def postponed(self, model_id: str, reason: str) -> None:
        """It does not fit beside others at start, and will be loaded by a request."""
        ...


class Backoff:
    """Pauses between attempts: each twice as long as the last, at most a minute. A success resets them."""

    def __init__(self, first_seconds: float) -> None:
        self._first_seconds = first_seconds
        self._failures = 0
        self._ends_at = 0.0

    @property
    def seconds_left(self) -> float:
        return max(0.0, self._ends_at - time.monotonic())

    def failed(self) -> float:
        pause: float = min(MAX_BACKOFF_SECONDS, self._first_seconds * 2 ** min(self._failures, 10))
        self._failures += 1
        self._ends_at = time.monotonic() + pause
        return pause

    def succeeded(self) -> None:
        self._failures = 0
