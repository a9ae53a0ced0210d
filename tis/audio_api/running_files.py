"""The sound files that are being sent: they are no sessions, so a server that stops waits for them by this."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class RunningFiles:
    """On the event loop."""

    def __init__(self) -> None:
        self._number = 0
        self._is_idle = asyncio.Event()
        self._is_idle.set()

    @contextmanager
    def one(self) -> Iterator[None]:
        self._number += 1
        self._is_idle.clear()
        try:
            yield
        finally:
            self._number -= 1
            if not self._number:
                self._is_idle.set()

    async def wait_until_idle(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._is_idle.wait()
        except TimeoutError:
            return
