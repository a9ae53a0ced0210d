"""Runs what blocks in threads of its own: the event loop's pool is small, and resolves names for everybody."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar, TypeVarTuple, Unpack

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

MAX_THREADS = 40
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
