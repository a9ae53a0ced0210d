"""Stages of preparing a model that it can do without: whatever fails is logged with its cause, undone and left out.

A failed stage may have changed half of the model. To undo it, the weights are read again and prepared without it.
After a second failure the model is not batched: its requests take turns, which needs none of the stages.
"""

import logging
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from tis.engine.errors import LoadFailed
from tis.engine.faults import free_memory, is_out_of_memory
from tis.observability.logs import describe_with_messages

log = logging.getLogger("tis.engine")

BATCHES = "computing in batches"
KERNELS = "computing with the native kernels"

Model = TypeVar("Model")
Made = TypeVar("Made")


class StageFailed(Exception):
    """Its cause says why. The model may be half changed."""

    def __init__(self, stage: str) -> None:
        super().__init__(stage)
        self.stage = stage


@dataclass(frozen=True, slots=True)
class OptionalStages:
    left_out: frozenset[str] = frozenset()

    @contextmanager
    def guard(self, stage: str) -> Iterator[None]:
        """Too little memory, and settings that cannot be followed, still end the load."""
        try:
            yield
        except (StageFailed, LoadFailed):
            raise
        except Exception as fault:
            if is_out_of_memory(fault):
                raise
            raise StageFailed(stage) from fault

    def run(self, stage: str, change: Callable[[], int]) -> int:
        """Returns how much was changed: nothing, if the stage is left out."""
        if stage in self.left_out:
            return 0
        with self.guard(stage):
            return change()

    def without(self, stage: str) -> "OptionalStages":
        return OptionalStages(self.left_out | {stage} | ({BATCHES} if self.left_out else set()))


ALL_STAGES = OptionalStages()


def read_and_prepare(read: Callable[[], Model], prepare: Callable[[Model, OptionalStages], Made]) -> Made:
    """Reads a model and prepares it, again if a stage fails. Only one model is in memory at a time."""
    stages = ALL_STAGES
    while True:
        model = read()
        try:
            return prepare(model, stages)
        except StageFailed as failure:
            if failure.stage in stages.left_out:
                raise
            # As a text: a handler that keeps its records would keep the frames, and with them the model.
            trace = "".join(traceback.format_exception(failure.__cause__))
            log.warning(
                "%s failed, so the weights are read again and the model runs without it\n%s", failure.stage, trace
            )
            stages = stages.without(failure.stage)
        del model
        free_memory()


def read_optional(what: str, read: Callable[[], Made], otherwise: Made) -> Made:
    """Reads something beside the weights that the model can do without."""
    try:
        return read()
    except Exception:
        log.warning("the model runs without %s, which cannot be read", what, exc_info=True)
        return otherwise


class Misfit(Exception):
    """A part of a model is not of the kind that is replaced, which is no fault."""


class Trials:
    """Tries replacements for parts of a model. Where that fails, the part stays; each cause is logged once."""

    def __init__(self, of: str) -> None:
        self._of = of
        self._causes: Counter[str] = Counter()

    def attempt(self, part: Any, work: Callable[[], Made]) -> Made | None:
        """`work` changes nothing before it has succeeded. Returns None if it fails."""
        try:
            return work()
        except Misfit as reason:
            log.debug("%s leaves out %s: %s", self._of, type(part).__name__, reason)
            return None
        except Exception as fault:
            if is_out_of_memory(fault):
                raise
            self._causes[f"{type(part).__name__}: {describe_with_messages(fault)}"] += 1
            log.debug("%s failed for %s", self._of, type(part).__name__, exc_info=True)
            return None

    def report(self) -> None:
        for cause, number in self._causes.items():
            log.info("%s failed for %d x %s", self._of, number, cause)
