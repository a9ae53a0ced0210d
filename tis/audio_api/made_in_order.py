"""Makes several things at once, and hands them out in order: windows that are heard, sentences that are spoken."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, TypeVar

from tis.cancellation import Cancelled

Given = TypeVar("Given")
Made = TypeVar("Made")


async def made_in_order(
    next_one: Callable[[], Awaitable[Given | None]],
    make: Callable[[Given], Awaitable[Made]],
    at_once: int,
    cancelled: asyncio.Event,
) -> AsyncGenerator[tuple[Given, Made], None]:
    """The next one is fetched while those before it are made. Raises Cancelled."""
    making: deque[tuple[Given, asyncio.Future[Made]]] = deque()
    cancelling = asyncio.ensure_future(cancelled.wait())
    fetching: asyncio.Future[Given | None] | None = None
    has_more = True
    try:
        while has_more or making:
            if fetching is None and has_more and len(making) < at_once:
                fetching = asyncio.ensure_future(next_one())
            waits: set[asyncio.Future[Any]] = {cancelling}
            waits |= {fetching} if fetching else set()
            waits |= {making[0][1]} if making else set()
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if cancelling.done():
                raise Cancelled
            if fetching and fetching.done():
                given, fetching = fetching.result(), None
                has_more = given is not None
                if given is not None:
                    making.append((given, asyncio.ensure_future(make(given))))
            if making and making[0][1].done():
                one, made = making.popleft()
                yield one, made.result()
    finally:
        left: list[asyncio.Future[Any]] = [cancelling, *(task for _, task in making)]
        left += [fetching] if fetching else []
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
