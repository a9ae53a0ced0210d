"""Waits for work that may take long, and stops waiting when it is cancelled or the server drains."""

import asyncio
import concurrent.futures
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

from tis.errors import Draining, Unavailable

T = TypeVar("T")


class Cancelled(Exception):
    """What was waited for is cancelled."""


async def race_cancel(needless: Awaitable[object], work: Awaitable[T]) -> T:
    """Returns the result of the work. Raises Cancelled if `needless` ends first."""
    working, cancelling = asyncio.ensure_future(work), asyncio.ensure_future(needless)
    try:
        await asyncio.wait({working, cancelling}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise Cancelled
        return working.result()
    finally:
        cancelling.cancel()
        working.cancel()
        working.add_done_callback(lambda task: task.cancelled() or task.exception())  # nobody else would look at it


async def race_draining(draining: Coroutine[Any, Any, object], work: Coroutine[Any, Any, T]) -> T:
    """Before an answer: refuses a request that waits for a load or a fetch while the server can still say so."""
    try:
        return await race_cancel(draining, work)
    except Cancelled:
        raise Draining from None


class LoopCalls:
    """For threads that need what runs on the event loop: they wait for it, and no longer than they say.

    Only `open` and `close` are called on the event loop.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running = set[concurrent.futures.Future[Any]]()

    def open(self) -> None:
        self._loop = asyncio.get_running_loop()

    def close(self) -> None:
        """Nobody waits any longer."""
        self._loop = None
        for future in tuple(self._running):
            future.cancel()

    def wait(self, work: Coroutine[Any, Any, T], timeout_seconds: float) -> T:
        """Raises Unavailable when the time is over, or the server does not run."""
        loop = self._loop
        if loop is None or loop.is_closed():
            work.close()
            raise Unavailable("The server does not run.")
        future = asyncio.run_coroutine_threadsafe(work, loop)
        self._running.add(future)
        if self._loop is None:  # closed meanwhile
            future.cancel()
        try:
            return future.result(timeout_seconds)
        except TimeoutError:
            future.cancel()
            raise Unavailable("There was no answer in time.", retry_after=1) from None
        except concurrent.futures.CancelledError:
            raise Unavailable("The server stops.") from None
        finally:
            self._running.discard(future)
