"""Loads all media of a request: chooses how to read each of them and where to decode it, and applies the limits."""

import asyncio
import hashlib
import ssl
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tis.media.errors import BadMedia, malformed_url, too_many_media
from tis.media.fetch import MediaFetcher
from tis.media.inline import decode_inline, is_data_uri, looks_like_base64
from tis.media.limits import MIB, MediaBudget, MediaLimits
from tis.media.local_files import is_file_url, read_local_file
from tis.media.media_types import LoadedImage, LoadedVideo, MediaKind, MediaSource
from tis.media.video.decoder import COMMAND, SandboxDecoder
from tis.network.dialling import Dial, Dialler, dial_as_checked
from tis.network.resolver import Resolve, resolve_name
from tis.network.url import is_http_url

__all__ = ["LoadedImage", "LoadedVideo", "MediaLimits", "MediaLoader", "MediaSource"]

_MAX_PATH_CHARS = 4096
_MAX_JPEG_SCANS = 64  # a progressive JPEG has about ten
# Pillow steps over blocks in Python: a mebibyte of empty ones takes it a second.
_MAX_IN_THREAD_BYTES = 2 * MIB


class MediaLoader:
    """The keyword arguments are for tests: another resolver, dialler and certificates, and another decoder program."""

    def __init__(
        self,
        limits: MediaLimits,
        *,
        resolve: Resolve = resolve_name,
        dial: Dial = dial_as_checked,
        certificates: ssl.SSLContext | None = None,
        decoder_command: Sequence[str] = COMMAND,
    ) -> None:
        self.limits = self._limits = limits
        self._fetcher = MediaFetcher(limits, Dialler(resolve=resolve, dial=dial, certificates=certificates))
        self._sandboxes = SandboxDecoder(limits, decoder_command)
        self._threads = ThreadPoolExecutor(limits.max_decoders, thread_name_prefix="media")

    async def load(self, sources: Sequence[MediaSource]) -> list[LoadedImage | LoadedVideo]:
        """Loads all media of one request and returns them in its order. The limits of a request count them together."""
        if len(sources) > self._limits.max_items:
            raise _with_param(sources[self._limits.max_items], too_many_media(self._limits.max_items))
        budget = MediaBudget(self._limits)
        slots = asyncio.Semaphore(self._limits.max_fetches_of_request)
        tasks = [asyncio.create_task(self._load(source, budget, slots)) for source in sources]
        try:
            return await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)  # no task outlives the request

    async def decode(self, kind: MediaKind, data: bytes) -> LoadedImage | LoadedVideo:
        """Decodes an image or video from the file that a session has stored."""
        budget = MediaBudget(self._limits)
        budget.take_bytes(kind, len(data))
        return await self._decode(kind, data, budget)

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(self._sandboxes.close)

    async def _load(
        self, source: MediaSource, budget: MediaBudget, slots: asyncio.Semaphore
    ) -> LoadedImage | LoadedVideo:
        try:
            async with slots:
                data = await self._read(source, budget)
            return await self._decode(source.kind, data, budget)
        except BadMedia as error:
            raise _with_param(source, error) from None

    async def _read(self, source: MediaSource, budget: MediaBudget) -> bytes:
        kind, value = source.kind, source.value
        if source.encoding == "url" and is_http_url(value):
            return await self._fetcher.fetch(kind, value, budget)  # which counts the bytes in the budget itself
        read = decode_inline if source.encoding == "base64" or is_data_uri(value) else _read_path_or_base64
        data = await asyncio.get_running_loop().run_in_executor(self._threads, read, kind, value, self._limits)
        budget.take_bytes(kind, len(data))
        return data

    async def _decode(self, kind: MediaKind, data: bytes, budget: MediaBudget) -> LoadedImage | LoadedVideo:
        loop = asyncio.get_running_loop()
        if kind == "image" and not needs_sandbox(data):
            return await loop.run_in_executor(self._threads, _load_image, data, self._limits, budget)
        digest = loop.run_in_executor(self._threads, _digest, data)
        frames, info = await self._sandboxes.decode(data, budget, kind)
        if kind == "image":
            return LoadedImage(frames[0], data, await digest)
        return LoadedVideo(frames, info.times, info.fps, data, await digest)


def needs_sandbox(data: bytes) -> bool:
    """Whether an image may take Pillow so long that it has to be decoded in a process that can be killed.

    Thousands of scans in a JPEG, and millions of strips in a TIFF or of empty blocks in any format, are valid files and
    do not show in width and height. A harmless image that this suspects only takes a quarter of a second longer.
    """
    if len(data) > _MAX_IN_THREAD_BYTES:
        return True
    if data.startswith(b"\xff\xd8"):
        return data.count(b"\xff\xda") > _MAX_JPEG_SCANS
    # TIFF, HEIF, and BMP, whose runs Pillow unpacks in Python.
    return data.startswith((b"II", b"MM", b"BM")) or data[4:8] == b"ftyp"


def _read_path_or_base64(kind: MediaKind, value: str, limits: MediaLimits) -> bytes:
    """Reads the file at a path; without such a file, decodes the value as raw base64."""
    if is_file_url(value):
        return read_local_file(kind, value, limits)
    if limits.local_roots and len(value) <= _MAX_PATH_CHARS:
        try:
            return read_local_file(kind, value, limits)
        except BadMedia:
            if not looks_like_base64(value):
                raise
    if not looks_like_base64(value):
        raise malformed_url(kind)
    return decode_inline(kind, value, limits)


def _load_image(data: bytes, limits: MediaLimits, budget: MediaBudget) -> LoadedImage:
    from tis.media.images import decode_image  # imports Pillow and numpy, at the first image only

    return LoadedImage(decode_image(data, limits, budget), data, _digest(data))


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=32).hexdigest()


def _with_param(source: MediaSource, error: BadMedia) -> BadMedia:
    error.param = source.param
    return error
