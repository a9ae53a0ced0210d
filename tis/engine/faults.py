"""Tells the faults of a step apart: no memory, a device that is lost, a step that hangs. The rest is a plain failure.

A CUDA error such as an illegal memory access poisons the context of the process: every later call fails. No code of
this process can mend that, nor a step that never returns; the process has to end.
"""

import ctypes
import gc
import sys
import weakref
from collections.abc import Hashable
from typing import Any

from tis.observability.collector import collect_exempt_objects

# EX_SOFTWARE of sysexits.h. `tis serve` starts the server again after it.
EXIT_CODE = 70

_NO_MEMORY = ("DefaultCPUAllocator: can't allocate memory", "out of memory", "CUBLAS_STATUS_ALLOC_FAILED")


class DeviceLost(Exception):
    """The device computes nothing any more."""


def is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError):
        return True
    # torch has no class of its own for a CPU without memory. A ValueError that quotes these words is something else.
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _NO_MEMORY)


def free_memory() -> None:
    """Returns what nobody uses any more to the device, and to the system."""
    gc.collect()
    _return_memory()


def free_memory_of_model(weights: "weakref.ref[Any] | None") -> None:
    """The same for a model that was unloaded. `weights`: to see whether they are gone; None: it has none.

    Mostly they are, with their last reference. What is in a circle of references, only a collection of all objects
    frees, which stops all threads for a moment.
    """
    if weights and weights() is not None:
        collect_exempt_objects()
    _return_memory()


def _return_memory() -> None:
    torch: Any = sys.modules.get("torch")
    if torch and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    if sys.platform.startswith("linux"):
        # glibc keeps freed blocks for later; other C libraries of Linux have no such function.
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim:
            trim(0)


def device_answers(device: Any) -> bool:
    """Whether the device still computes. A CPU always does."""
    if device.type != "cuda":
        return True
    import torch

    try:
        return int(torch.ones(1, device=device).sum()) == 1
    except RuntimeError as error:
        return is_out_of_memory(error)


class StallClock:
    """Finds the step that does not end.

    It counts how often it was looked at during one step, and not the time that passed: a machine that slept, or a
    process that was paused, is not taken for a step that hangs.
    """

    def __init__(self, max_looks: int) -> None:
        self._max_looks = max_looks
        self._step: Hashable | None = None
        self._num_looks = 0

    def is_stalled(self, step: Hashable | None) -> bool:
        """`step` names the step that is running now; None: none, or one that may take as long as it likes."""
        self._num_looks = self._num_looks + 1 if step is not None and step == self._step else 0
        self._step = step
        return self._num_looks >= self._max_looks
