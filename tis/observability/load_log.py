"""Logs the progress of loading a model: a line for each stage, and one for every 5 % of a stage."""

import logging

log = logging.getLogger("tis.engine")

_STEP_PERCENT = 5


class LoadSteps:
    """Says which progress is worth a line."""

    def __init__(self) -> None:
        self._shown: dict[str, tuple[str, int]] = {}  # model id -> the stage and step that was shown last

    def line(self, model_id: str, stage: str, share: float | None) -> str | None:
        step = 0 if share is None else int(share * 100) // _STEP_PERCENT
        if self._shown.get(model_id) == (stage, step):
            return None
        self._shown[model_id] = (stage, step)
        return f"{model_id}: {stage}" if share is None else f"{model_id}: {stage}, {step * _STEP_PERCENT} %"


class LoadLog:
    def __init__(self) -> None:
        self._steps = LoadSteps()

    def progress(self, model_id: str, stage: str, share: float | None) -> None:
        if line := self._steps.line(model_id, stage, share):
            log.info("%s", line)

    def loaded(self, model_id: str, seconds: float) -> None:
        log.info("%s loaded in %.1f s", model_id, seconds)

    def postponed(self, model_id: str, reason: str) -> None:
        log.info("%s is loaded when a request needs it: %s", model_id, reason)

    def failed(self, model_id: str, reason: str, pause_seconds: float) -> None:
        log.error("%s could not be loaded; retry in %.0f s at the earliest: %s", model_id, pause_seconds, reason)
