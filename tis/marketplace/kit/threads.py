"""Runs what blocks in threads of its own: the event loop's pool is small, and resolves names for everybody.

`in_thread` is for database calls, `PasswordQueue` for requests that hash passwords: a hundred logins leave the other
threads to other requests.
"""

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar, TypeVarTuple, Unpack

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

from tis.errors import QueueFull

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

MAX_THREADS = 40
# A hash takes 19 MiB and a core for some 30 ms: half of the cores stay free, and nobody waits for more than seconds.
_MAX_HASHING = min(4, max(1, (os.cpu_count() or 1) // 2))
_MAX_WAITING = 100
_slots = RunVar[CapacityLimiter]("slots of the marketplace")


async def in_thread(function: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
    """A thread that still waits for the database when the caller gives up is abandoned, and keeps its slot."""
    slots = _slots.get(None) or CapacityLimiter(MAX_THREADS)
    _slots.set(slots)
    slot = _Slot(slots)
    await slots.acquire_on_behalf_of(slot)

    def run() -> T | None:
        if not slot.begin():
            return None
        try:
            return function(*args)
        finally:
            slot.end()

    try:
        # It needs no other place: there are no more of these threads than slots.
        found = await to_thread.run_sync(run, abandon_on_cancel=True, limiter=CapacityLimiter(1))
    finally:
        slot.give_up()
    return found  # type: ignore[return-value]  # None only if the caller is gone


class _Slot:
    """Goes back once: when the thread ends, or at once if the thread has not begun."""

    def __init__(self, slots: CapacityLimiter) -> None:
        self._slots, self._loop = slots, asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._is_free_to_begin = True

    def begin(self) -> bool:
        with self._lock:
            begins, self._is_free_to_begin = self._is_free_to_begin, False
        return begins

    def end(self) -> None:
        with suppress(RuntimeError):  # the loop is closed, and its slots with it
            self._loop.call_soon_threadsafe(self._slots.release_on_behalf_of, self)

    def give_up(self) -> None:
        if self.begin():
            self._slots.release_on_behalf_of(self)


class PasswordQueue:
    def __init__(self, *, max_running: int = _MAX_HASHING, max_waiting: int = _MAX_WAITING) -> None:
        self._max_requests = max_running + max_waiting
        self.num_requests = 0  # running and waiting
        self._threads = ThreadPoolExecutor(max_running, thread_name_prefix="passwords")

    async def run(self, work: Callable[[], T]) -> T:
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
