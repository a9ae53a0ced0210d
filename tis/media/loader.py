"""Loads all media of a request: chooses how to read each of them and where to decode it, and applies the limits."""

import asyncio
import hashlib
import itertools
import math
import ssl
from collections.abc import Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from tis.admission.admission import Admission
from tis.admission.ticket import Ticket
from tis.media.audio.decoder import SoundDecoder
from tis.media.audio.protocol import BYTES_PER_SAMPLE
from tis.media.audio.sound_room import SoundRoom
from tis.media.errors import BadMedia, malformed_url, sound_too_long, too_many_media
from tis.media.fetch import MediaFetcher
from tis.media.inline import decode_inline, is_data_uri, looks_like_base64
from tis.media.limits import MIB, MediaBudget, MediaLimits
from tis.media.local_files import is_file_url, read_local_file
from tis.media.media_types import LoadedImage, LoadedMedium, LoadedSound, LoadedVideo, MediaKind, MediaSource
from tis.media.video.decoder import COMMAND, SandboxDecoder
from tis.network.dialling import Dial, Dialler, dial_as_checked
from tis.network.resolver import Resolve, resolve_name
from tis.network.url import is_http_url
from tis.observability.metrics import MEDIA_REFUSALS

__all__ = ["LoadedImage", "LoadedVideo", "MediaLimits", "MediaLoader", "MediaSource"]

