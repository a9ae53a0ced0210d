"""Logs the progress of loading a model: a line for each stage, and for every 5 % of a slow one."""

import logging
import time
from collections.abc import Callable

log = logging.getLogger("tis.engine")

_STEP_PERCENT = 5
_MIN_SECONDS = 1.0  # between two lines of a stage


class LoadSteps:
    """Says which progress is worth a line."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._shown: dict[str, tuple[str, int, float]] = {}  # model id -> stage, step and time of its last line
        self._clock = clock

    def line(self, model_id: str, stage: str, share: float | None) -> str | None:
        step = 0 if share is None else int(share * 100) // _STEP_PERCENT
        last_stage, last_step, shown_at = self._shown.get(model_id, ("", 0, 0.0))
        is_early = self._clock() < shown_at + _MIN_SECONDS and share != 1
        if stage == last_stage and (step == last_step or is_early):
            return None
        self._shown[model_id] = (stage, step, self._clock())
        return f"{model_id}: {stage}" if share is None else f"{model_id}: {stage}, {step * _STEP_PERCENT} %"


class LoadLog:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._steps = LoadSteps(clock)

    def progress(self, model_id: str, stage: str, share: float | None) -> None:
        if line := self._steps.line(model_id, stage, share):
            log.info("%s", line)

    def loaded(self, model_id: str, seconds: float) -> None:
        log.info("%s loaded in %.1f s", model_id, seconds)

    def postponed(self, model_id: str, reason: str) -> None:
        log.info("%s is loaded when a request needs it: %s", model_id, reason)

    def failed(self, model_id: str, reason: str, pause_seconds: float) -> None:
        log.error("%s could not be loaded; retry in %.0f s at the earliest: %s", model_id, pause_seconds, reason)
