"""Decodes the best sound track of a file with PyAV: one channel, float32, at the wanted rate, chunk by chunk."""

from collections.abc import Iterator
from typing import Any, BinaryIO, NoReturn

import av
import av.subtitles.stream  # PyAV would import both at the first file, when this process may no longer open files
import av.video.stream
import numpy as np
from av.audio.frame import AudioFrame
from av.audio.resampler import AudioResampler
from av.audio.stream import AudioStream
from av.container import InputContainer

from tis.media.audio.protocol import DECODERS, FFMPEG_AUDIO_OPTIONS, SoundRefused

_RATES = range(1000, 768_001)  # of files
_MAX_PACKET_SECONDS = 60.0
_MAX_DAMAGED_PACKETS = 1000
_SLACK_SECONDS = 1.0  # of a file that is a little longer than it says
_MIN_GAP_SECONDS = 0.2  # between frames; less is how a container rounds


def measure(file: BinaryIO) -> float:
    """How long the packets of the file say that it is; decodes nothing."""
    with _open(file) as container:
        stream = _sound(container)
        base = float(stream.time_base or 0)
        total = first = last = 0
        has_first = False
        try:
            for packet in container.demux(stream):
                length = packet.duration or 0
                if length * base > _MAX_PACKET_SECONDS:
                    length = 0  # encoders write nonsense for a last packet; what is decoded counts
                total += length
                if packet.pts is not None:
                    first, has_first = (first, True) if has_first else (packet.pts, True)
                    last = max(last, packet.pts + length)
        except av.error.InvalidDataError:
            pass  # what was read until there is decoded
        return max(0.0, base * max(total, last - first))


def decoded_chunks(file: BinaryIO, rate: int, max_seconds: float) -> Iterator[Any]:
    """Damaged packets are left out. Raises SoundRefused for what is too long."""
    left = int((max_seconds + _SLACK_SECONDS) * rate)
    with _open(file) as container:
        stream = _sound(container)
        begins_at = (container.start_time or 0) / av.time_base
        for chunk in _resampled(_frames(container, stream), rate, begins_at):
            left -= chunk.size
            if left < 0:
                raise SoundRefused("seconds")
            yield chunk


def _open(file: BinaryIO) -> InputContainer:
    file.seek(0)
    try:
        return av.open(file, "r", options=FFMPEG_AUDIO_OPTIONS, io_open=_open_nothing)
    except av.error.FFmpegError:
        raise SoundRefused("format") from None


def _open_nothing(url: str, flags: int, options: dict[str, str]) -> NoReturn:
    raise SoundRefused("format")  # a recording must be one file


def _sound(container: InputContainer) -> AudioStream:
    stream = container.streams.best("audio")
    if stream is None:  # a film that nobody speaks in has a format that is supported
        raise SoundRefused("damaged")
    if not isinstance(stream, AudioStream) or stream.sample_rate not in _RATES:
        raise SoundRefused("format")
    if stream.codec_context.codec.name not in DECODERS:  # the whitelist of FFmpeg is for opening, not for decoding
        raise SoundRefused("format")
    return stream


def _frames(container: InputContainer, stream: AudioStream) -> Iterator[AudioFrame]:
    num_damaged = 0
    packets = container.demux(stream)
    while True:
        try:
            packet = next(packets, None)
            if packet is None:
                return
            frames = stream.decode(packet)
        except av.error.EOFError:
            return
        except av.error.InvalidDataError:
            num_damaged += 1
            if num_damaged > _MAX_DAMAGED_PACKETS:
                raise SoundRefused("damaged") from None
            continue
        for frame in frames:
            if frame.sample_rate not in _RATES:
                raise SoundRefused("damaged")
            yield frame


def _resampled(frames: Iterator[AudioFrame], rate: int, begins_at: float) -> Iterator[Any]:
    """A file may change its rate or its channels. What it leaves out is silence: times stay those of the file."""
    form: tuple[str, str, int] | None = None
    resampler: AudioResampler | None = None
    due = begins_at
    for frame in frames:
        if frame.time is not None and frame.time - due > _MIN_GAP_SECONDS:
            yield from _rest(resampler)
            resampler = None
            yield from _silence(frame.time - due, rate)
            due = frame.time
        due += frame.samples / frame.sample_rate
        found = (frame.format.name, frame.layout.name, frame.sample_rate)
        if resampler is None or found != form:
            yield from _rest(resampler)
            form, resampler = found, AudioResampler(format="flt", layout="mono", rate=rate)
        frame.pts = None
        for out in resampler.resample(frame):
            yield out.to_ndarray().reshape(-1)
    yield from _rest(resampler)


def _silence(seconds: float, rate: int) -> Iterator[Any]:
    """In pieces: a damaged file may have a gap of years, and whoever counts the samples stops."""
    left = int(seconds * rate)
    while left > 0:
        yield np.zeros(min(left, rate), np.float32)
        left -= rate


def _rest(resampler: AudioResampler | None) -> Iterator[Any]:
    for out in resampler.resample(None) if resampler else ():
        if out is not None:
            yield np.ascontiguousarray(out.to_ndarray().reshape(-1))
