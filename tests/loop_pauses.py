"""Measures the CPU time of each callback of a server's event loop: while one runs, nobody else is served.

CPU time of the loop's thread, not elapsed time: other processes of a busy machine do not count.
"""

import asyncio
import asyncio.events
import gc
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

MAX_PAUSE_SECONDS = 0.05
# Beside crowds: the caches of the processor are others', and CPU time grows by half (45 ms were measured).
MAX_CROWDED_PAUSE_SECONDS = 1.5 * MAX_PAUSE_SECONDS


@dataclass(slots=True)
class LoopPauses:
    """The callbacks of the threads that are watched, longest last."""

    found: list[tuple[float, str]] = field(default_factory=list)

    @property
    def longest(self) -> float:
        return max(self.found, default=(0.0, ""))[0]

    def clear(self) -> None:
        self.found.clear()

    def __str__(self) -> str:
        return "; ".join(f"{seconds * 1000:.0f} ms {what}" for seconds, what in sorted(self.found)[-5:])


@contextmanager
def measured_pauses(least_seconds: float = 0.01) -> Iterator[LoopPauses]:
    """Servers in threads of this process must run on asyncio's own loop: uvloop's callbacks cannot be measured."""
    pauses, own = LoopPauses(), threading.get_ident()
    run = asyncio.events.Handle._run

    def measured_run(handle: asyncio.Handle) -> None:
        if threading.get_ident() == own:
            run(handle)
            return
        began = time.thread_time()
        run(handle)
        spent = time.thread_time() - began
        if spent >= least_seconds:
            pauses.found.append((spent, repr(handle)[:300]))

    # A collection walks all objects of this process, and those of the tests before are not the server's.
    gc.collect()
    gc.freeze()
    handles: Any = asyncio.events.Handle
    handles._run = measured_run
    try:
        yield pauses
    finally:
        handles._run = run
        gc.unfreeze()
