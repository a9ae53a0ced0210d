"""Starts the requests of a crowd a few at a time, owners in turn, so that a pass of the event loop stays short.

Every pass serves all that is ready. A thousand requests that arrive together, of some milliseconds each, would make
passes of seconds, and a stream gets one event per pass.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

from tis.admission.fair_queue import FairQueue

_PASS_SECONDS = 0.02  # a pass that took longer halves the number of starts, a shorter one doubles it
_MAX_STARTS = 64


class StartPacer:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting: FairQueue[asyncio.Future[None]] = FairQueue()
        self._starts_per_pass = 8
        self._num_started = 0  # in this pass
        self._is_counting = False  # while requests start: `_on_pass` runs in every pass
        self._pass_began = 0.0

    async def turn(self, owner: str) -> None:
        """Returns at once if few requests start now."""
        if not self._is_counting:
            self._is_counting = True
            self._count_pass()
        if self._num_started < self._starts_per_pass and not self._waiting:
            self._num_started += 1
            return
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(owner, future)
        try:
            await future
        except asyncio.CancelledError:
            with suppress(ValueError):  # `_on_pass` has taken it
                self._waiting.remove(owner, future)
            raise

    def _count_pass(self) -> None:
        self._pass_began = self._clock()
        asyncio.get_running_loop().call_soon(self._on_pass)

    def _on_pass(self) -> None:
        if self._clock() - self._pass_began > _PASS_SECONDS:
            self._starts_per_pass = max(1, self._starts_per_pass // 2)
        else:
            self._starts_per_pass = min(_MAX_STARTS, self._starts_per_pass * 2)
        is_idle = not self._num_started
        self._num_started = min(self._starts_per_pass, len(self._waiting))
        for _ in range(self._num_started):
            future = self._waiting.pop()
            if not future.done():  # cancelled in this pass
                future.set_result(None)
        if is_idle and not self._num_started:
            self._is_counting = False
        else:
            self._count_pass()
