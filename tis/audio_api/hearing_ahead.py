"""Hears several windows of a file at once, and hands out what was heard in the order of the file."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

from tis.cancellation import Cancelled
from tis.engine.speech.heard import HeardWindow
from tis.media.audio.decoder import SoundWindow

NextWindow = Callable[[], Awaitable[SoundWindow | None]]
Hear = Callable[[SoundWindow], Awaitable[HeardWindow]]


async def heard_in_order(
    next_window: NextWindow, hear: Hear, at_once: int, cancelled: asyncio.Event
) -> AsyncGenerator[tuple[SoundWindow, HeardWindow], None]:
    """The next window is cut while those before it are heard. Raises Cancelled."""
    hearing: deque[tuple[SoundWindow, asyncio.Future[HeardWindow]]] = deque()
    cancelling = asyncio.ensure_future(cancelled.wait())
    cutting: asyncio.Future[SoundWindow | None] | None = None
    has_more = True
    try:
        while has_more or hearing:
            if cutting is None and has_more and len(hearing) < at_once:
                cutting = asyncio.ensure_future(next_window())
            waits: set[asyncio.Future[Any]] = {cancelling}
            waits |= {cutting} if cutting else set()
            waits |= {hearing[0][1]} if hearing else set()
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if cancelling.done():
                raise Cancelled
            if cutting and cutting.done():
                window, cutting = cutting.result(), None
                has_more = window is not None
                if window:
                    hearing.append((window, asyncio.ensure_future(hear(window))))
            if hearing and hearing[0][1].done():
                window, heard = hearing.popleft()
                yield window, heard.result()
    finally:
        left: list[asyncio.Future[Any]] = [cancelling, *(task for _, task in hearing)]
        left += [cutting] if cutting else []
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
