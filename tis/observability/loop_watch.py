"""Measures how late the event loop runs its callbacks, and how much memory the process takes."""

import asyncio
import os
import time
from contextlib import suppress

from tis.observability.metrics import LOOP_PAUSE_SECONDS

_EVERY_SECONDS = 0.25


class LoopWatch:
    """While it is open, it wakes up four times a second and notes how late it was."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    def open(self) -> None:
        self._task = asyncio.create_task(self._watch())

    def close(self) -> None:
        if self._task:
            self._task.cancel()

    async def _watch(self) -> None:
        with suppress(asyncio.CancelledError):
            while True:
                due_at = time.monotonic() + _EVERY_SECONDS
                await asyncio.sleep(_EVERY_SECONDS)
                LOOP_PAUSE_SECONDS.observe(max(0.0, time.monotonic() - due_at))


def resident_bytes() -> int | None:
    """None where the system has no /proc."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None
