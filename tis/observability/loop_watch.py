"""Measures how late the event loop runs its callbacks, and has garbage collected and freed memory returned."""

import asyncio
import time
from contextlib import suppress

from tis.observability.collector import collect_garbage
from tis.observability.memory import return_freed_memory
from tis.observability.metrics import LOOP_PAUSE_SECONDS

_EVERY_SECONDS = 0.25
_CLEAN_UP_SECONDS = 5.0


class LoopWatch:
    """While it is open, it wakes up four times a second and notes how late it was."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    def open(self) -> None:
        self._tasks = [asyncio.create_task(self._watch()), asyncio.create_task(self._clean_up())]

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _watch(self) -> None:
        with suppress(asyncio.CancelledError):
            while True:
                due_at = time.monotonic() + _EVERY_SECONDS
                await asyncio.sleep(_EVERY_SECONDS)
                LOOP_PAUSE_SECONDS.observe(max(0.0, time.monotonic() - due_at))

    async def _clean_up(self) -> None:
        with suppress(asyncio.CancelledError):
            while True:
                await asyncio.sleep(_CLEAN_UP_SECONDS)
                await asyncio.to_thread(collect_garbage)
                await asyncio.to_thread(return_freed_memory)
