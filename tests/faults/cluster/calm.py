"""Keeps the beginnings of sessions apart from faults of Redis.

While Redis is away, a new session is answered though nobody can know whether another server has it (decision 0124):
two servers may answer the same request then. All other promises are to hold in every fault.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Calm:
    def __init__(self) -> None:
        self._changed = asyncio.Condition()
        self._num_within = 0
        self._is_broken = False

    @asynccontextmanager
    async def needed(self) -> AsyncIterator[None]:
        async with self._changed:
            await self._changed.wait_for(lambda: not self._is_broken)
            self._num_within += 1
        try:
            yield
        finally:
            async with self._changed:
                self._num_within -= 1
                self._changed.notify_all()

    @asynccontextmanager
    async def broken(self) -> AsyncIterator[None]:
        """Waits for those who need it; others wait until this is over."""
        async with self._changed:
            self._is_broken = True
            await self._changed.wait_for(lambda: not self._num_within)
        try:
            yield
        finally:
            async with self._changed:
                self._is_broken = False
                self._changed.notify_all()
