"""Decodes videos in a sandbox. `SandboxProcess.ask` kills it after `decode_seconds`, or when its client has left."""

import asyncio
import json
import logging
import os
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import TYPE_CHECKING, BinaryIO

from tis.errors import Draining, Unavailable
from tis.media.errors import BadMedia, media_too_large, undecodable_media, unsupported_format
from tis.media.limits import MediaBudget, MediaLimits, in_mib
from tis.media.media_types import MediaKind
from tis.media.video.protocol import (
    FFMPEG_OPTIONS,
    DecodedFrames,
    DecodeError,
    DecodeErrorReason,
    DecodeLimits,
    parse_result,
)
from tis.sandbox.process import NoAnswer, SandboxProcess
from tis.sandbox.program import SandboxProgram, module_command

if TYPE_CHECKING:
    from tis.media.media_types import Pixels

COMMAND = module_command(f"{__package__}.decode_process")
_ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1",  # each thread reserves address space
    "OPENCV_LOG_LEVEL": "SILENT",
    "OPENCV_FFMPEG_CAPTURE_OPTIONS": "|".join(f"{name};{value}" for name, value in FFMPEG_OPTIONS.items()),
}
_log = logging.getLogger("tis.media")


class SandboxDecoder:
    """Decodes at most `max_decoders` videos at once; each of its threads only waits for its sandbox."""

    def __init__(self, limits: MediaLimits, command: Sequence[str] = COMMAND) -> None:
        self._limits = limits
        self._program = SandboxProgram("decode videos and large images", command, _ENVIRONMENT)
        self._threads = ThreadPoolExecutor(limits.max_decoders, thread_name_prefix="video")
        self._running: set[SandboxProcess] = set()

    async def decode(
        self, data: bytes, budget: MediaBudget, kind: MediaKind = "video"
    ) -> tuple["Pixels", DecodedFrames]:
        limits = self._limits_of_sandbox(kind, budget)
        process = SandboxProcess(self._program, (json.dumps(asdict(limits)), kind))
        self._running.add(process)
        try:
            frames, info = await asyncio.get_running_loop().run_in_executor(
                self._threads, _decode_in_sandbox, process, data, limits
            )
        except DecodeError as error:
            raise self._bad_media(kind, error.reason) from None
        except OSError as error:  # the server has no memory or thread left, so the client gets no 4xx
            _log.error("cannot start a sandbox for a %s: %s", kind, error.strerror)
            raise Unavailable(f"The server cannot decode this {kind} now. Retry later.", retry_after=5) from None
        finally:
            process.kill()
            self._running.discard(process)
        budget.take_decoded_bytes(kind, info.nbytes)
        return frames, info

    def close(self) -> None:
        for process in tuple(self._running):
            process.kill()
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _limits_of_sandbox(self, kind: MediaKind, budget: MediaBudget) -> DecodeLimits:
        limits = self._limits
        return DecodeLimits(
            max_frames=limits.max_video_frames,
            max_frame_pixels=self._max_pixels(kind),
            max_seconds=limits.max_video_seconds,
            max_frames_decoded=limits.max_frames_decoded,
            max_decoded_bytes=budget.decoded_bytes_left,
            memory_bytes=limits.decoder_memory_bytes,
            wall_seconds=limits.decode_seconds,
        )

    def _max_pixels(self, kind: MediaKind) -> int:
        return self._limits.max_image_pixels if kind == "image" else self._limits.max_frame_pixels

    def _bad_media(self, kind: MediaKind, reason: DecodeErrorReason) -> BadMedia:
        limits = self._limits
        explanations = {
            "pixels": f"the limit is {self._max_pixels(kind):,} pixels",
            "seconds": f"the limit is {limits.max_video_seconds:g} seconds",
            "frames": f"sampling it would decode more than {limits.max_frames_decoded:,} frames",
            "memory": f"the limit for all decoded media of a request is {in_mib(limits.max_decoded_bytes)}",
            "time": f"decoding it takes more than {limits.decode_seconds:g} seconds",
        }
        if reason in explanations:
            return media_too_large(kind, explanations[reason])
        return unsupported_format(kind) if reason == "format" else undecodable_media(kind)


def _decode_in_sandbox(process: SandboxProcess, data: bytes, limits: DecodeLimits) -> tuple["Pixels", DecodedFrames]:
    """Runs in a thread, and only waits there."""
    try:
        with nameless_file("video") as video, nameless_file("frames") as frames:
            video.write(data)
            video.flush()
            video.seek(0)
            process.start(stdin=video, stdout=frames)
            result = process.ask(limits.wall_seconds, b"decode")
            process.close()
            return _read_frames(frames, result, limits)
    except NoAnswer as failure:
        if failure.reason == "killed":
            raise Draining from None  # has no effect if the client has left
        raise DecodeError("time" if failure.reason == "time" else "damaged") from None
    finally:
        process.close()


def nameless_file(name: str) -> BinaryIO:
    """A file in memory, or on disk without a name: it disappears with the last process that has it open."""
    if sys.platform == "linux":
        return open(os.memfd_create(name), "w+b")
    return tempfile.TemporaryFile()


def _read_frames(frames: BinaryIO, result: bytes, limits: DecodeLimits) -> tuple["Pixels", DecodedFrames]:
    import numpy as np

    try:
        info = parse_result(result, frames.seek(0, os.SEEK_END))
    except ValueError:
        raise DecodeError("damaged") from None
    if info.count > limits.max_frames or info.nbytes > limits.max_decoded_bytes:
        raise DecodeError("damaged")
    frames.seek(0)
    pixels = np.fromfile(frames, np.uint8, info.nbytes)
    return pixels.reshape(info.count, info.height, info.width, 3), info
