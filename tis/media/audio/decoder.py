"""Decodes sound in a sandbox that lives as long as windows are wanted of its file."""

import asyncio
import json
import logging
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, BinaryIO, TypeVar

from tis.admission.limits import Resource
from tis.admission.ticket import Ticket
from tis.errors import Draining, Unavailable
from tis.media.audio.protocol import (
    BYTES_PER_SAMPLE,
    NEXT,
    OPEN,
    CutRules,
    SoundError,
    SoundLimits,
    SoundRefused,
    WindowAnswer,
    parse_seconds,
    parse_window,
)
from tis.media.errors import BadMedia
from tis.media.limits import MediaLimits
from tis.media.video.decoder import nameless_file
from tis.sandbox.process import NoAnswer, SandboxProcess
from tis.sandbox.program import SandboxProgram, module_command

COMMAND = module_command(f"{__package__}.decode_process")
_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1"}  # each thread reserves address space
_FORMATS = "flac, m4a, mp3, mp4, mpeg, mpga, oga, ogg, wav, or webm"
_READ_SECONDS = 60.0  # of a sound that is read whole, at once
_SECONDS_PER_SHARE = 600.0  # so much of a file may take as long to decode as a video
T = TypeVar("T")
_log = logging.getLogger("tis.media")


@dataclass(frozen=True, slots=True)
class SoundWanted:
    """What a model takes, and how the file is cut."""

    sample_rate: int
    window_seconds: float
    rules: CutRules | None = CutRules()
    num_skipped: int = 0
    max_seconds: float | None = None  # fewer than the limit of files; the ticket has room for them then


@dataclass(frozen=True, slots=True)
class SoundWindow:
    start: float  # seconds from the beginning of the file
    samples: Any  # float32, from -1 to 1


class SoundDecoder:
    """Each of its threads only waits for a sandbox."""

    def __init__(self, limits: MediaLimits, command: Sequence[str] = COMMAND) -> None:
        self._limits = limits
        self._program = SandboxProgram("decode sound", command, _ENVIRONMENT)
        self._threads = ThreadPoolExecutor(limits.max_sound_decoders, thread_name_prefix="sound")
        self._opened: set[OpenedSound] = set()

    async def open(self, data: bytes, wanted: SoundWanted, ticket: Ticket, param: str) -> "OpenedSound":
        """Raises BadMedia for a file without sound, or with too much of it. Decodes nothing yet.

        Waits for a process, and until there is room for its seconds; the ticket holds both.
        """
        limits = self._limits
        is_counted = wanted.max_seconds is None
        # Files are held open as long as they are heard: sounds of messages do not wait for that.
        await ticket.take(_decoders(is_counted=is_counted), 1)
        max_seconds = limits.max_sound_seconds if wanted.max_seconds is None else wanted.max_seconds
        sound_limits = SoundLimits(
            wanted.sample_rate,
            wanted.window_seconds,
            max_seconds,
            limits.decoder_memory_bytes,
            limits.decode_seconds,
            math.ceil(limits.decode_seconds * (1 + max_seconds / _SECONDS_PER_SHARE)),
            wanted.num_skipped,
            wanted.rules,
        )
        sound = OpenedSound(
            self._program, sound_limits, self._threads, ticket, param, self._opened, is_counted=is_counted
        )
        try:
            await sound.begin(data)
            if is_counted:
                await ticket.take("sound_seconds", math.ceil(sound.expected_seconds))
        except BaseException:
            sound.close()
            raise
        return sound

    async def whole(
        self, data: bytes, max_seconds: float, ticket: Ticket, param: str, on_length: Callable[[float], None]
    ) -> Any:
        """All samples of a file, at the rate of sounds in messages.

        `on_length` gets the seconds that the file says that it has, before anything is decoded.
        """
        import numpy as np

        wanted = SoundWanted(self._limits.sound_rate, _READ_SECONDS, None, max_seconds=max_seconds)
        sound = await self.open(data, wanted, ticket, param)
        try:
            on_length(sound.expected_seconds)
            parts = []
            while window := await sound.next():
                parts.append(window.samples)
        finally:
            sound.close()
        samples, end = np.empty(sum(map(len, parts)), np.float32), 0
        for part in _taken(parts):  # so that all is there once, not twice
            samples[end : end + len(part)] = part
            end += len(part)
        return samples

    def close(self) -> None:
        for sound in tuple(self._opened):
            sound.close()
        self._threads.shutdown(wait=True)


