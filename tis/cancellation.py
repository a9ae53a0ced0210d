"""Waits for work that may take long, and stops waiting when it is cancelled or the server drains."""

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

from tis.errors import Draining

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
