"""A sound file that is made ahead of its reader: who reads slowly keeps some bytes of it, and no model."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing

from tis.admission.ticket import Ticket
from tis.audio_api.spoken_file import SoundPart
from tis.cancellation import Cancelled

MAX_UNREAD_BYTES = 2 * 2**20  # four minutes of mp3
_PIECE_BYTES = 16 * 1024
_MIN_READ_BYTES = 64 * 1024


class SoundAhead:
    """Of one file, which is made while `pieces` are read."""

    def __init__(
        self, first: bytes, parts: AsyncGenerator[SoundPart, None], ticket: Ticket, slow_seconds: float
    ) -> None:
        """More than `MAX_UNREAD_BYTES` wait for the reader. If it takes less than 64 KiB in `slow_seconds` then, which
        is a fraction of the pace at which any format is played, it is `too_slow`.
        """
        self.too_slow = asyncio.Event()
        self._parts = parts
        self._ticket = ticket
        self._slow_seconds = slow_seconds
        self._unread: deque[bytes] = deque()
        self._num_unread = self._num_read = 0
        self._is_made = False
        self._has_news, self._has_room = asyncio.Event(), asyncio.Event()
        self._add(first)

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        making = asyncio.create_task(self._make())
        try:
            while self._unread or not self._is_made:
                if self._unread:
                    yield self._read()
                else:
                    self._has_news.clear()
                    await self._has_news.wait()
            await making
        finally:
            making.cancel()
            await asyncio.gather(making, return_exceptions=True)

    async def _make(self) -> None:
        try:
            async with aclosing(self._parts) as parts:
                async for part in parts:
                    self._add(part.data)
                    await self._until_there_is_room()
        finally:
            self._is_made = True
            self._has_news.set()
            self._ticket.keep("decoded_bytes", self._num_unread)
            self._ticket.end_computing()

    def _add(self, data: bytes) -> None:
        self._unread += [data[begin : begin + _PIECE_BYTES] for begin in range(0, len(data), _PIECE_BYTES)]
        self._num_unread += len(data)
        self._has_news.set()

    def _read(self) -> bytes:
        piece = self._unread.popleft()
        self._num_read += len(piece)
        self._num_unread -= len(piece)
        if self._num_unread <= MAX_UNREAD_BYTES:
            self._has_room.set()
        if self._is_made:
            self._ticket.keep("decoded_bytes", self._num_unread)
        return piece

    async def _until_there_is_room(self) -> None:
        """Raises Cancelled if the reader is too slow."""
        while self._num_unread > MAX_UNREAD_BYTES:
            num_before = self._num_read
            self._has_room.clear()
            try:
                async with asyncio.timeout(self._slow_seconds):
                    await self._has_room.wait()
            except TimeoutError:
                if self._num_read - num_before < _MIN_READ_BYTES:
                    self.too_slow.set()
                    raise Cancelled from None
