"""A queue of its own for requests that hash passwords: a hundred logins leave the other threads to other requests."""

import asyncio
import contextvars
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tis.errors import QueueFull

Result = TypeVar("Result")
# A hash takes 19 MiB and a core for some 30 ms: half of the cores stay free, and nobody waits for more than seconds.
_MAX_RUNNING = min(4, max(1, (os.cpu_count() or 1) // 2))
_MAX_WAITING = 100


class PasswordQueue:
    def __init__(self, *, max_running: int = _MAX_RUNNING, max_waiting: int = _MAX_WAITING) -> None:
        self._max_requests = max_running + max_waiting
        self.num_requests = 0  # running and waiting
        self._threads = ThreadPoolExecutor(max_running, thread_name_prefix="passwords")

    async def run(self, work: Callable[[], Result]) -> Result:
        """Runs `work`, transactions included, in one of the threads of this queue. Raises QueueFull at once."""
        if self.num_requests >= self._max_requests:
            raise QueueFull("Too many people sign in at this moment. Retry shortly.", retry_after=2)
        self.num_requests += 1
        try:
            done = self._threads.submit(contextvars.copy_context().run, work)
            return await asyncio.wrap_future(done)
        finally:
            self.num_requests -= 1

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)
