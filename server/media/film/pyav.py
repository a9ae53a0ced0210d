"""Films through PyAV: one pass over the packets to know when each frame is shown, then jumps to those that are kept."""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, NoReturn

import av
import av.audio.stream
import av.subtitles.stream  # PyAV would import both at the first film, when no file can be opened any more
import numpy as np
from av.container import InputContainer
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from server.media.film.allowed import FFMPEG_OPTIONS
from server.media.film.choice import chosen_frames
from server.media.film.protocol import FilmLimits, FilmRefused, FrameSink

# Frames whose moments are where an even rate puts them, to the grain of their clock, have that rate.
_SAME_RATE = 0.02


class _Lost(Exception):
    """A jump did not arrive before the frame it was made for, or frames came without a time."""


@dataclass(frozen=True, slots=True)
class _Timeline:
    moments: list[int]  # of all frames, in ticks, as they are shown
    keys: list[int]  # those that can be jumped to
    fps: float
    tick: float  # in seconds

    @property
    def seconds(self) -> float:
        return (self.moments[-1] - self.moments[0]) * self.tick + 1 / self.fps

    @property
    def is_even(self) -> bool:
        """Matroska rounds to milliseconds: such times are put right."""
        offsets = (np.array(self.moments) - self.moments[0]) * self.tick - np.arange(len(self.moments)) / self.fps
        return bool(np.abs(offsets).max() < min(1.01 * self.tick, 0.4 / self.fps))

    def time_of(self, moment: int) -> float:
        return (moment - self.moments[0]) * self.tick


def decode_film(film: BinaryIO, limits: FilmLimits, sink: FrameSink) -> None:
    with _opened(film) as container:
        stream = _picture_stream(container)
        sink.expect(1, stream.width, stream.height)
        timeline, countable = _survey(container, stream)
    if timeline.seconds > limits.max_seconds:
        raise FilmRefused("seconds")
    chosen = chosen_frames(len(timeline.moments), timeline.fps, limits.max_frames)
    # From the fastest way to the one that always works.
    for way in (_jumping, _in_a_row, _counting) if countable else (_counting,):
        sink.restart()
        try:
            with _opened(film) as container:
                stream = _picture_stream(container)
                # Two, as frame threads hold a frame each and their memory counts.
                stream.codec_context.thread_count = 2
                stream.thread_type = "AUTO"
                frames = way(container, stream, timeline, chosen, _counter(limits))
                times = [_keep(frame, sink, len(chosen)) for frame in frames]
        except _Lost:
            continue
        even = way is _counting or timeline.is_even
        shown = [i / timeline.fps for i in chosen] if even else [timeline.time_of(t) for t in times]
        return sink.finish(shown, timeline.fps, "pyav")
    raise FilmRefused("damaged")


def _opened(film: BinaryIO) -> InputContainer:
    film.seek(0)
    try:
        return av.open(film, "r", options=FFMPEG_OPTIONS, io_open=_open_nothing)
    except av.error.InvalidDataError:
        raise FilmRefused("format") from None


def _open_nothing(url: str, flags: int, options: dict[str, str]) -> NoReturn:
    raise FilmRefused("format")  # a film is one file


def _picture_stream(container: InputContainer) -> VideoStream:
    stream = container.streams.best("video")
    if not isinstance(stream, VideoStream) or not stream.width:
        raise FilmRefused("format")
    return stream