T = TypeVar("T")
_MAX_PATH_CHARS = 4096
_MAX_JPEG_SCANS = 64  # a progressive JPEG has about ten
# If the limit for a file counted instead, a few slow URLs would take all the room. Photos have a few megabytes.
_EXPECTED_FILE_BYTES = 4 * MIB
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
        self.sound = SoundDecoder(limits)
        self._threads = ThreadPoolExecutor(limits.max_decoders, thread_name_prefix="media")

    async def load(self, sources: Sequence[MediaSource], ticket: Ticket | None = None) -> list[LoadedMedium]:
        """Loads all media of one request and returns them in its order. The limits of a request count them together.

        The ticket holds the files and their pixels. Before anything is fetched or decoded it waits for room for all.
        """
        if len(sources) > self._limits.max_items:
            raise _with_param(sources[self._limits.max_items].param, too_many_media(self._limits.max_items))
        ticket = ticket or Admission().ticket("")
        budget = MediaBudget(self._limits, ticket)
        slots = asyncio.Semaphore(self._limits.max_fetches_of_request)
        await ticket.take("media_bytes", self._expected_bytes(sources))
        files = await _all_of(self._read(source, budget, slots) for source in sources)
        ticket.keep("media_bytes", sum(map(len, files)))
        kinds = [source.kind for source in sources]
        return await self._decode_all(kinds, files, budget, ticket, [source.param for source in sources])

    async def decode(self, kind: MediaKind, data: bytes) -> LoadedMedium:
        return (await self.decode_all([kind], [data]))[0]

    async def decode_all(
        self, kinds: Sequence[MediaKind], files: Sequence[bytes], ticket: Ticket | None = None
    ) -> list[LoadedMedium]:
        """Decodes images and videos of a request from the files that a session has stored."""
        ticket = ticket or Admission().ticket("")
        await ticket.take("media_bytes", sum(map(len, files)))
        budget = MediaBudget(self._limits, ticket)
        for kind, data in zip(kinds, files, strict=True):
            budget.take_bytes(kind, len(data))
        return await self._decode_all(kinds, files, budget, ticket)

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(self._sandboxes.close)
        await asyncio.to_thread(self.sound.close)

    @property
    def _max_sound_bytes(self) -> int:
        return math.ceil(self._limits.max_heard_seconds * self._limits.sound_rate) * BYTES_PER_SAMPLE

    def _expected_bytes(self, sources: Sequence[MediaSource]) -> int:
        """What the files have together. Of a URL or a path nobody knows it before: a larger one takes more later."""
        limits = self._limits
        sizes = (len(source.value) * 3 // 4 if _is_inline(source) else _EXPECTED_FILE_BYTES for source in sources)
        return min(limits.max_request_bytes, sum(min(size, limits.max_item_bytes) for size in sizes))

    async def _decode_all(
        self,
        kinds: Sequence[MediaKind],
        files: Sequence[bytes],
        budget: MediaBudget,
        ticket: Ticket,
        params: Sequence[str] | None = None,
    ) -> list[LoadedMedium]:
        loop = asyncio.get_running_loop()
        sizes = [
            loop.run_in_executor(self._threads, max_pixel_bytes, kind, data, self._limits)
            for kind, data in zip(kinds, files, strict=True)
        ]
        sounds = [data for kind, data in zip(kinds, files, strict=True) if kind == "audio"]
        room = SoundRoom(sounds, self._limits.sound_rate, self._max_sound_bytes, ticket)
        await room.take(sum(await asyncio.gather(*sizes)), self._limits.max_decoded_bytes)
        # A request has a few images in the queue at a time, so that others have their turn between them.
        slots, one_at_a_time = asyncio.Semaphore(self._limits.max_decoders), asyncio.Lock()
        numbers = itertools.count()
        loaded = await _all_of(
            self._hear(data, budget, ticket, one_at_a_time, room, next(numbers), params[at] if params else None)
            if kind == "audio"
            else self._decode(kind, data, budget, ticket, slots, params[at] if params else None)
            for at, (kind, data) in enumerate(zip(kinds, files, strict=True))
        )
        ticket.keep("decoded_bytes", sum(one.num_bytes for one in loaded))
        return loaded

    async def _read(self, source: MediaSource, budget: MediaBudget, slots: asyncio.Semaphore) -> bytes:
        try:
            async with slots:
                return await self._read_one(source, budget)
        except BadMedia as error:
            raise _with_param(source.param, error) from None

    async def _read_one(self, source: MediaSource, budget: MediaBudget) -> bytes:
        kind, value = source.kind, source.value
        if source.encoding == "url" and is_http_url(value):
            return await self._fetcher.fetch(kind, value, budget)  # which counts the bytes in the budget itself
        read = decode_inline if source.encoding == "base64" or is_data_uri(value) else _read_path_or_base64
        data = await asyncio.get_running_loop().run_in_executor(self._threads, read, kind, value, self._limits)
        budget.take_bytes(kind, len(data))
        return data

    async def _decode(
        self,
        kind: MediaKind,
        data: bytes,
        budget: MediaBudget,
        ticket: Ticket,
        slots: asyncio.Semaphore,
        param: str | None,
    ) -> LoadedMedium:
        in_sandbox = kind == "video" or needs_sandbox(data)
        try:
            async with slots, ticket.one_of("video_decoders" if in_sandbox else "image_decoders"):
                return await (self._decode_in_sandbox if in_sandbox else self._decode_here)(kind, data, budget)
        except BadMedia as error:
            raise _with_param(param, error) from None

    async def _hear(
        self,
        data: bytes,
        budget: MediaBudget,
        ticket: Ticket,
        one_at_a_time: asyncio.Lock,
        room: SoundRoom,
        number: int,
        param: str | None,
    ) -> LoadedMedium:
        digest = asyncio.get_running_loop().run_in_executor(self._threads, _digest, data)
        try:
            async with one_at_a_time:
                samples = await self.sound.whole(
                    data, budget.sound_seconds_left, ticket, param or "", partial(room.is_long, number)
                )
                seconds = len(samples) / self._limits.sound_rate
                room.is_long(number, seconds)
                budget.take_sound_seconds(seconds)
                budget.take_decoded_bytes("audio", samples.nbytes)
        except BadMedia as error:
            too_long = error.code == "audio_too_long"
            raise _with_param(param, sound_too_long(self._limits.max_heard_seconds) if too_long else error) from None
        return LoadedSound(samples, data, await digest)

    async def _decode_here(self, kind: MediaKind, data: bytes, budget: MediaBudget) -> LoadedMedium:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, _load_image, data, self._limits, budget)

    async def _decode_in_sandbox(self, kind: MediaKind, data: bytes, budget: MediaBudget) -> LoadedMedium:
        digest = asyncio.get_running_loop().run_in_executor(self._threads, _digest, data)
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


def max_pixel_bytes(kind: MediaKind, data: bytes, limits: MediaLimits) -> int:
    """What the pixels may have; of what a sandbox decodes, nobody knows it before. Sounds count together."""
    if kind == "audio":
        return 0
    if kind == "video":
        return limits.max_video_frames * limits.max_frame_pixels * 3
    if needs_sandbox(data):
        return limits.max_image_pixels * 3
    from tis.media.images import num_pixels

    return min(num_pixels(data), limits.max_image_pixels) * 3


def _is_inline(source: MediaSource) -> bool:
    """What is longer than a path, and no URL, can only be base64."""
    value = source.value
    return (
        source.encoding == "base64" or is_data_uri(value) or (len(value) > _MAX_PATH_CHARS and not is_http_url(value))
    )


async def _all_of(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Runs them at once. After the first failure the others are cancelled: no task outlives the request."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _with_param(param: str | None, error: BadMedia) -> BadMedia:
    MEDIA_REFUSALS.labels(error.code or "refused").inc()
    error.param = param
    return error