class OpenedSound:
    """The windows of one file, in order. One task asks for them."""

    seconds: float | None = None  # of the file, once its last window is read
    expected_seconds = 0.0  # that the file says that it has

    def __init__(
        self,
        program: SandboxProgram,
        limits: SoundLimits,
        threads: ThreadPoolExecutor,
        ticket: Ticket,
        param: str,
        opened: "set[OpenedSound]",
        *,
        is_counted: bool = True,
    ) -> None:
        self._limits = limits
        self._threads = threads
        self._ticket = ticket
        self._param = param
        self._opened = opened
        self._is_counted = is_counted  # by the ticket, in seconds
        self._process = SandboxProcess(program, (json.dumps(asdict(limits)),))
        self._output: BinaryIO | None = None
        self._lock = threading.Lock()  # of the process, which one thread at a time may use
        self._is_open = True
        opened.add(self)

    async def begin(self, data: bytes) -> None:
        self.expected_seconds = await self._in_thread(lambda: self._start(data))

    async def next(self) -> SoundWindow | None:
        """None behind the last window. The process has ended then."""
        if self.seconds is not None:
            return None
        answer, samples = await self._in_thread(self._read)
        while answer.has_more:
            answer, samples = await self._in_thread(self._read)
        if samples is None:
            self.seconds = answer.seconds
            self.close()
            return None
        if self._is_counted:
            self._count(answer.start + answer.count / self._limits.sample_rate)
        return SoundWindow(answer.start, samples)

    def close(self) -> None:
        """Kills the process. What the ticket holds of seconds stays until the answer ends."""
        self._process.kill()
        if self._is_open:
            self._is_open = False
            self._opened.discard(self)
            self._threads.submit(self._end)
            decoders = _decoders(is_counted=self._is_counted)
            if held := self._ticket.held(decoders):  # none, once the ticket is over
                self._ticket.keep(decoders, held - 1)

    def _count(self, seconds: float) -> None:
        """A file may be longer than it says."""
        more = math.ceil(seconds) - self._ticket.held("sound_seconds")
        if more > 0:
            self._ticket.take_now("sound_seconds", more, is_resumed=True)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except SoundRefused as refused:
            self.close()
            raise self._bad_media(refused.reason) from None
        except OSError as error:  # the server has no memory or thread left, so the client gets no 4xx
            self.close()
            _log.error("cannot start a sandbox for sound: %s", error.strerror)
            raise Unavailable("The server cannot decode this file now. Retry later.", retry_after=5) from None

    def _start(self, data: bytes) -> float:
        with self._lock, _refusing(), nameless_file("sound") as file:
            file.write(data)
            file.flush()
            file.seek(0)
            self._output = nameless_file("samples")
            self._process.start(stdin=file, stdout=self._output)
            return parse_seconds(self._process.ask(self._limits.wall_seconds, OPEN))

    def _read(self) -> "tuple[WindowAnswer, Any]":
        import numpy as np

        with self._lock, _refusing():
            answer = parse_window(self._process.ask(self._limits.wall_seconds, NEXT))
            output = self._output
            if not answer.count or output is None:
                return answer, None
            if answer.count > self._limits.max_window_samples:
                raise SoundRefused("damaged")
            output.seek(0)
            data = output.read(answer.count * BYTES_PER_SAMPLE)
        if len(data) != answer.count * BYTES_PER_SAMPLE:
            raise SoundRefused("damaged")
        return answer, np.clip(np.nan_to_num(np.frombuffer(data, np.float32)), -1.0, 1.0)

    def _end(self) -> None:
        with self._lock:
            self._process.close()
            if self._output:
                self._output.close()
                self._output = None

    def _bad_media(self, reason: SoundError) -> BadMedia:
        limits = self._limits
        message, code = {
            "format": (f"Invalid file format. Supported formats: {_FORMATS}.", "invalid_audio_format"),
            "damaged": ("The audio file could not be decoded: it is damaged or has no sound.", "invalid_audio"),
            "seconds": (f"The audio is too long: the limit is {limits.max_seconds:g} seconds.", "audio_too_long"),
            "memory": ("Decoding the audio takes too much memory.", "invalid_audio"),
            "time": (f"Decoding the audio takes more than {limits.wall_seconds:g} seconds.", "invalid_audio"),
        }[reason]
        return BadMedia(message, param=self._param, code=code)


def _decoders(*, is_counted: bool) -> Resource:
    return "sound_decoders" if is_counted else "heard_decoders"


def _taken(parts: list[Any]) -> Iterator[Any]:
    parts.reverse()
    while parts:
        yield parts.pop()


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except NoAnswer as failure:
        if failure.reason == "killed":
            raise Draining from None  # has no effect if the client has left
        raise SoundRefused("time" if failure.reason == "time" else "damaged") from None
