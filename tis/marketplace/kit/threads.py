"""Runs what blocks in the threads of requests: the event loop's own pool is small, and resolves names for everybody."""

from collections.abc import Callable
from typing import TypeVar, TypeVarTuple, Unpack

from anyio import to_thread

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


async def in_thread(function: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
    """A thread that still waits for the database when the caller gives up is abandoned."""
    return await to_thread.run_sync(function, *args, abandon_on_cancel=True)