def _survey(container: InputContainer, stream: VideoStream) -> tuple[_Timeline, bool]:
    """Headers lie and leave out how many frames there are; packets are quickly counted."""
    shown = list(_packets(container, stream))
    if not shown:
        raise FilmRefused("damaged")
    times = [pts for pts, _ in shown]
    tick = float(stream.time_base or 0)
    # AVI says when frames are decoded, not when they are shown.
    countable = tick > 0 and None not in times and len(set(times)) == len(times) and container.format.name != "avi"
    declared = [float(rate) for rate in (stream.average_rate, stream.guessed_rate) if rate]
    if not countable:
        fps = next(iter(declared), 25.0)
        return _Timeline(list(range(len(times))), [], fps, 1 / fps), False
    moments = sorted(time for time in times if time is not None)
    span = (moments[-1] - moments[0]) * tick
    measured = (len(moments) - 1) / span if span > 0 else None
    if measured is None:
        fps = next(iter(declared), 25.0)
    else:
        fps = next((rate for rate in declared if abs(rate / measured - 1) < _SAME_RATE), measured)
    return _Timeline(moments, sorted(pts for pts, key in shown if key and pts is not None), fps, tick), True


def _packets(container: InputContainer, stream: VideoStream) -> Iterator[tuple[int | None, bool]]:
    for packet in container.demux(stream):
        if packet.size and not packet.is_discard:
            yield packet.pts, packet.is_keyframe


def _counter(limits: FilmLimits) -> Callable[[Iterator[VideoFrame]], VideoFrame | None]:
    left = limits.max_frames_decoded

    def next_frame(frames: Iterator[VideoFrame]) -> VideoFrame | None:
        nonlocal left
        left -= 1
        if left < 0:
            raise FilmRefused("frames")
        return next(frames, None)

    return next_frame


_NextFrame = Callable[[Iterator[VideoFrame]], VideoFrame | None]


def _jumping(
    container: InputContainer, stream: VideoStream, line: _Timeline, chosen: list[int], next_frame: _NextFrame
) -> Iterator[VideoFrame]:
    return _at_their_moments(container, stream, line, chosen, next_frame, line.keys)


def _in_a_row(
    container: InputContainer, stream: VideoStream, line: _Timeline, chosen: list[int], next_frame: _NextFrame
) -> Iterator[VideoFrame]:
    return _at_their_moments(container, stream, line, chosen, next_frame, [])


def _at_their_moments(
    container: InputContainer,
    stream: VideoStream,
    line: _Timeline,
    chosen: list[int],
    next_frame: _NextFrame,
    keys: list[int],
) -> Iterator[VideoFrame]:
    frames, last = container.decode(stream), None
    for moment in (line.moments[index] for index in chosen):
        before = bisect_right(keys, moment) - 1
        here = line.moments[0] if last is None else _pts(last)
        jumped = before >= 0 and keys[before] > here
        if jumped:
            try:
                container.seek(keys[before], stream=stream)
            except (OSError, ValueError):
                raise _Lost from None
            frames, last = container.decode(stream), None
        while last is None or _pts(last) < moment:
            frame = next_frame(frames)
            if frame is None:
                break  # the packets promised more than there is: the last frame stands for it
            if jumped and last is None and _pts(frame) > moment:
                raise _Lost
            last = frame
        if last is None:
            raise _Lost
        yield last


def _counting(
    container: InputContainer, stream: VideoStream, line: _Timeline, chosen: list[int], next_frame: _NextFrame
) -> Iterator[VideoFrame]:
    frames, last, number = container.decode(stream), None, -1
    for index in chosen:
        while number < index:
            frame = next_frame(frames)
            if frame is None:
                break
            last, number = frame, number + 1
        if last is None:
            raise FilmRefused("damaged")
        yield last


def _pts(frame: VideoFrame) -> int:
    if frame.pts is None:
        raise _Lost
    return frame.pts


def _keep(frame: VideoFrame, sink: FrameSink, expected: int) -> int:
    sink.expect(expected, frame.width, frame.height)
    turns = round(frame.rotation / 90) % 4
    size = sink.size if turns % 2 == 0 else sink.size and sink.size[::-1]
    height, width = size or (frame.height, frame.width)
    pixels = frame.to_ndarray(format="rgb24", width=width, height=height)
    sink.add(np.ascontiguousarray(np.rot90(pixels, turns)))
    return frame.pts or 0
