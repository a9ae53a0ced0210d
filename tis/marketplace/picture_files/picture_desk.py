"""What routes do with pictures: decode, render, keep and read, each on the threads that suit it."""

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tis.admission.ticket import Ticket
from tis.errors import NotFound, Unavailable
from tis.marketplace.kit.picture_links import HASH_PATTERN, NO_PICTURE, PictureSize, hash_in_url
from tis.marketplace.picture_files.picture_input import PictureInput
from tis.marketplace.picture_files.picture_rendering import RenderedPicture, render_picture
from tis.marketplace.picture_files.picture_storage import PictureStorage
from tis.media.media_types import LoadedImage

T = TypeVar("T")
_MAX_RENDERING = 2  # each takes a core
_MAX_READING, _MAX_WAITING = 16, 500  # a store that hangs shall not take the threads of other requests


class PictureDesk:
    def __init__(self, storage: PictureStorage, source: PictureInput | None) -> None:
        """Without a source (programs that only seed, tests without a server) nothing is uploaded."""
        self.storage = storage
        self._source = source
        self._renderers = ThreadPoolExecutor(_MAX_RENDERING, thread_name_prefix="picture-rendering")
        self._readers = ThreadPoolExecutor(_MAX_READING, thread_name_prefix="picture-reading")
        self._num_reading = 0

    @property
    def source(self) -> PictureInput:
        if self._source is None:
            raise Unavailable("Pictures are not taken here.")
        return self._source

    async def rendered(self, picture: bytes | str, ticket: Ticket) -> RenderedPicture:
        """Of a file, or of what a URL names."""
        if isinstance(picture, str):
            image = await self.source.from_url(picture, ticket)
        else:
            image = await self.source.from_file(picture, ticket)
        return await self.in_thread(lambda: render_picture(image.pixels))

    async def seen(self, image: str, public_url: str, ticket: Ticket) -> LoadedImage:
        """A picture of this server by its id or address, or what another URL names. Raises NotFound."""
        picture_id = image if re.fullmatch(HASH_PATTERN, image) else hash_in_url(image, public_url)
        if picture_id is None:
            return await self.source.from_url(image, ticket)
        data = await self.read(picture_id, "medium")
        if data is None:
            raise NotFound(NO_PICTURE)
        return await self.source.from_file(data, ticket)

    async def in_thread(self, work: Callable[[], T]) -> T:
        """What computes, or writes into the store."""
        return await asyncio.get_running_loop().run_in_executor(self._renderers, work)

    async def read(self, picture_id: str, size: PictureSize) -> bytes | None:
        """On the event loop. Raises Unavailable if very many wait."""
        if self._num_reading >= _MAX_READING + _MAX_WAITING:
            raise Unavailable("Too many pictures are read at this moment. Retry shortly.", retry_after=2)
        self._num_reading += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._readers, self.storage.read, picture_id, size)
        finally:
            self._num_reading -= 1

    def fetched(self, url: str) -> RenderedPicture:
        """For threads of jobs."""
        return render_picture(self.source.fetched(url))

    def close(self) -> None:
        self._renderers.shutdown(cancel_futures=True)
        self._readers.shutdown(cancel_futures=True)
        self.storage.close()
