"""A thread that takes one step after the other, and waits when there is nothing to do."""

import logging
import threading
from collections.abc import Callable

from tis.database.errors import DatabaseUnavailable
from tis.errors import ServiceError
from tis.observability.logs import log_exception

_PAUSE_SECONDS = 0.05  # between two steps: the writers that wait for SQLite take no turns
_MAX_BACKOFF_SECONDS = 300.0
_log = logging.getLogger("tis.marketplace")


class BackgroundJob:
    """Every server may run the same job: the database decides which of them does what."""

    def __init__(self, name: str, step: Callable[[], bool], interval_seconds: float) -> None:
        """`step` returns whether there may be more to do at once."""
        self._name, self._step, self._interval_seconds = name, step, interval_seconds
        self._end, self._wake = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._has_failed = False

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._thread.start()

    def wake(self) -> None:
        self._wake.set()

    def stop(self, max_seconds: float | None = None) -> None:
        """Waits for the step that runs, or no longer than that."""
        self._end.set()
        self._wake.set()
        if self._thread:
            self._thread.join(max_seconds)

    def _run(self) -> None:
        pause = self._interval_seconds
        while not self._end.is_set():
            try:
                while self._step() and not self._end.wait(_PAUSE_SECONDS):
                    pass
                pause, self._has_failed = self._interval_seconds, False
            except DatabaseUnavailable:
                pause = self._interval_seconds  # `tis.database` has logged it
            except ServiceError as error:
                pause = self._back_off(pause)
                if not self._has_failed:
                    _log.warning("%s: %s It tries again.", self._name, error.message)
                self._has_failed = True
            except Exception as fault:
                pause = self._back_off(pause)
                log_exception(f"{self._name} failed; it tries again shortly", fault, "-")
            self._wake.wait(pause)
            self._wake.clear()

    def _back_off(self, pause: float) -> float:
        return max(self._interval_seconds, min(_MAX_BACKOFF_SECONDS, 2 * pause))
